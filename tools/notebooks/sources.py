"""Read a chapter's source, a MyST text notebook, into cells."""

import dataclasses
import hashlib
import re

import jupytext.myst
import nbformat

from tools.notebooks import fences, setup_cell
from tools.notebooks.places import Book, Problem

# The keys that a source's header may have under `chapter:`.
CHAPTER_KEYS = {"number", "accelerator", "summary", "execute", "needs"}
ACCELERATORS = {"GPU": "T4", "TPU": "V5E1"}  # the kind of machine that Colab offers first

# How fast a chapter is read: words of prose, and lines of code that are shown, in a minute.
WORDS, LINES = 200, 15
EXERCISE = re.compile(r"^#{2,4}\s+(Exercise: (\w+) ([★☆]{3}) \((\d+) min\))[ \t]*$", re.MULTILINE)
UNSEEN = {"hide-cell", "hide-input", "remove-cell"}  # tags of cells whose code the page does not show at once

CELL_SECONDS = 20.0  # of two cores: a cell's limit; the tag `limit-40s` raises it for one cell
CHAPTER_SECONDS = 100.0  # most take half of it; those that train and ship a language model need it
CORES = 2  # for which the limits are made; what is compared with them are processor seconds


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
    source = Source(name, where, text, chapter, cells, lines)
    for index, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            try:
                fences.to_notebook(cell.source, name, book.root)
            except fences.FenceError as error:
                raise Problem(f"{source.place(index)}: {error}") from None
    if "number" in chapter:
        _add_facts(book, source)
    return source


def _add_facts(book: Book, source: Source) -> None:
    """Put the chapter's header under its title: how long it takes, what it needs, teaches and runs on."""
    needed = []
    for name in source.chapter.get("needs", ()):
        if not book.source(name).exists():
            raise Problem(f"{source.path}: `needs` names {name!r}, which is no chapter in book/_src/")
        needed.append(f"[{_title(book, name)}]({name}.ipynb)")
    accelerator = source.chapter.get("accelerator")
    facts = {
        "Time": f"{reading_minutes(source)} minutes to read, {exercise_minutes(source)} minutes of exercises",
        "Needs": ", ".join(needed) or "Python and NumPy",
        "Teaches": source.chapter.get("summary", ""),
        "Runs on": "any CPU" + (f", faster on a {accelerator}, which Colab offers" if accelerator else ""),
    }
    lines = "\n".join(f"{name}: {value}" for name, value in facts.items() if value)
    first = source.cells[0]
    first["source"] = re.sub(
        r"^(#\s+.*)$",
        lambda title: f"{title[1]}\n\n:::{{facts}}\n{lines}\n:::",
        first["source"],
        count=1,
        flags=re.M,
    )


def _title(book: Book, name: str) -> str:
    found = re.search(r"^#\s+(.*\S)", book.source(name).read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else name


def reading_minutes(source: Source) -> int:
    """How long the text and the code that is shown take to read, in steps of five minutes."""
    words = lines = 0
    for cell in source.cells:
        if cell.cell_type == "markdown":
            words += len(re.sub(r"^:::.*$|\]\([^)]*\)", "", cell.source, flags=re.MULTILINE).split())
        elif not UNSEEN & set(tags(cell)):
            lines += len(cell.source.splitlines())
    return max(5, 5 * round((words / WORDS + lines / LINES) / 5))


def exercise_minutes(source: Source) -> int:
    """What the headings of the chapter's exercises add up to."""
    texts = (cell.source for cell in source.cells if cell.cell_type == "markdown")
    return sum(int(match[4]) for text in texts for match in EXERCISE.finditer(text))
