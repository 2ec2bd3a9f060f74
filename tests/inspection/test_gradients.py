"""Derivatives held against measured slopes: right ones of all kinds agree, planted errors are found."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mlax_tutorial.inspection import gradients
from tests.settings import configured

X = jnp.linspace(-1.0, 2.0, 7)
PARAMS = {"in": jnp.sin(jnp.arange(12.0)).reshape(3, 4), "out": [jnp.cos(jnp.arange(4.0)), jnp.int32(3)]}


def network(params, x):
    return jnp.tanh(x @ params["in"]) @ params["out"][0] * params["out"][1]


RIGHT = {
    "sine": (jnp.sin, (0.0,)),
    "at a large number": (jnp.sin, (1000.0,)),
    "small and large numbers": (jnp.log, (jnp.array([1e-4, 1.0, 1e4]),)),
    "vector to scalar": (lambda x: jnp.sum(x**3), (X,)),
    "vector to vector": (jnp.cumsum, (X,)),
    "tree": (network, (PARAMS, jnp.ones((2, 3)))),
    "scan": (lambda x: lax.scan(lambda c, v: (jnp.sin(c + v),) * 2, 0.0, x), (X,)),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), (X,)),
    "while": (lambda x: lax.while_loop(lambda v: v < 9.0, lambda v: v * v, x), (1.3,)),
    "checkpoint": (jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))), (X,)),
    "second order": (jax.grad(lambda x: jnp.sum(x**4)), (X,)),
    "sorting": (jnp.sort, (X,)),
    "complex input": (lambda z: jnp.abs(z) ** 2, (jnp.array([1 + 2j, 0.5 - 1j]),)),
    "complex result": (jnp.fft.fft, (X.astype(complex),)),
    "zero slope": (lambda x: 0.0 * x, (X,)),
    "constant": (lambda x: jnp.ones(2), (X,)),
    "empty": (jnp.sum, (jnp.zeros((0, 3)),)),
    "whole numbers beside": (lambda x: (x**2, jnp.arange(3)), (X,)),
    "NumPy": (jnp.tanh, (np.linspace(0, 1, 3, dtype=np.float32),)),
    "bfloat16": (jnp.sin, (jnp.bfloat16(0.7),)),
    "float16": (jnp.tanh, (jnp.float16(0.3),)),
    "jitted": (jax.jit(jnp.tanh), (X,)),
    "a number of Python's beside": (lambda x: (x**2, 0.5), (X,)),
    "leaves that are no arrays": (
        lambda p: p["by"](p["x"]) * jnp.ones(7, p["in"]),
        ({"x": X, "by": jnp.sin, "in": "float32", "none": None},),
    ),
    "products": (lambda x: jnp.outer(x, x) @ x, (X,)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_agree(name):
    function, args = RIGHT[name]
    report = gradients.check(function, *args)
    assert report.ok and len(report.slopes) == 2
    assert "agree" in repr(report) and "DIFFER" not in repr(report)


def planted(factor=1.0, entry=None):
    """A sine whose rule for reverse mode is wrong, by a factor or in one entry."""
    function = jax.custom_vjp(jnp.sin)

    def backward(x, c):
        slope = c * jnp.cos(x) * factor
        return (slope if entry is None else slope.at[entry].add(0.5),)

    function.defvjp(lambda x: (jnp.sin(x), x), backward)
    return function


@pytest.mark.parametrize("factor", [1.02, 0.95, -1.0, 0.0])
def test_a_wrong_factor_is_found(factor):
    with pytest.raises(gradients.GradientError, match="DIFFER"):
        gradients.check(planted(factor), 0.7)


@pytest.mark.parametrize("entry", [0, 3, 6])
def test_one_wrong_entry_is_found(entry):
    assert not gradients.compare(planted(entry=entry), jnp.linspace(0.5, 2.0, 7)).ok


@pytest.mark.parametrize("entry", range(13))
def test_one_wrong_entry_of_a_result_that_is_a_vector_is_found(entry):
    function = jax.custom_jvp(jnp.sin)
    function.defjvp(lambda p, t: (jnp.sin(*p), jnp.cos(*p).at[entry].mul(2.0) * t[0]))
    assert not gradients.compare(function, jnp.linspace(0.1, 1.0, 13)).ok


def test_results_that_outweigh_each_other_do_not_hide_an_error():
    assert not gradients.compare(lambda x: (planted(3.0)(x), -planted(3.0)(x)), X).ok


def test_a_wrong_forward_rule_is_found():
    function = jax.custom_jvp(jnp.sin)
    function.defjvp(lambda p, t: (jnp.sin(*p), jnp.sin(*p) * t[0]))
    report = gradients.compare(function, X)
    assert not report.ok and report.refused == {}


def test_a_wrong_second_derivative_is_found():
    function = jax.custom_jvp(jnp.sin)
    function.defjvp(lambda p, t: (jnp.sin(*p), lax.stop_gradient(jnp.cos(*p)) * t[0]))
    assert gradients.check(function, X).ok
    assert not gradients.compare(jax.grad(function), 1.0).ok


def test_small_slopes_are_not_lost():
    function = jax.custom_jvp(lambda x: 1e-6 * jnp.sin(x))
    function.defjvp(lambda p, t: (function(*p), 1.1e-6 * jnp.cos(*p) * t[0]))
    assert not gradients.compare(function, 1.0).ok


@pytest.mark.parametrize("function", [jax.nn.relu, jnp.abs, lambda x: jnp.where(x > 0, 2 * x, x)])
def test_a_kink_is_called_a_kink(function):
    with pytest.raises(gradients.GradientError, match="Move the point"):
        gradients.check(function, 0.0)
    assert gradients.check(function, 0.5).ok


def test_modes_that_are_refused_are_named():
    assert "custom_vjp" in gradients.check(planted(), X).refused["forward"]
    assert "Reverse-mode" in gradients.check(*(RIGHT["while"][0], 1.3)).refused["reverse"]
    assert "no forward mode" in repr(gradients.check(planted(), X))

    def neither(x):
        return planted()(lax.while_loop(lambda v: v < 9.0, lambda v: v * v, x))

    with pytest.raises((TypeError, ValueError)):
        gradients.check(neither, 1.3)


def test_several_arguments():
    def product(x, n, y):
        return n * x * jnp.sum(y)

    report = gradients.check(product, 2.0, 3, X, argnums=(0, 2))
    assert report.ok
    with pytest.raises(TypeError, match="nothing to differentiate"):
        gradients.check(product, 2.0, 3, X, argnums=1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "float64"])
def test_under_strict_promotion(dtype):
    with configured(jax_enable_x64=True) if dtype == "float64" else contextlib.nullcontext():
        x = (X + 3).astype(dtype)
        with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
            assert gradients.check(lambda x: (x * x, jnp.abs(x).astype(jnp.float16)), x).ok


def test_float64_tells_more():
    coarse = gradients.check(jnp.sin, jnp.float32(1.0)).slopes[0]
    with configured(jax_enable_x64=True):
        fine = gradients.check(jnp.sin, jnp.float64(1.0)).slopes[0]
        assert not gradients.compare(planted(1.0001), jnp.linspace(0.5, 2.0, 7)).ok
    assert fine.uncertainty < 1e-4 * coarse.uncertainty


def test_the_measured_slope_is_the_slope():
    for x in (0.1, 1.0, 3.0):
        direction = gradients.direction_of((x,))
        measured, uncertainty, kink = gradients.slope(jnp.sin, (x,), direction)
        assert abs(measured - np.cos(x) * float(direction[0])) < max(8 * uncertainty, 1e-4) and not kink


def test_directions_differ_and_move_everything():
    one, two = (gradients.direction_of((PARAMS, X), (0, 1), turn) for turn in (1, 2))
    assert not np.allclose(one[1], two[1]) and np.all(np.asarray(one[1]) != 0)
    assert one[0]["out"][1] is None  # a whole number stays
