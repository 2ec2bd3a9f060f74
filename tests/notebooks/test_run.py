"""Every chapter runs from top to bottom, twice, in one kernel, whatever it puts out."""

import json

import pytest

from tools.notebooks import run

from .conftest import UNREACHABLE, read, write


def keep(book, *sources: str) -> None:
    """A notebook of these code cells and no set-up cell, so that it starts fast."""
    notebook = read(book)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"][: len(sources)]
    for cell, source in zip(code, sources, strict=True):
        cell.source, cell.outputs = source, []
        cell.metadata = {}
    notebook.cells = code
    write(book, notebook)


def test_outputs_are_not_compared_and_the_run_can_be_recorded(book, capsys):
    keep(book, "from mlax_tutorial import ANSWER\nprint('not what was stored')")
    assert run.run(book, [], lines=True) == 0
    said, line, whole = capsys.readouterr().out.splitlines()
    assert said.startswith("sample: ")
    assert whole.startswith("1 of 1 chapters ran from top to bottom 2 times")
    book.devices.write_text(line + "\n")
    from tools.notebooks import pages

    assert pages.devices(book) == [json.loads(line)]


def test_assertions_must_hold(book, capsys):
    keep(book, "x = 1", "assert x == 2, 'not so'")
    assert run.run(book, []) == 1
    said = capsys.readouterr()
    assert "book/sample.ipynb: code cell 1 failed in pass 1" in said.err
    assert "AssertionError: not so" in said.err
    assert "0 of 1 chapters" in said.out


def test_a_chapter_that_runs_only_once_fails(book, capsys):
    keep(book, "first = 'done' not in globals()", "done = True\nassert first, 'state was left behind'")
    assert run.run(book, [], times=1) == 0
    assert run.run(book, []) == 1
    assert "code cell 1 failed in pass 2" in capsys.readouterr().err


def test_a_leak_is_looked_for_twice(book, capsys):
    """Once, JAX may have taken garbage for a leak."""
    keep(book, "import jax", *(UNREACHABLE.replace("{skipped}", str(number)) for number in (0, 1, 2)))
    assert run.run(book, [], times=1) == 1
    said = capsys.readouterr().err
    assert "code cell 3 failed" in said and "Leaked trace" in said


def test_each_chapter_starts_in_an_empty_folder_with_its_own_progress(book):
    keep(
        book,
        "import os, pathlib\n"
        "assert os.environ['MLAX_TUTORIAL_PROGRESS'].startswith(str(pathlib.Path.cwd().parent))\n"
        "assert not list(pathlib.Path.cwd().iterdir())",
    )
    assert run.run(book, [], times=1) == 0


def test_a_chapter_that_is_not_executed(book, capsys):
    path = book.source("sample")
    path.write_text(path.read_text().replace("  number: 1\n", "  number: 1\n  execute: false\n"))
    assert run.run(book, []) == 0
    assert "sample: skipped, its header says `execute: false`" in capsys.readouterr().out


@pytest.mark.parametrize("names, chosen", [([], ["sample"]), (["book/_src/sample.md"], ["sample"])])
def test_chapters_are_named_as_one_likes(built, names, chosen):
    assert built.select(names) == chosen
