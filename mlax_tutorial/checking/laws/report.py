"""What the laws say of a layer or an optimizer, as a table."""

import html
import textwrap

from mlax_tutorial.checking import outcome

WIDTH = 76


def table(rows, marks=True):
    """Lines of at most 76 characters: a mark, the name, and the text beside it."""
    side = max([len(name) for name, _, _ in rows], default=0)
    lines = []
    for name, mark, text in rows:
        front = f"{mark:1} " if mark else ""
        room = WIDTH - len(front) - side - 2
        first, *more = textwrap.wrap(text, room) or [""]
        lines.append(f"{front}{name:<{side}}  {first}".rstrip())
        lines.extend(" " * (len(front) + side + 2) + line for line in more)
    return "\n".join(lines)


class Report:
    """Which laws hold and which are broken.

    Attributes:
      subject: what was looked at, in words.
      rows: ``(law, failure)`` for each law, in order; the failure is None where the law holds, and ``...`` where the law was not
        looked at, since one that it needs is broken.
    """

    def __init__(self, subject, rows):
        self.subject, self.rows = subject, tuple(rows)

    @property
    def broken(self):
        """The names of the broken laws."""
        return tuple(law.name for law, failure in self.rows if failure not in (None, ...))

    @property
    def failures(self):
        """The `Failed` of each broken law, by its name."""
        return {law.name: failure for law, failure in self.rows if failure not in (None, ...)}

    @property
    def holds(self):
        """Whether none is broken."""
        return not self.broken

    def _headline(self):
        count = len(self.broken)
        if not count:
            return f"{self.subject}: all {len(self.rows)} laws hold"
        return f"{self.subject}: {count} of {len(self.rows)} laws {'is' if count == 1 else 'are'} broken"

    def __str__(self):
        rows = []
        for law, failure in self.rows:
            if failure is None:
                rows.append((law.name, "\N{CHECK MARK}", law.statement.replace("`", "")))
            elif failure is ...:
                rows.append((law.name, "-", "not looked at: it needs a law that is broken"))
            else:
                rows.append((law.name, "\N{BALLOT X}", failure.reason.replace("`", "")))
        lines = textwrap.wrap(self._headline(), WIDTH)
        return "\n".join([*lines, table(rows)])

    __repr__ = __str__

    def _repr_html_(self):
        cells = []
        for law, failure in self.rows:
            mark, words = "\N{CHECK MARK}", law.statement
            if failure is ...:
                mark, words = "-", "not looked at: it needs a law that is broken"
            elif failure is not None:
                mark, words = "\N{BALLOT X}", failure.reason
            bold = "700" if failure not in (None, ...) else "400"
            cells.append(
                f'<tr style="background:none"><td style="{outcome._CELL}">{mark}</td>'
                f'<th scope="row" style="{outcome._CELL}font-weight:{bold};white-space:nowrap">{html.escape(law.name)}</th>'
                f'<td style="{outcome._CELL}">{outcome.paragraphs(words)}</td></tr>'
            )
        body = f'<table style="border:0;margin:.4em 0 0;color:inherit">{"".join(cells)}</table>'
        return outcome.panel(
            f"<strong>{html.escape(self._headline())}</strong>{body}",
            bar="#2a9d5c" if self.holds else "#d4493f",
        )
