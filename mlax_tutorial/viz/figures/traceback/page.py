"""The markup of ``viz.traceback``: an ordered list whose groups of frames unfold by ``<details>``, without a script."""

import html
import itertools
import re

from mlax_tutorial.viz.figures import markup

NAMES = {"jax": "JAX", "jaxlib": "JAX", "numpy": "NumPy"}


BEFORE = "JAX made the operation that failed from this one"


def groups(frames):
    """Frames in groups: each of one's own by itself, those of one library after the other together."""
    for owner, group in itertools.groupby(frames, lambda frame: NAMES.get(frame.owner, frame.owner)):
        group = list(group)
        yield from ((owner, [frame]) for frame in group) if owner == "yours" else [(owner, group)]


def counted(owner, frames):
    """``12 frames inside JAX``."""
    return f"{markup.counted(len(frames), 'frame')} inside {owner}"


def listing(failure) -> str:
    """The error as text."""
    lines = _listed(failure.frames)
    if failure.before:
        lines += [f"{BEFORE}:", *_listed(failure.before)]
    above = f" (a kind of {', '.join(failure.parents)})" if failure.parents else ""
    return "\n".join([*lines, failure.kind + above, *(f"  {line}" for line in failure.message.splitlines())])


def _listed(frames):
    return [
        f"your code   {group[0].place}: {group[0].source}".rstrip(": ")
        if owner == "yours"
        else f"            {counted(owner, group)}"
        for owner, group in groups(frames)
    ]


def write(failure) -> str:
    """The error as HTML."""
    own = failure.yours
    number = f"{markup.counted(len(failure.frames + failure.before), 'frame')}, {len(own)} of them yours"
    body = (
        f'<p class="viz-traceback-head">Traceback, outermost call first: {number}</p>\n'
        f"<ol>{_rows(failure.frames, own)}</ol>\n"
    )
    if failure.before:
        body += f'<p class="viz-traceback-head">{BEFORE}:</p>\n<ol>{_rows(failure.before, own)}</ol>\n'
    body += _end(failure)
    label = f"The error {failure.kind}, taken apart: {number}"
    caption = (
        "An error taken apart, the outermost call first. Lines with a bar are your own; what lies between them, inside libraries, is folded. "
        "Read the numbers in their order: the error, your last line, the message."
    )
    return markup.frame("traceback", body, label, caption=caption, styles=["folding"])


def _rows(frames, own):
    return "".join(
        _own(group[0], group[0] is own[-1]) if owner == "yours" else _others(owner, group)
        for owner, group in groups(frames)
    )


def _own(frame, is_last):
    badge = '<strong class="viz-traceback-step">② your last line</strong>' if is_last else ""
    mark = " viz-traceback-last" if is_last else ""
    code = f"{markup.code(frame.source)}" if frame.source else ""
    return (
        f'<li class="viz-traceback-own{mark}"><span class="viz-traceback-where">your code, {html.escape(frame.place)}'
        f"</span>{badge}{code}</li>"
    )


def _others(owner, frames):
    inner = "".join(f"<li>{markup.code(frame.file)}, {html.escape(frame.place)}</li>" for frame in frames)
    return (
        f'<li class="viz-traceback-others"><details><summary>{html.escape(counted(owner, frames))}</summary>'
        f"<ul>{inner}</ul></details></li>"
    )


def _end(failure):
    above = "".join(f" → {html.escape(name)}" for name in failure.parents)
    lines = "".join(f"<p>{_message(line)}</p>" for line in failure.message.splitlines())
    link = ""
    if failure.link:
        address = html.escape(failure.link, quote=True)
        link = f'<p>④ more: <a href="{address}">{address}</a></p>'
    return (
        f'<div class="viz-traceback-end"><p><strong class="viz-traceback-step">① begin here</strong>'
        f"{markup.code(failure.kind)}{above}</p>{lines}{link}</div>"
    )


def _message(line):
    """A line of the message, with the argument that it hangs on marked."""
    line = html.escape(line, quote=False)
    return re.sub(
        r"(depends on the values? of the arguments? [^.]*)",
        r'<strong class="viz-traceback-step">③</strong><mark>\1</mark>',
        line,
    )
