"""Each chapter that trains: all programs that its cells jit compile for a TPU, on one chip and on eight.

The programs are found by running the chapter with `jax.jit` recorded.
"""

import re

import nbformat
import pytest

from tools.notebooks import kernel, sources
from tools.notebooks.places import Book

# reads: book/*.ipynb, book/_src/*.md
BOOK = Book()
# It counts the Python calls behind a call of `jit`, which a recorder adds to. Its programs are those of the chapter on layers.
TAKES_JIT_APART = {"objects"}


def code_cells(notebook):
    return [(index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]


def trains(name):
    """A chapter trains if it uses an optimizer. (Those of Part I take `jit` itself apart, which a recorder disturbs.)"""
    if name in TAKES_JIT_APART or not BOOK.notebook(name).exists():
        return False
    notebook = nbformat.read(BOOK.notebook(name), as_version=4)
    return any(re.search(r"\b(optax|optim)\b", cell.source) for _, cell in code_cells(notebook))


def programs_of(book, notebook, limit):
    """Runs a notebook, compiles what it jitted; yields a line for each program."""
    with kernel.start(book, notebook, clean=True) as running:
        running.ask("import tests.tpu.recording as _recording\n_recording.start()")
        for index, cell in code_cells(notebook):
            running.run(index, timeout=limit(cell))
        count = int(running.ask("print(len(_recording.programs))"))
        for number in range(count):
            yield running.ask(f"print(_recording.compile_one({number}))").strip()


@pytest.mark.parametrize("name", [name for name in BOOK.names() if trains(name)])
def test_chapter(name):
    notebook = nbformat.read(BOOK.notebook(name), as_version=4)
    lines = list(programs_of(BOOK, notebook, lambda cell: 8 * sources.cell_limit(cell)))
    print(*lines, sep="\n")
    assert lines, "the chapter trains, but nothing in it went through jax.jit"


def notebook_of(*cells):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


def test_programs_are_found():
    notebook = notebook_of(
        "import functools, jax, jax.numpy as jnp",
        "@functools.partial(jax.jit, static_argnames='n', donate_argnums=0)\n"
        "def step(weights, x, n):\n"
        "    return jax.tree.map(lambda w: w - n * x.sum(), weights)\n"
        "weights = step({'w': jnp.ones(3)}, jnp.ones((16, 2)), n=2)\n"
        "weights = step(weights, jnp.ones((16, 2)), n=2)",
        "class Model:\n"
        "    @functools.partial(jax.jit, static_argnums=0)\n"
        "    def run(self, x):\n"
        "        return step({'w': x}, x, n=1)\n"
        "assert Model().run(jnp.ones((3, 3)))['w'].shape == (3, 3)",
        "assert step({'w': jnp.ones(3)}, jnp.ones((24, 2)), n=2)['w'].shape == (3,) and step._cache_size() >= 2",
        "traces = 0\n"
        "@jax.jit\n"
        "def count(x):\n"
        "    global traces\n"
        "    traces += 1\n"
        "    return jax.grad(lambda x: x**2)(scale * x)\n"
        "scale = 2.0\n"
        "count(1.0), count(2.0)\n"
        "assert traces == 1, traces\n"
        "del scale",
    )
    lines = list(programs_of(BOOK, notebook, lambda cell: 60))
    assert [line.split(":")[0] for line in lines] == ["step", "run", "step", "count"]


def test_a_program_that_no_tpu_can_run_is_found():
    notebook = notebook_of(
        "import jax, jax.numpy as jnp\nenormous = jax.jit(lambda x: x + 1)\nenormous(jnp.ones(8))",
        "import tests.tpu.recording as recording\n"
        "((key, (name, program, shapes, batches)),) = recording.programs.items()\n"
        "recording.programs[key] = name, program, [jax.ShapeDtypeStruct((10**10,), jnp.float32)], batches",
    )
    with pytest.raises(Exception, match="RESOURCE_EXHAUSTED"):
        list(programs_of(BOOK, notebook, lambda cell: 60))


def test_there_are_chapters_that_train():
    assert [name for name in BOOK.names() if trains(name)]
