"""*Autodiff*: what its reader writes agrees with JAX's own transformations, and finds a derivative that is wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/autodiff.ipynb",
        "energy",
        "derivatives",
        "our_grad",
        "hvp",
        "through_hessian",
        "our_check",
        "honest",
        "wrong_gradient",
        "careless",
    )


def test_the_readers_grad_is_jaxs(code):
    x = jnp.linspace(-1.0, 2.0, 20)
    for f in (code["energy"], lambda x: jnp.sum(jnp.exp(x) * jnp.roll(x, 3)) ** 2):
        np.testing.assert_allclose(code["our_grad"](f)(x), jax.grad(f)(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        code["derivatives"](jnp.sin, 0.5, 3),
        [np.sin(0.5), np.cos(0.5), -np.sin(0.5), -np.cos(0.5)],
        rtol=1e-5,
    )


def test_the_readers_product_is_that_of_the_hessian(code):
    def f(x):
        return jnp.sum(jnp.tanh(x[1:] * x[:-1])) + jnp.prod(x)

    x, v = jnp.linspace(0.5, 1.5, 6), jnp.arange(6.0) - 2
    with jax.default_matmul_precision("highest"):
        expected = code["through_hessian"](f, x, v)
    np.testing.assert_allclose(code["hvp"](f, x, v), expected, rtol=1e-4, atol=1e-4)


def test_the_readers_check_finds_the_careless(code):
    code["careless"].defjvps(lambda t, value, x: jnp.sum(code["wrong_gradient"](x) * t))
    x = jnp.linspace(0.0, 2.0, 50)
    for seed in range(5):
        key = jax.random.key(seed)
        assert code["our_check"](code["honest"], x, key) < 0.01
        moved = abs(jax.random.normal(key, x.shape)[7])
        assert abs(code["our_check"](code["careless"], x, key) - moved) < 0.01
