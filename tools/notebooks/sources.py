"""Read a chapter's source, a MyST text notebook, into cells."""

import dataclasses
import hashlib
import re

import jupytext.myst
import nbformat

from tools.notebooks import setup_cell
from tools.notebooks.places import Book, Problem

# The keys that a source's header may have under `chapter:`.
CHAPTER_KEYS = {"number", "accelerator", "summary", "execute", "seconds"}
ACCELERATORS = {"GPU": "T4", "TPU": "V5E1"}  # the kind of machine that Colab offers first

CELL_SECONDS = 20.0  # a cell's limit; the tag `limit-40s` raises it for one cell
CHAPTER_SECONDS = 60.0


@dataclasses.dataclass
class Source:
    """A chapter as its author wrote it, with the set-up cell inserted."""

    name: str
    path: str  # relative to the repository, for messages
    text: str
    chapter: dict
    cells: list[nbformat.NotebookNode]
    lines: list[int]  # of each cell, in the source, from 1; 0 for the set-up cell

    @property
    def title(self) -> str:
        """The first heading."""
        for cell in self.cells:
            if cell.cell_type == "markdown":
                for line in cell.source.splitlines():
                    if match := re.match(r"#\s+(.*\S)", line):
                        return match[1]
        raise Problem(f"{self.path}: no title: start the first markdown cell with '# Title'")

    @property
    def executes(self) -> bool:
        return self.chapter.get("execute", True)

    def place(self, index: int) -> str:
        """How a message names the cell: its number among the code cells as nbval counts, and its line."""
        if self.cells[index].cell_type == "code":
            number = sum(cell.cell_type == "code" for cell in self.cells[:index])
            what = f"code cell {number}"
        else:
            what = "markdown cell"
        where = f"line {self.lines[index]}" if self.lines[index] else "the set-up cell that the tool inserts"
        return f"{self.path}: {what} ({where})"


def tags(cell) -> list[str]:
    return list(cell.metadata.get("tags", []))


def cell_limit(cell) -> float:
    """Seconds that the cell may take."""
    for tag in tags(cell):
        if match := re.fullmatch(r"limit-(\d+)s", tag):
            return float(match[1])
    return CELL_SECONDS


def _first_line(text: str, start: int, cell) -> int:
    """The line, from 1, of a cell's first line; its block, fence and options included, begins at or after `start`."""
    first = cell.source.split("\n")[0].strip()
    for number, line in enumerate(text.splitlines()[start:], start=start + 1):
        if line.strip() == first:
            return number
    return start + 1


def read(book: Book, name: str) -> Source:
    """The chapter's cells, the set-up cell after the first markdown cell; ids are hashes of the cells."""
    path = book.source(name)
    where = book.relative(path)
    if not path.exists():
        raise Problem(f"{where} does not exist")
    text = path.read_text(encoding="utf-8")
    try:
        notebook = jupytext.myst.myst_to_notebook(text, add_source_map=True)
    except Exception as error:
        raise Problem(f"{where}: cannot be read as a MyST notebook: {error}") from error
    chapter = dict(notebook.metadata.get("chapter", {}))
    if unknown := set(chapter) - CHAPTER_KEYS:
        raise Problem(f"{where}: unknown keys under `chapter:` in the header: {', '.join(sorted(unknown))}")
    if chapter.get("accelerator") not in {None, *ACCELERATORS}:
        raise Problem(f"{where}: `accelerator` must be one of {', '.join(ACCELERATORS)}")

    cells = list(notebook.cells)
    lines = [
        _first_line(text, start, cell)
        for start, cell in zip(notebook.metadata["source_map"], cells, strict=True)
    ]
    if not cells or cells[0].cell_type != "markdown":
        raise Problem(f"{where}: the first cell must be markdown, with the title")
    cells.insert(1, setup_cell.cell(book))
    lines.insert(1, 0)
    seen = {}
    for cell in cells:
        key = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[key] = seen.get(key, 0) + 1
        cell["id"] = key if seen[key] == 1 else f"{key}-{seen[key]}"
    return Source(name, where, text, chapter, cells, lines)
