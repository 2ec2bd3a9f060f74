"""A table of a few rows with a line of totals: as text in a terminal, as HTML in a notebook."""

import html
from collections.abc import Sequence

Row = Sequence[str]


def as_text(head: Row, rows: Sequence[Row], totals: Row, numbers: int) -> str:
    """Lay cells out in columns; the last ``numbers`` columns are set to the right.

    >>> rows = [("kernel", "12"), ("bias", "3")]
    >>> print(as_text(("name", "size"), rows, ("total", "15"), numbers=1))
    name    size
    ------------
    kernel    12
    bias       3
    ------------
    total     15
    """
    lines = [head, *rows, totals]
    widths = [max(map(len, column)) for column in zip(*lines)]
    words = len(head) - numbers

    def line(cells):
        left = [cell.ljust(width) for cell, width in zip(cells[:words], widths)]
        right = [cell.rjust(width) for cell, width in zip(cells[words:], widths[words:])]
        return "  ".join([*left, *right]).rstrip()

    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([line(head), rule, *map(line, rows), rule, line(totals)])


def as_html(caption: str, name: str, head: Row, rows: Sequence[Row], totals: Row, numbers: int) -> str:
    """The same as an HTML table of the CSS class ``name``; cells are escaped."""
    words = len(head) - numbers
    sides = [f'style="text-align: {"left" if i < words else "right"}"' for i in range(len(head))]

    def line(cells):
        placed = [f"<td {side}>{html.escape(cell)}</td>" for cell, side in zip(cells, sides)]
        return f"<tr>{''.join(placed)}</tr>"

    top = "".join(f'<th scope="col" {side}>{title}</th>' for title, side in zip(head, sides))
    return (
        f'<table class="{name}"><caption>{caption}</caption><thead><tr>{top}</tr></thead>'
        f"<tbody>{''.join(map(line, [*rows, totals]))}</tbody></table>"
    )
