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
        rows = [(*map(str, row[:-2]), *map("{:,}".format, row[-2:])) for row in self.rows]
        totals = [f"{sum(row[column] for row in self.rows):,}" for column in (-2, -1)]
        head = self._row._fields
        return [head, *rows, ("total", *[""] * (len(head) - 3), *totals)]

    def __repr__(self):
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines)]
        sides = [str.ljust] * (len(widths) - 2) + [str.rjust] * 2
        lines = [
            "  ".join(map(lambda side, *cell: side(*cell), sides, line, widths)).rstrip() for line in lines
        ]
        head, *rows, totals = lines
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([head, rule, *rows, rule, totals])

    def _repr_html_(self):
        head, *rows = self._lines()
        sides = [f'style="text-align: {side}"' for side in ["left"] * (len(head) - 2) + ["right"] * 2]
        top = "".join(f'<th scope="col" {side}>{title}</th>' for title, side in zip(head, sides))
        rows = [
            "".join(f"<td {side}>{html.escape(cell)}</td>" for cell, side in zip(row, sides)) for row in rows
        ]
        return (
            f'<table class="{self._style}"><caption>{self._caption}</caption><thead><tr>{top}</tr></thead>'
            f"<tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"
        )
