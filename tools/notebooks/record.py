"""What is known of each chapter since it was last executed, in `book/_records`.

An entry changes only when the chapter did: building again, or on another machine, leaves it alone.
"""

import json
import math
import os
import pathlib
import re
import tempfile

from tools.notebooks.places import Book


def load(book: Book) -> dict[str, dict]:
    """The entries of all chapters by their names."""
    return {name: entry for name in book.names() if (entry := entry_of(book, name)) is not None}


def entry_of(book: Book, name: str) -> dict | None:
    """The entry of one chapter, if it was ever executed."""
    file = book.record(name)
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def write_beside(path: pathlib.Path, text: str) -> bool:
    """Write a whole file or none of it; False if it already says so."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    return True


def store(book: Book, name: str, entry: dict) -> None:
    book.records.mkdir(exist_ok=True)
    write_beside(book.record(name), json.dumps(entry, indent=1, ensure_ascii=False) + "\n")


def longest_first(book: Book, names: list[str]) -> list[str]:
    """An order in which two workers finish at about the same time."""
    entries = load(book)
    return sorted(names, key=lambda name: -entries.get(name, {}).get("seconds", 0))


def rounded(seconds: float) -> int:
    """Times in steps that a second run seldom crosses, upwards: whole seconds to 10, then in fives."""
    return max(1, math.ceil(seconds)) if seconds <= 10 else 5 * math.ceil(seconds / 5)


def hardware() -> str:
    """What the chapter ran on, in a few words."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"CPU, {cores} cores"


def exercises(cells) -> list[str]:
    """The names of the exercises that a chapter's cells check."""
    found = {}
    for cell in cells:
        if cell.cell_type == "code":
            found |= dict.fromkeys(re.findall(r"\bex\.(\w+)\.check\(", cell.source))
    return list(found)
