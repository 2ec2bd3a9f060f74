"""The fences of a source, `:::{predict}` and its like, and what stands for them in the notebook.

Colab, GitHub and JupyterLab render no MyST. So the notebook gets what all three show: a box is a quotation with a bold
title, what is opened is `<details>`, and a link to a page that is no notebook goes to the published book. The rendered
book is made from the source's own cells (see `tools/site/cells.py`).

==============================  ==========================================  =====================================
source                          notebook                                    page
==============================  ==========================================  =====================================
`:::{tip} Takeaway`             a quotation with the title                  a box
`:::{note}`, `:::{warning}`     the same                                    the same
`:::{predict}`                  a quotation, *Predict*, choices unmarked    the question, with a place to answer
`:::{reveal}`                   `<details>`                                 opens with the output of the cell
`:::{aside}`                    a quotation, *Aside*                        in the margin
`:::{facts}`                    a quotation: minutes, needs, teaches        the header of the chapter
`:::{names} jax.jit, …`         nothing                                     an entry in the index of names
==============================  ==========================================  =====================================
"""

import dataclasses
import pathlib
import re

from tools import project

BOXES = {"note": "Note", "tip": "Tip", "warning": "Watch out"}
REVEAL = "Reveal the answer"

# A choice of a prediction that is marked as right, `- [x]`, or as wrong, `- [ ]`: a page of such questions is graded.
MARK = re.compile(r"^- \[([ x])\] ", re.M)
OPENING = re.compile(r"^(:{3,})\{(\w+)\}[ \t]*(.*?)[ \t]*$")
CODE = re.compile(r"^[ \t]*(`{3,}|~{3,})")


@dataclasses.dataclass
class Fence:
    """One fence: its kind, what stands beside the kind, and its lines."""

    kind: str
    title: str
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


class FenceError(ValueError):
    """A fence that is not known, or never closed."""


def parts(text: str) -> list[str | Fence]:
    """Markdown cut into plain text and its outermost fences; code blocks are plain text."""
    found, plain, fence, colons, code = [], [], None, "", None
    for line in text.split("\n"):
        if fence is not None:
            if code is None and line.strip() == colons:
                found.append(fence)
                fence = None
                continue
            fence.lines.append(line)
        elif code is None and (opening := OPENING.match(line)):
            found.append("\n".join(plain))
            plain, colons = [], opening[1]
            fence = Fence(opening[2], opening[3], [])
            continue
        else:
            plain.append(line)
        if mark := CODE.match(line):
            if code is None:
                code = mark[1]
            elif mark[1].startswith(code) and line.strip() == mark[1]:
                code = None
    if fence is not None:
        raise FenceError(f"the fence {colons}{{{fence.kind}}} is never closed: end it with a line {colons}")
    found.append("\n".join(plain))
    return found


def of_kind(text: str, kind: str) -> list[Fence]:
    """The fences of one kind, outermost ones."""
    return [part for part in parts(text) if isinstance(part, Fence) and part.kind == kind]


def to_notebook(text: str, page: str, root: pathlib.Path = project.ROOT) -> str:
    """A markdown cell of a source, as the notebook holds it; ``page`` is the chapter's name."""
    pieces = [part if isinstance(part, str) else _portable(part) for part in parts(text)]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(piece for piece in pieces if piece is not None))
    return _links(text, page, root).strip("\n")


def _portable(fence: Fence) -> str | None:
    body = "\n".join(
        part if isinstance(part, str) else _portable(part) or "" for part in parts(fence.text)
    ).strip()
    if fence.kind == "names":
        return None
    if fence.kind == "reveal":
        return f"<details>\n<summary><b>{fence.title or REVEAL}</b></summary>\n\n{body}\n\n</details>"
    if fence.kind == "facts":
        return _quotation("\n".join(f"- **{name}:** {value}" for name, value in facts(fence)))
    if fence.kind == "predict":
        return _quotation(f"**{fence.title or 'Predict'}**\n\n{MARK.sub('- ', body)}")
    if fence.kind == "aside":
        title = fence.title or "Aside"
        return _quotation(f"*{title}{'' if title.endswith(('?', '!')) else '.'}* {body}")
    if fence.kind in BOXES:
        return _quotation(f"**{fence.title or BOXES[fence.kind]}**\n\n{body}")
    raise FenceError(f"no fence is called {fence.kind!r}: known are {', '.join(sorted(KINDS))}")


KINDS = {*BOXES, "predict", "reveal", "aside", "facts", "names"}


def facts(fence: Fence) -> list[tuple[str, str]]:
    """The lines of a chapter's header, `Needs: …`, as pairs."""
    return [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in fence.lines)]


def _quotation(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


# A link to a page, `[text](glossary.md#trace)`, or into this one, `[text](#a-heading)`; not a picture, not an address.
LINK = re.compile(r"(?<!!)(\[(?:[^\[\]]|\[[^\]]*\])*\])\((?:([\w/]+)\.md)?(#[\w-]+)?\)")
BLOCK = re.compile(
    r"^([ \t]*(?:>[ \t]*)*)(`{3,}|~{3,}).*?^\1\2[ \t]*$|(`+)(?!`).+?(?<!`)\3(?!`)", re.M | re.S
)


def _links(text: str, page: str, root: pathlib.Path) -> str:
    """Links to what is no notebook lead to the published book, as an anchor alone leads nowhere in Colab."""

    def published(link):
        if link[2] is None and link[3] is None:
            return link[0]
        return f"{link[1]}({project.page_url(f'book/{link[2] or page}', root)}{link[3] or ''})"

    pieces, end = [], 0
    for code in BLOCK.finditer(text):  # a code span may stand inside of a link's text: cut at blocks alone
        if code[2]:
            pieces += [LINK.sub(published, text[end : code.start()]), code[0]]
            end = code.end()
    return "".join([*pieces, LINK.sub(published, text[end:])])
