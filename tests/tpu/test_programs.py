"""The programs of a notebook are found and compiled."""

import nbformat
import pytest

from tests.tpu import programs


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
        "from jax import export\n"
        "weights = {'w': jnp.ones(3)}\n"
        "assert export.export(step, platforms=['tpu'])(weights, jnp.ones((16, 2)), n=2).platforms == ('tpu',)",
        "# What is bound to devices of this machine cannot be compiled for others.\n"
        "mesh = jax.make_mesh((1,), ('d',), axis_types=(jax.sharding.AxisType.Auto,))\n"
        "summed = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, 'd'), mesh=mesh, in_specs=jax.P('d'), out_specs=jax.P()))\n"
        "assert summed(jnp.ones(8)).shape == (8,)",
        "# Meanwhile, products are rounded as on a TPU.\n"
        "assert float(jnp.dot(jnp.float32([1.001]), jnp.float32([1.0]))) == 1.0",
    )
    found = list(programs.compiled(notebook, lambda cell: 60))
    assert [one["function"] for one in found] == ["step", "run", "step", "count"]
    # A batch of 16, or 24, is also split over eight chips.
    assert [len(one["seconds"]) for one in found] == [2, 1, 2, 1]


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
