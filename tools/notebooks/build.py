"""Turn sources into executed notebooks, those that changed and no others."""

import concurrent.futures
import dataclasses
import datetime
import json
import os
import platform
import re
import sys
import textwrap

import nbformat

from tools.notebooks import canonical, claims, inputs, kernel, record, sources
from tools.notebooks.places import Book, Problem
from tools.notebooks.sources import Source

# What a chapter has loaded and opened of the package, and the modules whose lines it has read, by `inspect.getsource` or for a
# traceback: their comments may show.
LOADED = """\
import json as _json, linecache as _linecache, sys as _sys
print(_json.dumps([sorted({
    module.__file__ for name, module in list(_sys.modules.items())
    if name.partition(".")[0] == "mlax_tutorial" and getattr(module, "__file__", None)
} | _sys._opened_files), sorted(name for name, lines in _linecache.cache.items() if len(lines) > 1)]))"""


@dataclasses.dataclass
class Executed:
    """A chapter that ran from top to bottom."""

    notebook: nbformat.NotebookNode
    seconds: float  # of processor time
    over: dict[int, float]  # the cells over their limit, by index, and what they took
    modules: list[str]
    printed: list[str]  # those of them whose lines it has read


def earlier(book: Book, name: str):
    path = book.notebook(name)
    return nbformat.read(path, as_version=4) if path.exists() else None


def plan(book: Book, source: Source, entry: dict | None, before) -> tuple[str, str]:
    """What must be done with a chapter, and why in words: "keep" it, "reword" it, that is, put its new text around the outputs of
    before, or "run" it. All that decides this stands here. `entry` is what was recorded when it last ran, `before` its notebook.
    """
    if before is None:
        return "run", "it has no notebook yet"
    if entry is None:
        return "run", "nothing is recorded of it"
    reworded = entry["source"] != inputs.source_hash(source)
    if reworded and code(canonical.skeleton(source)) != code(before):
        return "run", "its source changed"
    if entry["notebook"] != inputs.digest(book.notebook(source.name).read_bytes()):
        return "run", "its notebook was edited"
    if entry["package"] != inputs.package_hash(book, entry["modules"], entry["printed"]):
        return "run", "modules of mlax_tutorial that it imports changed"
    if entry["locked"] != inputs.locked(book):
        return "run", "the locked versions changed"
    return ("reword", "its text changed, and no code") if reworded else ("keep", "unchanged")


def code(notebook) -> list[str]:
    """The code cells, without the titles that Colab folds them under."""
    cells = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    return [re.sub(r"\A#@title [^\n]*\n", "", source) for source in cells]


def explain(source: Source, error: kernel.CellError) -> str:
    """An error in a cell, with the place in the source where it must be mended."""
    text = str(error)
    if source.lines[error.index] and (match := re.search(r"Cell In\[\d+\], line (\d+)", text)):
        added = len(canonical.skeleton(source).cells[error.index].source.splitlines()) - len(
            source.cells[error.index].source.splitlines()
        )
        line = source.lines[error.index] + int(match[1]) - 1 - added
        text = f"{source.path}, line {line}:\n{text}"
    message = textwrap.indent(text, "    ")
    return f"{source.place(error.index)} failed:\n{message}\nThe notebook of before is left as it was."


def execute(book: Book, source: Source, *, patience: float = 10.0) -> Executed:
    """Run a chapter in a fresh kernel. A cell may take `patience` times its limit before it is stopped."""
    notebook = canonical.skeleton(source)
    taken, loaded, read = {}, [], []
    if source.executes:
        with kernel.start(book, notebook, clean=True) as running:
            taken = running.run_all(lambda cell: patience * sources.cell_limit(cell))
            loaded, read = json.loads(running.ask(LOADED))
    limits = {index: sources.CORES * sources.cell_limit(notebook.cells[index]) for index in taken}
    over = {index: seconds for index, seconds in taken.items() if seconds > limits[index]}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata = {key: value for key, value in cell.metadata.items() if key != "execution"}
            cell.outputs = canonical.outputs(cell.outputs)
    loaded, read = (
        [os.path.relpath(path, book.root).replace(os.sep, "/") for path in paths] for paths in (loaded, read)
    )
    modules = [name for name in loaded if name.startswith("mlax_tutorial/") and inputs.shows(name)]
    return Executed(notebook, sum(taken.values()), over, modules, [name for name in modules if name in read])


