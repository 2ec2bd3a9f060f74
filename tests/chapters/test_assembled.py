"""What is taken out of a notebook, and what is left in it."""

import json

import pytest

from tests.chapters import assembled


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    def write(*cells, tags=()):
        listed = [{"cell_type": "code", "source": cell, "metadata": {"tags": list(tags)}} for cell in cells]
        (tmp_path / "sample.ipynb").write_text(json.dumps({"cells": listed}))
        monkeypatch.setattr(assembled, "ROOT", tmp_path)

    return write


def test_the_last_definition_and_what_it_needs(notebook):
    notebook(
        "import math\nhalf = 2\ndef area(r): return r",
        "def square(r): return r * r\n1 / 0",
        "def area(r): return math.pi * square(r) / half",
        "half = 1",
    )
    code = assembled.definitions("sample.ipynb", "area")
    assert 6.28 < code["area"](2) < 6.29  # with the half that stood above it


def test_what_is_bound_anew_takes_the_one_before(notebook):
    notebook(
        "def f(x): return x",
        "wrap = lambda g: lambda x: g(x) + 1",
        "f = wrap(f)\nx = 1",
        "x += 1\nx = x + f(x)",
    )
    assert assembled.definitions("sample.ipynb", "x")["x"] == 5


def test_a_name_that_no_cell_defines(notebook):
    notebook("y = 1", tags=["remove-cell"])
    with pytest.raises(LookupError, match="sample.ipynb: no cell defines x, y"):
        assembled.definitions("sample.ipynb", "x", "y")
