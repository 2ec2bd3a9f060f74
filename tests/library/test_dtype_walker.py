"""The walker that checks the dtype guarantee must itself find planted violations."""

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial import nn
from tests.library.dtypes import strays

X = jax.ShapeDtypeStruct((4,), jnp.bfloat16)


def wide(x):
    return jnp.sin(x.astype(jnp.float32)).astype(x.dtype)


def narrow(x):
    return x.astype(jnp.float16).astype(x.dtype)


def in_jit(x):
    return jax.jit(wide)(x)


def in_scan(x):
    return jax.lax.scan(lambda carry, _: (wide(carry), None), x, None, length=2)[0]


def in_branch(x):
    return jax.lax.cond(x[0] > 0, wide, lambda x: x, x)


def in_softmax(x):
    return jax.nn.softmax(x)


@jax.custom_vjp
def in_backward(x):
    return -x


in_backward.defvjp(lambda x: (-x, None), lambda _, g: (-wide(g),))


@pytest.mark.parametrize("planted", [wide, narrow, in_jit, in_scan, in_branch, in_softmax])
def test_planted_violations_are_found_forward(planted):
    assert strays(jax.make_jaxpr(planted)(X), "bfloat16")


@pytest.mark.parametrize("planted", [wide, in_scan, in_backward])
def test_planted_violations_are_found_backward(planted):
    def pull(x):
        y, back = jax.vjp(planted, x)
        return back(y)

    assert strays(jax.make_jaxpr(pull)(X), "bfloat16")


def test_a_planted_violation_is_found_inside_a_layer():
    model = nn.Series(nn.Linear(3), nn.F(wide))
    trainables, _ = jax.eval_shape(model.init, jax.random.key(0), X)
    jaxpr = jax.make_jaxpr(lambda x, t: model.fwd(x, t, ())[0])(X, trainables)
    assert any("sin" in stray for stray in strays(jaxpr, "bfloat16"))


def test_scalars_and_named_accumulators_are_allowed_and_nothing_else():
    def rows(x):
        return jnp.sum(x, axis=0, dtype=jnp.float32).astype(x.dtype)

    jaxpr = jax.make_jaxpr(rows)(jax.ShapeDtypeStruct((3, 4), jnp.bfloat16))
    allowed = frozenset({"reduce_sum", "convert_element_type"})
    assert strays(jaxpr, "bfloat16")
    assert not strays(jaxpr, "bfloat16", allowed, jnp.float32)
    assert strays(jaxpr, "bfloat16", allowed, jnp.float16)
    assert not strays(jax.make_jaxpr(lambda x: x * x)(X), "bfloat16")
