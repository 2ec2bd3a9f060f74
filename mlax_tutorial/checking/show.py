"""Shows things to the reader once: as HTML in a notebook, as text in a terminal."""

import contextlib
import dataclasses
import html
import io
import os
import sys

import jax

from mlax_tutorial.checking import outcome as outcomes

_MOST_CHARACTERS = 2_000
_MOST_LINES = 12


@dataclasses.dataclass(frozen=True, repr=False)
class Page:
    """A hint, a solution: a title, text, a remark, code."""

    title: str
    body: str = ""
    remark: str = ""
    code: str = ""

    def render(self, colour=False):
        title = f"\x1b[1m{self.title}\x1b[0m" if colour else self.title
        remark = f"({self.remark})" if self.remark else ""
        return "\n".join(part for part in (title, self.body, remark, self.code) if part)

    def __str__(self):
        return self.render()

    __repr__ = __str__

    def _repr_html_(self):
        body = f"<strong>{html.escape(self.title)}</strong>"
        if self.body:
            body += f"<div>{outcomes.paragraphs(self.body)}</div>"
        if self.remark:
            body += f"<div>({outcomes.paragraphs(self.remark)})</div>"
        if self.code:
            body += outcomes._code(self.code)
        return outcomes.panel(body)


def show(thing, note=""):
    """Shows an outcome or a page, in the way that the place allows."""
    if in_notebook():
        from IPython.display import display

        display(thing)
    else:
        print(printable(thing.render(colour=wants_colour())))
    if note:
        print(printable(note))


_ASCII = str.maketrans("\N{CHECK MARK}\N{BALLOT X}\N{WHITE CIRCLE}\N{BLACK STAR}\N{WHITE STAR}", "+xo*.")


def printable(text):
    """Text that this terminal can print: an old one may know no check mark and no star."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text


def in_notebook():
    """Whether there is a kernel with a front end that shows HTML: Jupyter, Colab; not IPython in a terminal."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def wants_colour():
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


class Collected(io.TextIOBase):
    """What the reader's code printed: the beginning of it, and a count of the rest."""

    def __init__(self):
        self._kept, self._size, self._lines = [], 0, 0

    def writable(self):
        return True

    def write(self, text):
        room = _MOST_CHARACTERS - self._size
        if room > 0:
            self._kept.append(text[:room])
            self._size += len(text[:room])
        self._lines += text.count("\n")
        return len(text)

    @property
    def text(self):
        lines = "".join(self._kept).rstrip("\n").splitlines()
        rest = self._lines - min(len(lines), _MOST_LINES)
        return "\n".join(lines[:_MOST_LINES] + ([f"... and {rest} more lines"] if rest > 0 else []))


@contextlib.contextmanager
def collected(printed):
    """Redirects what is printed in the block, by ``jax.debug.print`` too."""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            yield
        finally:
            with contextlib.suppress(
                Exception
            ):  # an error in a callback: it was raised before, or is not ours
                jax.effects_barrier()
