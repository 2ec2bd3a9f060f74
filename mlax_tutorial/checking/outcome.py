"""What a check finds: `Failed`, raised inside a check, and `Outcome`, what the reader gets to see."""

import contextlib
import dataclasses
import html

from mlax_tutorial.checking.describe import apart, describe, differences

PASSED, FAILED, NOT_ATTEMPTED = "passed", "failed", "not attempted"
NOT_GRADED = "not graded"  # through no fault of the reader's: a package is missing, or the check itself broke

_HEADLINES = {
    PASSED: ("\N{CHECK MARK}", "passed"),
    FAILED: ("\N{BALLOT X}", "not yet right"),
    NOT_ATTEMPTED: ("\N{WHITE CIRCLE}", "not attempted yet"),
    NOT_GRADED: ("!", "could not be graded"),
}
_COLOURS = {PASSED: "32", FAILED: "31", NOT_ATTEMPTED: "36", NOT_GRADED: "33"}
# Only for the bar on the left, which says nothing that the words do not say: these show on white and on black.
_BARS = {PASSED: "#2a9d5c", FAILED: "#d4493f", NOT_ATTEMPTED: "#3f83c4", NOT_GRADED: "#b58900"}
_NOTHING = object()


class Failed(Exception):
    """The answer is wrong, and this is what is wrong with it.

    Args:
      message: one or two sentences to the reader: what is wrong, and the mistake if it is recognised.
      input: the input that shows it: a string, or a dict from the names of arguments to their values.
      expected: the right value for that input.
      got: the reader's value. Where both are arrays or trees, the places where they differ are listed.
      shown: further ``(label, text)`` pairs.
    """

    def __init__(self, message, *, input=_NOTHING, expected=_NOTHING, got=_NOTHING, shown=()):
        super().__init__(message)
        self.message = message
        self.shown = []
        if input is not _NOTHING:
            self.shown.append(("input", _describe_input(input)))
        if expected is not _NOTHING and got is not _NOTHING:
            self.shown.extend(zip(("expected", "got"), apart(expected, got), strict=True))
            if places := differences(expected, got):
                self.shown.append(("differs", places))
        elif expected is not _NOTHING:
            self.shown.append(("expected", describe(expected)))
        elif got is not _NOTHING:
            self.shown.append(("got", describe(got)))
        self.shown.extend(shown)

    def __str__(self):
        return self.message

    def say_first(self, sentence):
        """Puts a sentence before the message, in a line of its own if it is a whole one; see `says`."""
        if sentence:
            self.message = f"{sentence}{' ' if sentence.endswith(':') else chr(10)}{self.message}"


@contextlib.contextmanager
def says(sentence, about=""):
    """Whatever fails inside, this sentence is said first: of a wrong result, and of an error in the reader's own code.

    One that ends with a colon goes on in the same line.

    Args:
      sentence: the text; or a function that makes it of the failure, if it needs to know more, and may give "" for nothing.
      about: it is said only where these words stand in the message.

    >>> with says("This is right for three numbers, but not for two."):
    ...     raise Failed("The shape is wrong.")
    Traceback (most recent call last):
    mlax_tutorial.checking.outcome.Failed: This is right for three numbers, but not for two.
    The shape is wrong.
    """
    try:
        yield
    except Failed as failure:
        if about in failure.message:
            failure.say_first(sentence(failure) if callable(sentence) else sentence)
        raise


class NotAttempted(Exception):
    """There is nothing to grade yet."""


def _describe_input(values):
    if isinstance(values, str):
        return values
    lines = []
    for name, value in values.items():
        first, *more = describe(value).splitlines()
        lines.append(f"{name} = {first}")
        lines.extend(" " * (len(name) + 3) + line for line in more)
    return "\n".join(lines)


@dataclasses.dataclass(frozen=True, repr=False)
class Outcome:
    """The result of grading one answer: ``passed``, ``failed`` or ``not attempted``.

    `str` gives it as plain text, `_repr_html_` for a notebook. Where the *checker* broke, not the answer, the status is
    ``not graded`` and ``fault`` is the error: it never should be, and the tests insist on it.
    """

    name: str
    status: str
    message: str
    shown: tuple[tuple[str, str], ...] = ()
    printed: str = ""
    stopped: bool = False  # because its time was over
    fault: BaseException | None = dataclasses.field(default=None, compare=False)

    @property
    def passed(self):
        return self.status == PASSED

    @property
    def text(self):
        """All that is said, in plain text."""
        return self.render()

    def render(self, colour=False):
        mark, words = _HEADLINES[self.status]
        headline = f"{mark} {self.name}: {words}"
        if colour:
            headline = f"\x1b[1;{_COLOURS[self.status]}m{headline}\x1b[0m"
        lines = [headline, *self.message.splitlines()]
        width = max([len(label) for label, _ in self.shown], default=0)
        for label, text in self.shown:
            first, *more = text.splitlines() or [""]
            lines.append(f"  {label:<{width}}  {first}")
            lines.extend(" " * (width + 4) + line for line in more)
        if self.printed:
            lines.append("Your code printed:")
            lines.extend(f"  | {line}" for line in self.printed.splitlines())
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self):
        return self.render()

    __repr__ = __str__

    def _repr_html_(self):
        mark, words = _HEADLINES[self.status]
        rows = "".join(
            f'<tr style="background:none"><th scope="row" style="{_CELL}font-weight:600">{html.escape(label)}</th>'
            f'<td style="{_CELL}">{_code(text)}</td></tr>'
            for label, text in self.shown
        )
        table = f'<table style="border:0;margin:.4em 0 0;color:inherit">{rows}</table>' if rows else ""
        printed = f'<div style="margin-top:.4em">Your code printed:</div>{_code(self.printed)}'
        return panel(
            f"<strong>{mark} {html.escape(self.name)}: {words}</strong>"
            f"<div>{paragraphs(self.message)}</div>{table}{printed if self.printed else ''}",
            bar=_BARS[self.status],
        )


_CELL = "text-align:left;vertical-align:top;padding:.1em .8em .1em 0;border:0;color:inherit;"


def panel(body, bar="#8a8a8a"):
    """HTML that takes the page's own colours, so that it can be read in a light and in a dark theme."""
    return (
        f'<div role="status" style="border-left:.3em solid {bar};padding:.3em 0 .4em .9em;margin:.4em 0;'
        f'color:inherit;background:rgba(127,127,127,.08);line-height:1.5;overflow-wrap:anywhere">{body}</div>'
    )


def paragraphs(text):
    """Escapes text for HTML, with line breaks, and code for what stands between backquotes."""
    pieces = html.escape(text).split("`")
    if len(pieces) % 2 == 0:  # a backquote without its partner
        return html.escape(text).replace("\n", "<br>")
    marked = [f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces)]
    return "".join(marked).replace("\n", "<br>")


def _code(text):
    return (
        '<pre style="margin:0;padding:0;border:0;background:none;color:inherit;font-size:.92em;'
        f'white-space:pre-wrap;overflow-wrap:anywhere">{html.escape(text)}</pre>'
    )
