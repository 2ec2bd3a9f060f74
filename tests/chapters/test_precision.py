"""*Precision*: the casts, the loss scale and the rounding that its reader writes train the network of the part."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import optim
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    names = "cast make_loss make_step train to_nearest stochastically stochastic_round scaled_gradients all_finite accept"
    return assembled.definitions("book/precision.ipynb", *names.split(), "images", "labels", "first")


def test_weights_in_bfloat16_learn(code):
    optimizer, losses = optim.Adam(1e-4), {}
    for name in ("to_nearest", "stochastically"):
        step = code["make_step"](code["make_loss"]("bfloat16"), optimizer, code[name])
        weights = code["cast"](code["first"], "bfloat16")
        state = weights, optimizer.init(weights)
        (weights, _), losses[name] = code["train"](
            step, state, jax.random.key(0), code["images"], code["labels"], 60
        )
        assert {leaf.dtype.name for leaf in jax.tree.leaves(weights)} == {"bfloat16"}
    assert losses["stochastically"][-10:].mean() < 0.75 * losses["stochastically"][0]


def test_gradients_are_those_without_a_scale(code):
    batch = code["images"][:64], code["labels"][:64]
    loss = code["make_loss"]("float32")
    scaled = code["scaled_gradients"](loss, 2.0**10, code["first"], *batch)
    plain = jax.grad(loss)(code["first"], *batch)
    assert all(
        jax.tree.leaves(jax.tree.map(lambda a, b: jnp.allclose(a, b, rtol=1e-4, atol=1e-7), scaled, plain))
    )
    infinite = jax.tree.map(lambda leaf: leaf * jnp.inf, plain)
    assert code["all_finite"](plain) and not code["all_finite"](infinite)
    skipped = code["accept"](code["all_finite"](infinite), infinite, plain)
    assert all(jax.tree.leaves(jax.tree.map(jnp.array_equal, skipped, plain)))


def test_rounding_is_right_on_average(code):
    x = jnp.full(20_000, -1.001)
    rounded = np.asarray(code["stochastic_round"](jax.random.key(0), x), np.float64)
    assert set(rounded) == {-1.0, -1.0078125} and abs(rounded.mean() + 1.001) < 2e-4


def test_integers_are_not_cast(code):
    tree = code["cast"]({"x": jnp.ones(2), "word": jnp.array(257)}, jnp.bfloat16)
    assert tree["x"].dtype == jnp.bfloat16 and tree["word"] == 257
