"""The programs that a notebook's cells jit, found by running it with `jax.jit` recorded, compile for a TPU: on one chip and on eight."""

import nbformat

from tools.notebooks import kernel, sources
from tools.notebooks.places import Book

# reads: nothing else
BOOK = Book()


def code_cells(notebook):
    return [(index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]


def compiled(notebook, limit):
    """Runs a notebook, compiles what it jitted; yields a line for each program. A cell may take `limit(cell)` seconds."""
    with kernel.start(BOOK, notebook, clean=True) as running:
        running.ask("import tests.tpu.recording as _recording\n_recording.start()")
        for index, cell in code_cells(notebook):
            running.run(index, timeout=limit(cell))
        count = int(running.ask("print(len(_recording.programs))"))
        for number in range(count):
            yield running.ask(f"print(_recording.compile_one({number}))").strip()


def of_chapter(name):
    """A test of all programs of a chapter; who asks for it says in a line that it reads the notebook."""

    def test():
        notebook = nbformat.read(BOOK.notebook(name), as_version=4)
        lines = list(compiled(notebook, lambda cell: 8 * sources.cell_limit(cell)))
        print(*lines, sep="\n")
        assert lines, "the chapter trains, but nothing in it went through jax.jit"

    return test
