"""The index of names, `book/names.md`: from `jax.vmap` or `KeyReuseError` to the section that teaches it.

A section marks what it teaches by a line of its own, `:::{names} jax.vmap, in_axes`, and `:::` below it. In the notebook nothing is
left of that.
"""

import re

from tools.notebooks import fences, sources, tables
from tools.notebooks.places import Book

PAGE = """\
---
description: Functions, arguments and errors of JAX, each with the section of the book that teaches it.
---

# Index of names

{count} names, each with the sections that teach it.

{parts}
"""

HEADING = re.compile(r"^#{1,4}\s+(.*\S)", re.MULTILINE)


def taught(book: Book) -> dict[str, list[tuple[str, str]]]:
    """For each name the chapters and headings under which it is taught, in the order of the book."""
    found = {}
    for chapter, _ in tables.chapters(book):
        if not book.source(chapter).exists() or chapter not in tables.contents(book):
            continue
        heading = ""
        for cell in sources.read(book, chapter).cells:
            if cell.cell_type != "markdown":
                continue
            for part in fences.parts(cell.source):
                if isinstance(part, str):
                    heading = ([heading] + HEADING.findall(part))[-1]
                elif part.kind == "names":
                    for name in filter(None, map(str.strip, f"{part.title},{part.text}".split(","))):
                        places = found.setdefault(name.strip("`"), [])
                        if (chapter, heading) not in places:
                            places.append((chapter, heading))
    return found


def page(book: Book) -> str:
    """The text of `book/names.md`."""
    from myst_parser.mdit_to_docutils.base import default_slugify

    entries, known = dict(tables.chapters(book)), taught(book)
    letters = {}
    for name in sorted(known, key=lambda name: (name.rpartition(".")[2].lower(), name)):
        places = "; ".join(
            tables.link(book, chapter, heading, default_slugify(heading))
            + f" ({tables.heading(entries[chapter])})"
            for chapter, heading in known[name]
        )
        letters.setdefault(name.rpartition(".")[2][0].upper(), []).append([f"`{name}`", places])
    parts = "\n\n".join(
        f"## {letter}\n\n{tables.table(['Name', 'Taught in'], rows)}" for letter, rows in letters.items()
    )
    return PAGE.format(count=len(known), parts=parts)
