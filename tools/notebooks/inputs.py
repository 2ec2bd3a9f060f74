"""What a chapter depends on, as hashes: its source, the set-up cell, the package's modules, the locked versions."""

import ast
import functools
import hashlib
import importlib.metadata
import re
import tomllib

from tools.notebooks import canonical
from tools.notebooks.places import Book, Problem
from tools.notebooks.sources import Source

# The packages whose version shows in stored outputs: values, and figures.
SHOWN = ("jax", "jaxlib", "numpy", "optax", "matplotlib")
# Modules that hold no more than which others there are.
LISTINGS = {f"mlax_tutorial/{name}/__init__.py" for name in ("viz", "viz/figures", "inspection")}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def digest(*parts: bytes) -> str:
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8))
        hasher.update(part)
    return hasher.hexdigest()[:16]


def source_hash(source: Source) -> str:
    """The source's text, and the cells that become of it: the set-up cell among them."""
    cells = canonical.skeleton(source).cells
    return digest(source.text.encode(), *(cell.source.encode() for cell in cells))


def shows(module: str) -> bool:
    """Whether what a module of the package does shows in a chapter, so that its outputs are made anew when the module changes.

    What grades exercises, `mlax_tutorial/checking/*.py`, is imported by every chapter and shows in none but by the few lines that
    the check of an unsolved stub prints. Nbval compares these, as all outputs: if they change, it fails, and `build --force`
    makes the chapters anew. The laws in a folder below it do show. `LISTINGS` only say in which module what is.
    """
    return module.rpartition("/")[0] != "mlax_tutorial/checking" and module not in LISTINGS


def package_hash(book: Book, modules: list[str], printed: list[str]) -> str:
    """The code of the modules that show in the chapter and that it had loaded when it was last executed, and the content of the
    package's other files that it had opened. Comments and docstrings count in what it had printed, and nowhere else.
    """
    parts = []
    for name in modules:
        path = book.root / name
        text = path.read_bytes() if path.exists() else b"missing"
        parts += [name.encode(), code(text) if name.endswith(".py") and name not in printed else text]
    return digest(*parts)


@functools.cache
def code(text: bytes) -> bytes:
    """A Python file without comments, docstrings and layout; as it is, if it is not Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree).encode()


@functools.cache
def locked(book: Book) -> dict[str, str]:
    """The newest locked version of each package that shows in outputs; the lock holds the oldest ones, too."""
    if not book.lock.exists():
        return {}
    with open(book.lock, "rb") as file:
        packages = tomllib.load(file)["package"]
    versions = {}
    for package in packages:
        if package["name"] in SHOWN:
            key = tuple(int(part) for part in re.findall(r"\d+", package["version"]))
            versions[package["name"]] = max(
                versions.get(package["name"], ((), "")), (key, package["version"])
            )
    return {name: version for name, (_, version) in sorted(versions.items())}


def installed() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in SHOWN}


def require_locked(book: Book) -> None:
    """Stored outputs come from the locked versions only."""
    for name, version in locked(book).items():
        if (here := importlib.metadata.version(name)) != version:
            raise Problem(
                f"this Python has {name} {here}, the lock says {version}: stored outputs come from the locked "
                "versions. Run `make env`, then `.venv/bin/python -m tools.notebooks build`"
            )
