"""What passed before, so that unchanged chapters need not run again.

A pass is remembered under a key made of everything it depended on: the notebook, the modules of the package that it
loads, the installed versions, Python, the settings of JAX and XLA in the environment, the kind of CPU, and the tool.
Change any of them and the chapter runs again. Nothing is remembered unless it is asked for (`--cached`).
"""

import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import sys

from tools.notebooks import inputs, record
from tools.notebooks.places import Book

# The tool's own modules that decide what "passed" means.
DECIDING = ("kernel.py", "run.py", "validation.py", "likeness.py", "passed.py", "nbval_sanitize.cfg")


@functools.cache
def _surroundings() -> bytes:
    installed = sorted(f"{dist.name} {dist.version}" for dist in importlib.metadata.distributions())
    settings = sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name.startswith(("JAX_", "XLA_", "PYTHONOPTIMIZE"))
    )
    return "\n".join([sys.version, platform.platform(), _cpu(), *installed, *settings]).encode()


def _cpu() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(
        dict.fromkeys(line for line in lines if line.startswith(("model name", "flags", "Features")))
    )


def key(book: Book, name: str, mode: str) -> str:
    """Everything that the outcome depends on, as one hash. `mode` is what was done: `compare`, `twice`."""
    notebook = book.notebook(name).read_bytes()
    entry = record.load(book).get(name)
    # The record knows which modules this very notebook loads; else any module might matter.
    known = entry is not None and entry["notebook"] == inputs.digest(notebook)
    modules = entry["modules"] if known else inputs.whole_package(book)
    tool = pathlib.Path(__file__).parent
    return inputs.digest(
        mode.encode(),
        notebook,
        inputs.package_hash(book, modules).encode(),
        _surroundings(),
        *((tool / file).read_bytes() for file in DECIDING),
    )


def _file(book: Book, key: str) -> pathlib.Path:
    return book.cache / "passed" / f"{key}.json"


def look_up(book: Book, key: str) -> dict | None:
    path = _file(book, key)
    return json.loads(path.read_text()) if path.exists() else None


def remember(book: Book, key: str, **facts) -> None:
    path = _file(book, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    record.write_beside(path, json.dumps(facts) + "\n")
