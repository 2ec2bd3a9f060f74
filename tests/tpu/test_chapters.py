"""The chapters that train: what each of them jits compiles for a TPU.

On the newest JAX they are compiled here, and on the oldest where the chapter is opened as on Colab (`tests/colab`): the kernel that
runs a chapter there finds its programs, too. (What a module of the package jits when it is imported is not among them there;
`test_library.py` compiles the library.)
"""

import nbformat
import pytest

from tests.tpu.programs import BOOK, compiled
from tools import rehearse
from tools.notebooks import kernel, sources
from tools.notebooks.record import longest_first
from tools.notebooks.run import explain

WHY = """It ran with products rounded as on a TPU, without instructions beyond AVX, and with `jax.jit` recorded. Whether it was one
of the first two, and which, says `.venv/bin/python -m tools.rehearse notebooks {name}`."""
TRAINING = [
    f"book/{name}.ipynb"
    for name in longest_first(BOOK, BOOK.names())
    if rehearse.trains(name, sources.read(BOOK, name).cells)
]


@pytest.mark.parametrize("path", TRAINING)
def test_its_programs_compile(path):
    notebook = nbformat.read(BOOK.root / path, as_version=4)
    found = False
    try:
        for found in compiled(notebook, lambda cell: 10 * sources.cell_limit(cell)):
            print(found["function"], *(f"{seconds:.1f} s" for seconds in found["seconds"]))
    except kernel.CellError as error:
        told = explain(path, notebook, 1, error)
        pytest.fail(f"{told}\n{WHY.format(name=BOOK.root.joinpath(path).stem)}", pytrace=False)
    assert found, "the chapter trains, but nothing in it went through jax.jit"
