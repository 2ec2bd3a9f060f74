"""Programs are found and compiled, and each chapter that trains has a file in `chapters/`."""

import json
import pathlib

import nbformat
import pytest

from tests.tpu import chapters, programs


# reads: book/*.ipynb, tests/tpu/chapters/*, mlax_tutorial/checking/laws/__init__.py
def test_each_chapter_that_trains_has_a_file():
    notebooks = {path.stem: json.loads(path.read_text()) for path in programs.BOOK.folder.glob("*.ipynb")}
    training = {name for name, notebook in notebooks.items() if chapters.trains(name, notebook)}
    files = pathlib.Path(__file__).with_name("chapters").glob("test_*.py")
    texts = {path.stem.removeprefix("test_"): path.read_text() for path in files}
    assert texts.keys() == training
    for name, text in texts.items():
        assert f"# reads: book/{name}.ipynb\n" in text and f'of_chapter("{name}")' in text


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
        "# Meanwhile, products are rounded as on a TPU.\n"
        "assert float(jnp.dot(jnp.float32([1.001]), jnp.float32([1.0]))) == 1.0",
    )
    found = list(programs.compiled(notebook, lambda cell: 60))
    assert [one["function"] for one in found] == ["step", "run", "step", "count"]
    compiled = [one["programs"] for one in found]
    # A batch of 16, or 24, is also split over eight chips.
    assert [len(each) for each in compiled] == [2, 1, 2, 1]
    assert all(seconds > 0 for each in compiled for seconds in each.values())

    known = {fingerprint for each in compiled[1:] for fingerprint in each}
    again = [one["programs"] for one in programs.compiled(notebook, lambda cell: 60, known)]
    assert [each.keys() for each in again] == [each.keys() for each in compiled]
    assert [set(each.values()) == {None} for each in again] == [False, True, True, True]


def test_a_program_that_no_tpu_can_run_is_found():
    notebook = notebook_of(
        "import jax, jax.numpy as jnp\nenormous = jax.jit(lambda x: x + 1)\nenormous(jnp.ones(8))",
        "import tests.tpu.recording as recording\n"
        "((key, (name, program, shapes, batches)),) = recording.programs.items()\n"
        "recording.programs[key] = name, program, [jax.ShapeDtypeStruct((10**10,), jnp.float32)], batches",
    )
    with pytest.raises(Exception, match="RESOURCE_EXHAUSTED"):
        list(programs.compiled(notebook, lambda cell: 60))


def test_a_notebook_that_undoes_the_rounding_is_found():
    notebook = notebook_of(
        "import jax\n"
        "from jax.extend.core import primitives\n"
        "from jax.interpreters import mlir\n"
        "del mlir._platform_specific_lowerings['cpu'][primitives.dot_general_p]\n"
        "jax.clear_caches()",
    )
    with pytest.raises(AssertionError, match="products are not rounded"):
        list(programs.compiled(notebook, lambda cell: 60))
