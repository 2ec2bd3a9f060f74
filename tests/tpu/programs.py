"""The programs that a notebook's cells jit compile for a TPU: on one chip and on eight.

They are found by running it with `jax.jit` recorded, in a kernel that rehearses other devices' rounding, too (`tools.rehearse`),
so that a chapter that trains need not run a third time for that.
"""

import json

import nbformat
import pytest

from tests.tpu.remembered import Programs
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


def compiled(notebook, limit, known=()):
    """Runs a notebook, compiles what it jitted unless it is known to compile; yields, for each function, what
    `recording.compile_one` returns. A cell may take `limit(cell)` seconds.

    What is traced does not depend on how products are rounded: that is decided when a program is lowered for the CPU.
    """
    with rehearse.kernel_for(BOOK, notebook) as running:
        running.ask("import tests.tpu.recording as _recording\n_recording.start()")
        for index, cell in code_cells(notebook):
            running.run(index, timeout=limit(cell))
        count = int(running.ask("print(len(_recording.programs))"))
        assert (problem := rehearse.lost(running)) is None, problem
        for number in range(count):
            said = running.ask(
                f"import json as _json; print(_json.dumps(_recording.compile_one({number}, {sorted(known)})))"
            )
            (line,) = [line for line in said.splitlines() if line.startswith("{")]  # the rest are warnings
            yield json.loads(line)


def of_chapter(name):
    """A test of all programs of a chapter; who asks for it says in a line that it reads the notebook."""

    def test():
        path = BOOK.relative(BOOK.notebook(name))
        notebook = nbformat.read(BOOK.notebook(name), as_version=4)
        with Programs().of(path) as programs:
            try:
                for one in compiled(notebook, lambda cell: 10 * sources.cell_limit(cell), programs.known):
                    programs.add(one["programs"])
                    print(one["function"], *map(seconds_or_known, one["programs"].values()))
            except kernel.CellError as error:
                told = explain(path, notebook, 1, error)
                pytest.fail(f"{told}\n{WHY.format(name=name)}", pytrace=False)
            assert programs.found, "the chapter trains, but nothing in it went through jax.jit"

    return test


def seconds_or_known(seconds):
    return "known" if seconds is None else f"{seconds:.1f} s"
