"""The dtype audit must find planted violations, wherever they are planted, and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mlax_tutorial import nn
from mlax_tutorial.inspection.dtypes import floating_leaves, strays
from mlax_tutorial.inspection.jaxprs import lines

X = jax.ShapeDtypeStruct((4,), jnp.bfloat16)


def wide(x):
    return jnp.sin(x.astype(jnp.float32)).astype(x.dtype)


def narrow(x):
    return x.astype(jnp.float16).astype(x.dtype)


def numpy_scalar(x):
    return (x * np.float32(2)).astype(x.dtype)


def in_jit(x):
    return jax.jit(wide)(x)


def in_scan(x):
    return lax.scan(lambda carry, _: (wide(carry), None), x, None, length=2)[0]


def in_while(x):
    return lax.while_loop(lambda x: x[0] < 0, wide, x)


def in_branch(x):
    return lax.cond(x[0] > 0, wide, lambda x: x, x)


def in_checkpoint(x):
    return jax.checkpoint(wide)(x)


def in_map_of_scalars(x):  # scalars inside, an array outside
    return lax.map(lambda x: x.astype(jnp.float32), x).astype(x.dtype)


def in_softmax(x):
    return jax.nn.softmax(x)


def in_scatter(x):  # the equation holds a program, for how two numbers are added
    return jnp.zeros(4).at[jnp.array([0, 0, 1, 2])].add(x.astype(jnp.float32)).astype(x.dtype)


def in_reduction(x):
    rows = jnp.stack([x, x]).astype(jnp.float32)
    return lax.reduce(rows, np.float32(0), lambda a, b: a * b + a, (0,)).astype(x.dtype)


def complex_numbers(x):
    return (x.astype(jnp.float32) + 1j).real.astype(x.dtype)


@jax.custom_vjp
def in_backward(x):
    return -x


in_backward.defvjp(lambda x: (-x, None), lambda _, g: (-wide(g),))

FORWARD = [
    wide, narrow, numpy_scalar, in_jit, in_scan, in_while, in_branch, in_checkpoint, in_map_of_scalars, in_softmax,
    in_scatter, in_reduction, complex_numbers,
]  # fmt: skip


@pytest.mark.parametrize("planted", FORWARD)
def test_planted_violations_are_found_forward(planted):
    assert strays(jax.make_jaxpr(planted)(X), "bfloat16")


@pytest.mark.parametrize("planted, name", [(in_scatter, "scatter"), (in_map_of_scalars, "scan")])
def test_the_result_of_an_equation_that_combines_scalars_is_judged(planted, name):
    found = strays(jax.make_jaxpr(planted)(X), "bfloat16")
    assert any(f"{name}" in stray.partition(" gives ")[0] for stray in found), found


@pytest.mark.parametrize("planted", [wide, in_scan, in_checkpoint, in_backward])
def test_planted_violations_are_found_backward(planted):
    def pull(x):
        y, back = jax.vjp(planted, x)
        return back(y)

    assert strays(jax.make_jaxpr(pull)(X), "bfloat16")


def test_a_planted_violation_is_found_inside_a_layer():
    model = nn.Series(nn.Linear(3), nn.F(wide))
    trainables, _ = jax.eval_shape(model.init, jax.random.key(0), X)
    jaxpr = jax.make_jaxpr(lambda x, t: model.fwd(x, t, ())[0])(X, trainables)
    assert any("sin gives" in stray for stray in strays(jaxpr, "bfloat16"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "clean",
    [
        lambda x: x * x + 1.0,
        jax.nn.relu,
        jax.jit(jax.nn.silu),
        lambda x: lax.scan(lambda c, x: (c + x, c), x[0], x)[1],
        lambda x: x * jnp.float32(2).astype(x.dtype),
        lambda x: x[jnp.array([0, 1])],
        lambda x: jnp.argmax(x),
        lambda x: x + jax.random.normal(jax.random.key(0), (4,), x.dtype),
    ],
)
def test_what_is_clean_stays_clean(clean, dtype):
    jaxpr = jax.make_jaxpr(clean)(jax.ShapeDtypeStruct((4,), dtype))
    assert strays(jaxpr, dtype) == []


def test_complex_numbers_of_the_declared_dtype_are_clean():
    assert strays(jax.make_jaxpr(lambda x: jnp.fft.fft(x).real)(jnp.ones(4)), "float32") == []


def test_scalars_and_named_accumulators_are_allowed_and_nothing_else():
    def rows(x):
        return jnp.sum(x, axis=0, dtype=jnp.float32).astype(x.dtype)

    jaxpr = jax.make_jaxpr(rows)(jax.ShapeDtypeStruct((3, 4), jnp.bfloat16))
    allowed = frozenset({"reduce_sum", "convert_element_type"})
    assert strays(jaxpr, "bfloat16")
    assert not strays(jaxpr, "bfloat16", allowed, jnp.float32)
    assert strays(jaxpr, "bfloat16", allowed, jnp.float16)


def test_the_line_is_named_also_for_what_stands_inside_jax():
    def layer(x):
        x = x + 1
        return jax.nn.softmax(x.astype(jnp.float32))

    found = strays(jax.make_jaxpr(layer)(X), "bfloat16")
    assert found and all(stray.endswith("return jax.nn.softmax(x.astype(jnp.float32))") for stray in found)
    first = next(iter(lines(jax.make_jaxpr(layer)(X))))
    assert first[2] == "x = x + 1"


def test_helpers():
    tree = {"a": jnp.ones(2), "b": jnp.arange(2), "key": jax.random.key(0), "rate": 0.5, "count": 3}
    assert [np.shape(leaf) for leaf in floating_leaves(tree)] == [(2,), ()]
