"""Rounded products, interpreted and lowered: both do the same, and what asks for the highest is left alone."""

import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import nbformat
import numpy as np
import pytest

from mlax_tutorial.inspection.jaxprs import round_products
from tools import rehearse
from tools.notebooks.places import Book
from tools.rehearse import is_rounding, rounded_products

ROOT = pathlib.Path(__file__).parents[2]
GENERATOR = np.random.default_rng(0)
LEFT = GENERATOR.normal(size=(5, 7)).astype(np.float32)
RIGHT = GENERATOR.normal(size=(7, 3)).astype(np.float32)
IMAGES = GENERATOR.normal(size=(2, 3, 8, 8)).astype(np.float32)
KERNELS = GENERATOR.normal(size=(4, 3, 3, 3)).astype(np.float32)


def to_bfloat16(x):
    """Rounding by NumPy's own arithmetic: to nearest, ties to even, on the upper half of the bits."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def product(precision=None):
    return lambda x, y: jnp.matmul(x, y, precision=precision)


def convolution(precision=None):
    return lambda x, y: jax.lax.conv(x, y, (1, 1), "SAME", precision=precision)


CASES = {"dot": (product, LEFT, RIGHT), "conv": (convolution, IMAGES, KERNELS)}


def ways(fun):
    """A function with products rounded, by interpreting and by lowering, eager and jitted."""

    def lowered(*args):
        with rounded_products():
            return fun(*args)

    def lowered_jitted(*args):
        with rounded_products():
            return jax.jit(fun)(*args)

    return [round_products(fun), jax.jit(round_products(jax.jit(fun))), lowered, lowered_jitted]


@pytest.mark.parametrize("case", CASES)
def test_inputs_are_rounded(case):
    make, left, right = CASES[case]
    exact = make()(left, right)
    wanted = make()(to_bfloat16(left), to_bfloat16(right))
    assert np.abs(exact - wanted).max() > 1e-3
    for rounded in ways(make()):
        np.testing.assert_allclose(rounded(left, right), wanted, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(make()(left, right), exact)  # and nothing is left behind


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", ["highest", (jax.lax.Precision.HIGHEST,) * 2])
def test_the_highest_precision_is_left_alone(case, precision):
    make, left, right = CASES[case]
    exact = make()(left, right)
    with rounded_products():
        np.testing.assert_array_equal(make(precision)(left, right), exact)
        with jax.default_matmul_precision("highest"):
            np.testing.assert_array_equal(make()(left, right), exact)
    np.testing.assert_array_equal(round_products(make(precision))(left, right), exact)
    with jax.default_matmul_precision("highest"):
        np.testing.assert_array_equal(round_products(make())(left, right), exact)


@pytest.mark.parametrize("precision", ["default", "high", ("highest", "default")])
def test_other_precisions_are_rounded(precision):
    wanted = product()(to_bfloat16(LEFT), to_bfloat16(RIGHT))
    with rounded_products():
        np.testing.assert_allclose(product(precision)(LEFT, RIGHT), wanted, rtol=0, atol=1e-5)
    np.testing.assert_allclose(round_products(product(precision))(LEFT, RIGHT), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_other_dtypes(dtype):
    left, right = (jnp.asarray(10 * x).astype(dtype) for x in (LEFT, RIGHT))

    def fun(x, y):
        return jnp.matmul(x, y, preferred_element_type="int32" if dtype == "int32" else "float32")

    exact = np.asarray(left).astype(np.float32) @ np.asarray(right).astype(np.float32)
    rounded = to_bfloat16(np.asarray(left).astype(np.float32)) @ to_bfloat16(
        np.asarray(right).astype(np.float32)
    )
    for way in ways(fun):
        got = way(left, right)
        assert got.dtype == fun(left, right).dtype
        np.testing.assert_allclose(got, exact if dtype == "int32" else rounded, rtol=1e-6, atol=1e-3)
    if dtype == "float16":
        assert np.abs(exact - rounded).max() > 1e-2


def test_the_backward_pass_is_rounded_too():
    def loss(x, y):
        return (product()(x, y) ** 2).sum() / 2

    x, y = to_bfloat16(LEFT), to_bfloat16(RIGHT)
    wanted = to_bfloat16(np.asarray(x @ y)) @ y.T
    assert np.abs(wanted - (LEFT @ RIGHT) @ RIGHT.T).max() > 1e-3
    for rounded in ways(jax.grad(loss)):
        np.testing.assert_allclose(rounded(LEFT, RIGHT), wanted, rtol=0, atol=1e-4)


def test_products_deep_inside():
    def fun(x):
        @jax.checkpoint
        def body(x, y):
            return jax.lax.cond(y[0] > -1e9, lambda x: jnp.tanh(x @ RIGHT @ RIGHT.T), lambda x: x, x), None

        return jax.jit(lambda x: jax.lax.scan(body, x, jnp.arange(9.0).reshape(3, 3))[0])(x)

    exact = fun(LEFT)
    results = [way(LEFT) for way in ways(fun)]
    assert jnp.abs(exact - results[0]).max() > 1e-3
    for result in results:
        np.testing.assert_allclose(result, results[0], rtol=0, atol=1e-5)


def test_a_program_compiled_before_is_rounded_and_later_not():
    fun = jax.jit(product())
    exact = fun(LEFT, RIGHT)
    jaxpr = str(jax.make_jaxpr(fun)(LEFT, RIGHT))
    with rounded_products():
        assert is_rounding()
        assert jnp.abs(fun(LEFT, RIGHT) - exact).max() > 1e-3
        assert str(jax.make_jaxpr(fun)(LEFT, RIGHT)) == jaxpr
    assert not is_rounding()
    np.testing.assert_array_equal(fun(LEFT, RIGHT), exact)


def test_any_program_from_the_command_line(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, jax.numpy as jnp\n"
        "x = jnp.float32([1.001])\n"
        "print(sys.argv[1:], float(jnp.dot(x, x)) == 1.0, float(jnp.dot(x, x, precision='highest')) == 1.0)\n"
    )
    command = [sys.executable, "-m", "tools.rehearse", "run", str(script), "--flag", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "['--flag', '1'] True False", done.stderr


def notebooks_in(folder):
    """The book, but for the notebooks, which are the test's own."""

    class Notebooks(Book):
        def notebook(self, name):
            return folder / f"{name}.ipynb"

        def relative(self, path):
            return path.name

    return Notebooks()


