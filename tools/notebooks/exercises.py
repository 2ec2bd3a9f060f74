"""The exercises of the chapters, and the page `book/exercises.md` that lists them.

An exercise has a heading in its chapter, `### Exercise: NAME ★★☆ (10 min)`, a file `mlax_tutorial/exercises/CHAPTER/NAME.py`, and
a line in the listing beside it, `__init__.py`. The files are read as text: nothing of them runs.
"""

import ast
import dataclasses
import pathlib
import re

from tools.notebooks import sources, tables
from tools.notebooks.places import Book, Problem

PAGE = """\
---
description: All exercises of the book, chapter by chapter, with what they ask, how hard they are, and how long they take.
---

# Exercises

{count} exercises, each with a checker, hints and a solution; its name in code stands behind its title. The stars tell how hard
one is; the minutes are a guess. In a terminal, `python -m mlax_tutorial exercises` lists them as well, says which of them you have solved, and which one is next.

{chapters}
"""


@dataclasses.dataclass(frozen=True)
class Exercise:
    name: str
    title: str
    stars: int
    minutes: int

    @property
    def heading(self) -> str:
        """What stands above it in the chapter."""
        return f"Exercise: {self.name} {drawn(self.stars)} ({self.minutes} min)"


def drawn(stars: int) -> str:
    return "★" * stars + "☆" * (3 - stars)


def folder(book: Book, name: str) -> pathlib.Path:
    """Where a chapter's exercises lie."""
    return book.package / "exercises" / name


def defined(book: Book, name: str) -> list[Exercise]:
    """The exercises of a chapter, in the order of its listing."""
    listing = folder(book, name) / "__init__.py"
    if not listing.exists():
        return []
    lines = ast.parse(listing.read_text(encoding="utf-8")).body
    return [
        _read(folder(book, name) / f"{alias.asname}.py", alias.asname)
        for line in lines
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
        if alias.name == "exercise"
    ]


def _read(path: pathlib.Path, name: str) -> Exercise:
    """The exercise of a file: its last statement."""
    match ast.parse(path.read_text(encoding="utf-8")).body[-1]:
        case ast.Assign([ast.Name("exercise")], ast.Call(ast.Name("Exercise"), _, keywords)):
            given = {k.arg: k.value.value for k in keywords if isinstance(k.value, ast.Constant)}
            return Exercise(name, given["title"], given["stars"], given["minutes"])
    raise Problem(f"{path}: its last statement should be `exercise = Exercise(...)`")


def headings(cells) -> list[str]:
    """The headings of exercises in a chapter's text, in their order."""
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    return [match[1] for text in texts for match in sources.EXERCISE.finditer(text)]


def tasks(cells):
    """Pairs of an exercise's name and what is asked: the text from its heading on to the next one, without code."""
    texts = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for match in sources.EXERCISE.finditer(texts):
        yield match[2], re.split(r"^#{2,4} ", texts[match.end() :], maxsplit=1, flags=re.MULTILINE)[0]


def _slug(heading: str) -> str:
    """The anchor that the rendered page gives to a heading."""
    from myst_parser.mdit_to_docutils.base import default_slugify

    return default_slugify(heading)


def page(book: Book) -> str:
    """The text of `book/exercises.md`."""
    count, parts = 0, []
    for name, entry in tables.chapters(book):
        if not entry["exercises"] or not book.source(name).exists():
            continue
        written = headings(sources.read(book, name).cells)
        rows = []
        for exercise in sorted(
            (each for each in defined(book, name) if each.heading in written),
            key=lambda each: written.index(each.heading),
        ):
            number = f"{entry['number']}.{written.index(exercise.heading) + 1} " if entry["number"] else ""
            title = number + tables.plain(exercise.title)
            rows.append(
                [
                    f"{tables.link(book, name, title, _slug(exercise.heading))} `{exercise.name}`",
                    drawn(exercise.stars),
                    f"{exercise.minutes} min",
                ]
            )
        count += len(rows)
        if rows:
            table = tables.table(["Exercise", "Stars", "Time"], rows)
            parts.append(f"## {tables.link(book, name, tables.heading(entry))}\n\n{table}")
    return PAGE.format(count=count, chapters="\n\n".join(parts))
