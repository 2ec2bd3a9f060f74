"""What the laws use to judge derivatives sees each kind of mistake."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial.checking.laws import Disagreement, check_derivatives

X = np.array([0.3, -0.7, 1.1])


def sine(derivative, value=jnp.sin):
    """A sine with a forward rule of its own."""
    function = jax.custom_jvp(jnp.sin)
    function.defjvp(lambda primals, tangents: (value(*primals), derivative(*primals) * tangents[0]))
    return function


@jax.custom_jvp
def cosine(x):
    """Right, but for its derivative."""
    return jnp.cos(x)


cosine.defjvp(lambda primals, tangents: (cosine(*primals), -1.01 * jnp.sin(*primals) * tangents[0]))


def doubled(factor):
    """Twice the argument; only reverse mode sees the factor."""
    return lambda x: jax.custom_derivatives.linear_call(
        lambda two, x: two * x, lambda _, cotangent: factor * cotangent, 2.0, x
    )


@pytest.mark.parametrize(
    "function", [jnp.sin, sine(jnp.cos), doubled(2.0)], ids=["plain", "rule", "transpose"]
)
def test_right_derivatives_pass(function, x64):
    check_derivatives(function, (X,))


@pytest.mark.parametrize(
    "function, where",
    [
        (sine(jnp.cos, value=lambda x: jnp.sin(x) + 1e-3), "primal of forward"),
        (sine(lambda x: 1.01 * jnp.cos(x)), "forward"),
        (sine(lambda x: jnp.cos(x) * np.array([1, 1, 1.01])), "forward"),
        (sine(cosine), "forward of forward"),
        (doubled(2.01), "reverse"),
        (lambda x: jnp.where(x > 5, x, jnp.sqrt(jnp.where(x > 5, x, 0))), "forward"),
    ],
    ids=["value", "first order", "one entry", "second order", "transpose", "not finite"],
)
def test_a_wrong_derivative_is_seen(function, where, x64):
    with pytest.raises(Disagreement, match=f"^{where}:"):
        check_derivatives(function, (X,))