@pytest.mark.parametrize("precision", [None, "highest"])
def test_a_chapter_whose_assertion_misses_its_tolerance(tmp_path, precision):
    code = "import jax.numpy as jnp\nx = jnp.float32([1.001])\n"
    claim = f"assert abs(jnp.dot(x, x, precision={precision!r}) - 1.002001) < 1e-5"
    path = tmp_path / "chapter.ipynb"
    cells = [nbformat.v4.new_code_cell(code), nbformat.v4.new_code_cell(claim)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    passed, text = rehearse._notebook(str(path), book=notebooks_in(tmp_path))
    assert passed == (precision == "highest")
    if not passed:
        assert re.search("(?s)code cell 1 failed.*AssertionError", text)
        assert "rounding alone: fails" in text and "second-cpu alone: passes" in text
        assert "no-cpu alone: passes" in text


FUSED = """import jax, jax.numpy as jnp
x = jnp.full(64, 1.0001, jnp.float32)
square = jax.jit(lambda x: x * x)(x)
assert jnp.any(jax.jit(lambda x, y: x * x - y)(x, square) != 0), "the last bits differ"
"""


@pytest.mark.skipif(not rehearse.is_fusing(), reason="this CPU does not fuse multiplications and additions")
def test_a_chapter_that_depends_on_the_cpu(tmp_path):
    path = tmp_path / "chapter.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(FUSED)]), path)
    passed, text = rehearse._notebook(str(path), book=notebooks_in(tmp_path))
    assert not passed and "the last bits differ" in text
    assert "rounding alone: passes" in text and "second-cpu alone: fails" in text


ON_A_CPU = {
    "the backend": "jax.default_backend() == 'cpu'",
    "the compiled text": "'sine(' in f.lower(1.0).compile().as_text()",
    "the cost analysis": "'transcendentals' in f.lower(1.0).compile().cost_analysis()",
    "a result that is ready": "all(f(1.0).block_until_ready().is_ready() for _ in range(40))",
    "a result that is not": "not any(f(1.0).is_ready() for _ in range(40))",
}


def test_what_holds_on_a_cpu_alone_does_not_hold():
    names = {"jax": jax, "f": jax.jit(jnp.sin)}
    assert all(eval(holds, names) for holds in ON_A_CPU.values() if "not any" not in holds)
    stop = rehearse.pretend()
    try:
        assert not any(eval(holds, names) for holds in ON_A_CPU.values())
    finally:
        stop()


def test_to_pretend_ends():
    program = jax.jit(jnp.sin).lower(1.0).compile()
    text, costs = program.as_text(), program.cost_analysis()
    stop = rehearse.pretend()
    try:
        assert jax.default_backend() == "gpu"
        assert program.as_text() != text and set(program.cost_analysis()) < set(costs)
    finally:
        stop()
    assert jax.default_backend() == "cpu" and program.as_text() == text and program.cost_analysis() == costs
