"""*TPU and Pallas*: the kernels that its reader writes compute what the library does, and what finds races finds them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial import nn, viz
from mlax_tutorial.exercises import pallas
from mlax_tutorial.inspection import lowers_for_tpu
from mlax_tutorial.nn.attention import attend
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    names = (
        *("softmax", "forward", "backward", "attention", "attention_forward", "attention_backward"),
        *(
            "with_gradients",
            "a",
            "product",
            "copies",
            "maps",
            "compare",
            "total",
            "races",
            "sums",
            "add_from_zero",
        ),
    )
    found = assembled.definitions("book/pallas.ipynb", *names)
    found["softmax"].defvjp(found["forward"], found["backward"])
    found["attention"].defvjp(found["attention_forward"], found["attention_backward"])
    return found


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def test_softmax_and_its_gradient(code):
    x, g = normal(0, 24, 256) * 10, normal(1, 24, 256)
    ours, pull = jax.vjp(code["softmax"], x)
    theirs, pull_theirs = jax.vjp(jax.nn.softmax, x)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(*pull(g), *pull_theirs(g), atol=1e-6)


@pytest.mark.parametrize("queries, keys, scale", [(64, 128, 1), (128, 384, 1), (64, 256, 40)])
def test_attention_and_its_gradients_are_the_library_s(code, queries, keys, scale):
    """Also where the logits are large."""
    q, k, v, g = (normal(seed, size, 128) for seed, size in enumerate((queries, keys, keys, queries)))

    def plain(q, k, v):
        return attend(q[:, None], k[:, None], v[:, None])[:, 0]

    with jax.default_matmul_precision("highest"):
        ours, theirs = (code["with_gradients"](f, q * scale, k, v, g) for f in (code["attention"], plain))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * max(1, scale), rtol=1e-5)


def test_heads_by_vmap(code):
    """The grids get one more axis, and the kernels' steps are still counted along those that they know."""
    q, k, v = normal(0, 2, 64, 128), normal(1, 2, 128, 128), normal(2, 2, 128, 128)

    def loss(attention):
        return lambda *arrays: jnp.square(jax.vmap(attention)(*arrays)).sum()

    def plain(q, k, v):
        return attend(q[:, None], k[:, None], v[:, None])[:, 0]

    with jax.default_matmul_precision("highest"):
        ours, theirs = (
            jax.jit(jax.grad(loss(f), argnums=(0, 1, 2)))(q, k, v) for f in (code["attention"], plain)
        )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    lowered = functools.partial(code["attention"], interpret=False)
    assert len(lowers_for_tpu(jax.grad(loss(lowered), argnums=(0, 1, 2)), q, k, v).kernels) == 3


def test_a_block_that_is_left_and_comes_back():
    """`interpret=True` adds up all the same, and it lowers; the simulator refuses it."""

    def sums(x, interpret):
        def kernel(x_ref, sums_ref):
            @pl.when(pl.program_id(0) == 0)
            def _():
                sums_ref[...] = jnp.zeros_like(sums_ref)

            sums_ref[...] += x_ref[...].sum(axis=0, keepdims=True)

        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((1, 256), x.dtype),
            grid=(2, 2),
            in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
            out_specs=pl.BlockSpec((1, 128), lambda i, j: (0, j)),
            interpret=interpret,
        )(x)

    x = jnp.ones((16, 256))
    assert (sums(x, True) == 16).all() and lowers_for_tpu(sums, x, interpret=False)
    with pytest.raises(Exception, match="Revisited block"):
        sums(x, pltpu.InterpretParams()).block_until_ready()
    pltpu.reset_tpu_interpret_mode_state()


def test_the_exercise_s_rms_norm_is_the_library_s():
    x, scale, g = normal(0, 24, 256), 1 + normal(1, 1, 256) / 2, normal(2, 24, 256)
    layer = nn.RMSNorm(epsilon=1e-6, affine=True)

    def library(x, scale):
        return layer.fwd(x, {"scale": scale[0]}, ())[0]

    ours, pull = jax.vjp(pallas.rms_norm.answer, x, scale)
    theirs, pull_theirs = jax.vjp(library, x, scale)
    for one, other in zip((ours, *pull(g)), (theirs, *pull_theirs(g)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-5)


def test_copies_are_those_of_the_figure(code):
    shown = viz.grid_steps(code["product"], normal(0, 512, 256), normal(1, 256, 384))
    i_j = [lambda i, j: (i, 0), lambda i, j: (0, j), lambda i, j: (i, j)]
    assert [sum(operand.copied) for operand in shown.operands] == [code["copies"](f, (4, 3)) for f in i_j]


def test_the_cell_for_accelerators(code):
    """Here the device is a CPU, so both kernels are interpreted; and products of bfloat16 or of TF32 would be seen."""
    a = code["a"][:, :32]
    assert code["compare"](code["product"], a, a.T, interpret=True) == 0
    assert lowers_for_tpu(code["product"], a, a.T, interpret=False)
    for bits, least, most in ((16, 0.1, 0.25), (13, 0.005, 0.02)):  # of 23, those that are rounded away
        half, kept = np.uint32(1 << (bits - 1)), np.uint32(0xFFFFFFFF >> bits << bits)
        rounded = ((np.asarray(a).view(np.uint32) + half) & kept).view(np.float32)
        with jax.default_matmul_precision("highest"):
            assert least < abs(a @ a.T - rounded @ rounded.T).max() < most


def test_races_are_found_where_there_are_some(code):
    x = jnp.ones((32, 128))
    if "on_race" in {
        field.name for field in dataclasses.fields(pltpu.InterpretParams)
    }:  # as the chapter's cell
        code["options"] |= {"num_cores_or_threads": 2, "on_race": "warn"}
    else:
        code["options"] |= {"num_cores_per_device": 2}
    assert code["races"](code["total"], x, "arbitrary") == []
    assert len(code["races"](code["total"], x, "parallel")) >= 2


def test_sums_of_whole_blocks(code):
    x = normal(0, 40, 256)
    np.testing.assert_allclose(code["sums"](code["add_from_zero"], x), x.sum(0, keepdims=True), atol=1e-5)
