"""The programs that a notebook's cells jit compile for a TPU: on one chip and on eight.

They are found by running it with `jax.jit` recorded, in a kernel that rehearses other devices' rounding, too (`tools.rehearse`),
so that a chapter that trains need not run a third time for that.
"""

import nbformat
import pytest

from tools import rehearse
from tools.notebooks import kernel, sources
from tools.notebooks.places import Book
from tools.notebooks.run import explain

# reads: nothing else
BOOK = Book()
WHY = """It ran with products rounded as on a TPU, without instructions beyond AVX, and with `jax.jit` recorded. Whether it was one
of the first two, and which, says `.venv/bin/python -m tools.rehearse notebooks {name}`."""


def code_cells(notebook):
    return [(index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]


def compiled(notebook, limit):
    """Runs a notebook, compiles what it jitted; yields a line for each program. A cell may take `limit(cell)` seconds.

    What is traced does not depend on how products are rounded: that is decided when a program is lowered for the CPU.
    """
    with rehearse.kernel_for(BOOK, notebook) as running:
        running.ask("import tests.tpu.recording as _recording\n_recording.start()")
        for index, cell in code_cells(notebook):
            running.run(index, timeout=limit(cell))
        count = int(running.ask("print(len(_recording.programs))"))
        assert (problem := rehearse.lost(running)) is None, problem
        for number in range(count):
            yield running.ask(f"print(_recording.compile_one({number}))").strip()


def of_chapter(name):
    """A test of all programs of a chapter; who asks for it says in a line that it reads the notebook."""

    def test():
        notebook = nbformat.read(BOOK.notebook(name), as_version=4)
        try:
            lines = list(compiled(notebook, lambda cell: 10 * sources.cell_limit(cell)))
        except kernel.CellError as error:
            told = explain(BOOK.relative(BOOK.notebook(name)), notebook, 1, error)
            pytest.fail(f"{told}\n{WHY.format(name=name)}", pytrace=False)
        print(*lines, sep="\n")
        assert lines, "the chapter trains, but nothing in it went through jax.jit"

    return test
