"""What the laws use to judge derivatives sees each kind of mistake."""

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import ad, mlir

from mlax_tutorial.checking.laws import Disagreement, check_derivatives

X = np.array([0.3, -0.7, 1.1])


def sine(derivative, value=jnp.sin, product=jnp.multiply):
    """A sine with a forward rule of its own."""
    function = jax.custom_jvp(jnp.sin)
    function.defjvp(lambda primals, tangents: (value(*primals), product(derivative(*primals), tangents[0])))
    return function


@jax.custom_jvp
def cosine(x):
    """Right, but for its derivative."""
    return jnp.cos(x)


cosine.defjvp(lambda primals, tangents: (cosine(*primals), -1.01 * jnp.sin(*primals) * tangents[0]))


def doubled(factor):
    """Twice the argument; only reverse mode sees the factor."""
    return lambda x: scaled(2.0, x, factor)


def scaled(factor, x, transposed):
    """A product that has another factor in reverse mode."""
    return jax.custom_derivatives.linear_call(
        lambda factors, x: factors[0] * x,
        lambda factors, cotangent: factors[1] * cotangent,
        (factor, transposed),
        x,
    )


@jax.custom_jvp
def turned(x):
    """A cosine whose derivative is wrong in reverse mode alone."""
    return jnp.cos(x)


turned.defjvp(
    lambda primals, tangents: (
        turned(*primals),
        -scaled(jnp.sin(*primals), tangents[0], 1.01 * jnp.sin(*primals)),
    )
)


@jax.custom_jvp
def same(x):
    """Right, but for its derivative."""
    return x


same.defjvp(lambda primals, tangents: (same(*primals), 1.01 * tangents[0]))

# A product whose gradient is right, but not the gradient's derivative.
product_p = jax.extend.core.Primitive("product")
product_p.def_impl(jnp.multiply)
product_p.def_abstract_eval(lambda factor, x: x)
mlir.register_lowering(product_p, mlir.lower_fun(jnp.multiply, multiple_results=False))
ad.defjvp(
    product_p,
    lambda tangent, factor, x: tangent * x,
    lambda tangent, factor, x: product_p.bind(factor, tangent),
)
ad.primitive_transposes[product_p] = lambda cotangent, factor, x: (None, same(factor) * cotangent)


def backward_alone(value):
    """A sine with a rule for reverse mode, and the value that it gives there."""
    function = jax.custom_vjp(jnp.sin)
    function.defvjp(lambda x: (value(x), x), lambda x, cotangent: (jnp.cos(x) * cotangent,))
    return function


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
        (sine(cosine), "forward of reverse"),
        (doubled(2.01), "reverse"),
        (lambda x: jnp.where(x > 5, x, jnp.sqrt(jnp.where(x > 5, x, 0))), "forward"),
        (sine(jnp.cos, product=product_p.bind), "forward of reverse"),
        (sine(turned), "reverse of forward"),
    ],
    ids=[
        "value",
        "first order",
        "one entry",
        "second order",
        "transpose",
        "not finite",
        "its forward",
        "its reverse",
    ],
)
def test_a_wrong_derivative_is_seen(function, where, x64):
    with pytest.raises(Disagreement, match=f"^{where}:"):
        check_derivatives(function, (X,))


def test_where_only_reverse_mode_has_a_rule_its_value_is_seen_too(x64):
    check_derivatives(backward_alone(jnp.sin), (X,), order=1)
    with pytest.raises(Disagreement, match="^primal of"):
        check_derivatives(backward_alone(lambda x: jnp.sin(x) + 1e-3), (X,), order=1)