def reword(source: Source, before) -> nbformat.NotebookNode:
    """The notebook with the source's new text and the outputs of before."""
    notebook = canonical.skeleton(source)
    now, stored = ([cell for cell in each.cells if cell.cell_type == "code"] for each in (notebook, before))
    for cell, old in zip(now, stored, strict=True):
        cell.outputs, cell.execution_count = old.outputs, old.execution_count
    return notebook


def new_entry(book: Book, source: Source, ran: Executed, text: str) -> dict:
    return {
        "title": source.title,
        "number": source.chapter.get("number"),
        "summary": source.chapter.get("summary", ""),
        "source": inputs.source_hash(source),
        "package": inputs.package_hash(book, ran.modules, ran.printed),
        "modules": ran.modules,
        "printed": ran.printed,
        "locked": inputs.locked(book),
        "notebook": inputs.digest(text.encode()),
        "seconds": record.rounded(ran.seconds),
        "hardware": record.hardware(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "jax": inputs.installed()["jax"],
        "date": datetime.date.today().isoformat(),
        "exercises": record.exercises(source.cells),
        "claims": claims.shown(source.cells),
    }


def build_one(book: Book, name: str, *, force: bool = False) -> str:
    """Build one chapter; returns what was done, in a line."""
    source = sources.read(book, name)
    title = source.title  # a missing one is told before anything runs
    entry, before = record.entry_of(book, name), earlier(book, name)
    what, why = ("run", "forced") if force else plan(book, source, entry, before)
    if what == "keep":
        return f"{name}: {why}"
    if what == "reword":
        notebook = reword(source, before)
        text = canonical.dumps(notebook)
        record.write_beside(book.notebook(name), text)
        ran = Executed(notebook, entry["seconds"], {}, entry["modules"], entry["printed"])
        kept = {key: entry[key] for key in ("seconds", "hardware", "python", "jax", "date")}
        record.store(book, name, new_entry(book, source, ran, text) | kept)
        return f"{name}: {title}: {why}; nothing ran"
    try:
        ran = execute(book, source)
    except kernel.CellError as error:
        raise Problem(explain(source, error)) from error
    same_surroundings = (
        entry is not None
        and entry["package"] == inputs.package_hash(book, ran.modules, ran.printed)
        and entry["locked"] == inputs.locked(book)
    )
    canonical.keep_earlier(ran.notebook, before, same_surroundings=same_surroundings)
    if source.executes:
        canonical.number(ran.notebook)
    text = canonical.dumps(ran.notebook)
    changed = record.write_beside(book.notebook(name), text)
    fresh = new_entry(book, source, ran, text)
    if entry is not None:
        inputs_of = ("source", "package", "modules", "printed", "locked", "notebook")
        if all(entry.get(key) == fresh[key] for key in inputs_of):
            kept = ("seconds", "hardware", "python", "jax", "date")
            fresh |= {key: entry[key] for key in kept if key in entry}
    record.store(book, name, fresh)
    what = "changed" if changed else "nothing changed"
    lines = [f"{name}: {title}: {why}; {ran.seconds:.0f} processor seconds, {what}"]
    if ran.seconds > (limit := sources.CORES * sources.CHAPTER_SECONDS):
        lines.append(f"{source.path}: took {ran.seconds:.0f} processor seconds of at most {limit:g}")
    for index, taken in ran.over.items():
        limit = sources.CORES * sources.cell_limit(source.cells[index])
        lines.append(f"{source.place(index)}: took {taken:.0f} processor seconds, its limit is {limit:g}")
    return "\n  warning: ".join(lines)


def build(book: Book, names, *, force: bool = False, jobs: int | None = None) -> int:
    """Build the chapters that need it, two at a time; returns how many failed."""
    inputs.require_locked(book)
    chosen = record.longest_first(book, book.select(names))
    jobs = jobs or min(2, os.cpu_count() or 1)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = {pool.submit(build_one, book, name, force=force): name for name in chosen}
        for task in concurrent.futures.as_completed(tasks):
            try:
                print(task.result(), flush=True)
            except Problem as problem:
                failed += 1
                print(f"\n{problem}\n", file=sys.stderr, flush=True)
    return failed
