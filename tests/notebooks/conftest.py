"""A small book in a folder of its own: built once, and copied for each test that tampers with it."""

import json
import pathlib
import shutil

import nbformat
import pytest

from tools.notebooks import build, record
from tools.notebooks.places import Book

SAMPLE = pathlib.Path(__file__).parent / "sample"

PYPROJECT = """\
[project]
name = "mlax-tutorial"
[project.urls]
Repository = "https://github.com/someone/some-book"
[tool.mlax-tutorial]
revision = "v1"
"""

PACKAGE = """\
import pathlib

import mlax_tutorial.checking.laws

ANSWER = int((pathlib.Path(__file__).parent / "answer.txt").read_text())
"""

README = "# Title\n\n<!-- chapters:begin -->\n<!-- chapters:end -->\n\nThe end.\n"


def new_book(root: pathlib.Path) -> Book:
    """A repository with a package of one number, and what checks it, and one chapter, not yet built."""
    book = Book(root)
    book.sources.mkdir(parents=True)
    (book.package / "checking" / "laws").mkdir(parents=True)
    (root / "pyproject.toml").write_text(PYPROJECT)
    (book.package / "__init__.py").write_text(PACKAGE)
    (book.package / "answer.txt").write_text("42")
    for module in ("checking", "checking/laws"):
        (book.package / module / "__init__.py").touch()
    (book.folder / "conftest.py").write_text("from tools.notebooks.validation import *  # noqa: F403\n")
    book.readme.write_text(README)
    book.claims.write_text(json.dumps({"X1": {"statement": "a third is no decimal", "chapters": ["sample"]}}))
    shutil.copy(SAMPLE / "sample.md", book.source("sample"))
    return book


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Book:
    """The sample, built; do not change it."""
    book = new_book(tmp_path_factory.mktemp("built"))
    build.build_one(book, "sample")
    edit_record(book, seconds=1)  # the machine may be busy
    from tools.notebooks import pages

    pages.write(book)
    return book


@pytest.fixture
def book(built, tmp_path) -> Book:
    """A copy of the built sample, to tamper with."""
    shutil.copytree(built.root, tmp_path / "book", dirs_exist_ok=True)
    return Book(tmp_path / "book")


@pytest.fixture
def empty_book(tmp_path) -> Book:
    """The sample before it is built."""
    return new_book(tmp_path / "book")


def read(book: Book, name: str = "sample") -> nbformat.NotebookNode:
    return nbformat.read(book.notebook(name), as_version=4)


def write(book: Book, notebook, name: str = "sample") -> None:
    nbformat.write(notebook, book.notebook(name))


def edit_record(book: Book, **changes) -> None:
    record.store(book, "sample", record.load(book)["sample"] | changes)


def edit_source(book: Book, old: str, new: str) -> None:
    path = book.source("sample")
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the sample"
    path.write_text(text.replace(old, new))


# A value that no name leads to, but that lives until a collection of garbage; and Python skips some of those.
UNREACHABLE = """\
import gc, jax
jax.config.update("jax_check_tracer_leaks", True)
gc.disable()
def run(skipped):
    def skip():
        nonlocal skipped
        skipped -= 1
        return 0 if skipped >= 0 else collect()
    def circle(x):
        values = [x + 1]
        values.append(values)
        return x
    collect, gc.collect = gc.collect, skip
    try:
        jax.jit(circle)(1.0)
    finally:
        gc.collect = collect
run({skipped})"""
