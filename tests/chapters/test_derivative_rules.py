"""*Derivative rules of your own*: those that its reader writes fit their functions, and the pieces compute what the whole does."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial.inspection import gradients
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/derivative_rules.ipynb",
        "root_rule",
        "reverse_backward",
        "scaled_rule",
        "scaled_backward",
        "scaled_forward",
        "scaled_too",
        "product",
        "product_forward",
        "product_backward",
        "rounded",
        "in_pieces",
        "each_layer",
        "dots",
        "deep",
        "layers",
    )


@pytest.mark.parametrize("a", [8.0, -27.0, 1e-3])
def test_the_rule_of_the_root_fits_in_both_modes_and_orders(code, a):
    assert gradients.check(code["root"], a).ok
    assert gradients.check(jax.grad(code["root"]), a).ok


def test_a_function_of_a_function(code, capsys):
    assert gradients.check(lambda x: code["scaled"](jnp.sin, x, 3), 0.7).ok
    assert "float0" in capsys.readouterr().out
    code["scaled_too"].defvjp(code["scaled_forward"], code["scaled_backward"])
    assert gradients.check(lambda x: code["scaled_too"](jnp.sin, x, 3), 0.7).ok


def test_the_product_fits_whatever_is_differentiated(code):
    code["product"].defvjp(code["product_forward"], code["product_backward"], symbolic_zeros=True)
    x, w = jnp.sin(jnp.arange(12.0)).reshape(4, 3), jnp.cos(jnp.arange(6.0)).reshape(3, 2)
    for argnums in (0, 1, (0, 1)):
        assert gradients.check(code["product"], x, w, argnums=argnums).ok


def test_what_is_no_derivative(code):
    assert code["reverse_backward"]((), 2.0) == (-2.0,)
    np.testing.assert_array_equal(jax.vmap(jax.grad(code["rounded"]))(jnp.linspace(-2, 2, 9)), 1)


def test_checkpoints_change_no_gradient(code):
    key, other = jax.random.split(jax.random.key(0))
    layers = jax.random.normal(key, code["layers"].shape) / 8
    x = jax.random.normal(other, (16, code["width"]))
    with jax.default_matmul_precision("highest"):
        wanted = jax.grad(code["deep"])(layers, x)
        for f in (functools.partial(code["in_pieces"], 8), code["each_layer"], code["dots"]):
            np.testing.assert_allclose(jax.grad(f)(layers, x), wanted, rtol=1e-3, atol=1e-5)
