"""A table of arrays with a line of totals: as text in a terminal, as HTML in a notebook."""

import html
from typing import Any, NamedTuple


class Table(NamedTuple):
    """Base of such tables: a subclass says of which ``NamedTuple`` the rows are; its last two fields are numbers."""

    rows: tuple[Any, ...]

    @property
    def bytes(self) -> int:
        """Size of all arrays."""
        return sum(row.bytes for row in self.rows)

    def _lines(self):
        """The head, the rows and the totals, all in words."""
        head, number = self._row._fields, "{:,}".format
        rows = [(*map(str, row[:-2]), *map(number, row[-2:])) for row in self.rows]
        totals = [number(sum(row[column] for row in self.rows)) for column in (-2, -1)]
        return [head, *rows, ("total", *[""] * (len(head) - 3), *totals)]

    def __repr__(self):
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines)]

        def line(cells):
            words, numbers = map(str.ljust, cells[:-2], widths), map(str.rjust, cells[-2:], widths[-2:])
            return "  ".join([*words, *numbers]).rstrip()

        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        head, *rows, totals = map(line, lines)
        return "\n".join([head, rule, *rows, rule, totals])

    def _repr_html_(self):
        head, *rows = self._lines()
        sides = [f'style="text-align: {side}"' for side in ["left"] * (len(head) - 2) + ["right"] * 2]

        def line(cells):
            placed = [f"<td {side}>{html.escape(cell)}</td>" for cell, side in zip(cells, sides)]
            return f"<tr>{''.join(placed)}</tr>"

        top = "".join(f'<th scope="col" {side}>{title}</th>' for title, side in zip(head, sides))
        return (
            f'<table class="{self._style}"><caption>{self._caption}</caption><thead><tr>{top}</tr></thead>'
            f"<tbody>{''.join(map(line, rows))}</tbody></table>"
        )
