"""*Attention*: the layer that its reader writes obeys the laws, sorts, and decodes as the whole would."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import viz
from mlax_tutorial.checking import laws
from mlax_tutorial.nn.attention import attend_by_jax, rotary
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    names = "Attention attend weigh rotary decode empty_cache train sorter sorting_loss examples predict piece merge"
    return assembled.definitions("book/attention.ipynb", *names.split())


@pytest.fixture(scope="module")
def trained(code):
    return code["train"](code["sorter"], code["sorting_loss"], lambda key: code["examples"](key, 64), 250)


@pytest.mark.parametrize("causal", [False, True])
def test_the_readers_layer_obeys_the_laws(code, causal):
    assert not laws.report(code["Attention"](2, causal=causal), jnp.ones((2, 3, 4))).broken


def test_the_readers_network_sorts(code, trained):
    rows = code["examples"](jax.random.key(100), 300)
    best = code["predict"](code["sorter"], trained, rows).argmax(axis=-1)
    assert (best == rows[:, 9:]).mean() >= 0.99


def test_it_sorts_a_list_by_itself(code, trained):
    """Greedily, each number fed back in."""
    numbers, right = [3, 30, 12, 9, 21, 17, 26, 5], 0
    row = [*numbers, 32]
    for _ in numbers:
        logits, _ = code["sorter"].fwd(jnp.array([row + [0] * (17 - len(row))]), trained, ())
        row.append(int(logits[0, len(row) - 1].argmax()))
    right = sum(a == b for a, b in zip(row[9:], sorted(numbers)))
    assert right >= 7


def test_the_readers_weights_can_be_looked_at(code, trained):
    row = code["examples"](jax.random.key(101), 1)[0]
    (weights,) = viz.attention(lambda row: code["sorter"].fwd(row, trained, ())[0], row).layers
    assert weights.shape == (4, 17, 17)
    later = np.triu(np.ones((17, 17), bool), 1)
    assert not weights[:, later].any()


def test_a_low_temperature_sharpens_and_a_high_one_flattens(code, trained):
    """As the text says of the figure: logits divided by 0.1 or by 10."""
    row = code["examples"](jax.random.key(101), 1)[0]
    (weights,) = viz.attention(lambda row: code["sorter"].fwd(row, trained, ())[0], row).layers
    sharp, flat = np.float64(weights) ** 10, np.float64(weights) ** 0.1
    sharp, flat = (each / each.sum(-1, keepdims=True) for each in (sharp, flat))
    assert np.mean(sharp.max(-1) > 0.5) > 0.8
    mean = np.tri(17) / np.arange(1, 18)[:, None]
    assert np.abs(flat - mean).mean() < 0.5 * np.abs(weights - mean).mean()


def test_the_readers_functions_are_those_of_the_package(code):
    query, key, value = jax.random.normal(jax.random.key(0), (3, 2, 6, 4, 8))
    allowed = jnp.tri(6, dtype=bool) & jnp.array([[[True]], [[False]]])
    wanted = attend_by_jax(query, key, value, mask=allowed, implementation="xla")
    np.testing.assert_allclose(code["attend"](query, key, value, allowed), wanted, atol=1e-5)
    positions = jnp.array([7, 1, 0, 2, 300, 5])
    np.testing.assert_allclose(code["rotary"](query, positions), rotary(query, positions), atol=1e-4)


def test_no_gradient_is_nan_where_nothing_is_seen(code):
    arrays = jax.random.normal(jax.random.key(1), (3, 5, 2, 4))
    allowed = jnp.tri(5, k=-2, dtype=bool)
    gradients = jax.grad(lambda arrays: code["attend"](*arrays, allowed).sum())(tuple(arrays))
    assert all(jnp.isfinite(leaf).all() for leaf in gradients)


def test_softmax_with_where_gives_the_same_and_passes_through_nan(code):
    """As the text says: zeros and finite gradients, but `jax_debug_nans` stops inside, and not in the reader's own function."""
    query, key, value = jax.random.normal(jax.random.key(5), (3, 6, 2, 4))
    allowed = jnp.tri(6, dtype=bool) & (jnp.arange(6) >= 2)

    def by_where(arrays):
        logits = jnp.einsum("qhd,khd->hqk", arrays[0], arrays[1]) / 2
        weights = jax.nn.softmax(logits, where=allowed)
        return jnp.einsum("hqk,khd->qhd", weights, arrays[2])

    def by_hand(arrays):
        return code["attend"](*arrays, allowed)

    def sum_of_squares(arrays, form):
        return jnp.sum(form(arrays) ** 2)

    one, other = (
        jax.value_and_grad(sum_of_squares)((query, key, value), form) for form in (by_where, by_hand)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), one, other)
    assert not np.any(by_where((query, key, value))[:2])
    with jax.debug_nans(True):
        by_hand((query, key, value))
        with pytest.raises(FloatingPointError):
            by_where((query, key, value))


def test_the_readers_decode_equals_the_whole(code):
    layer, x = code["Attention"](2, causal=True), jax.random.normal(jax.random.key(2), (6, 8))
    trainables, _ = layer.init(jax.random.key(3), x)
    whole, _ = layer.fwd(x, trainables, ())
    cache = code["empty_cache"](6, heads=2, head_dim=4)
    for i in range(6):
        y, cache = code["decode"](layer, x[i : i + 1], trainables, cache)
        np.testing.assert_allclose(y[0], whole[i], atol=1e-5)


def test_the_readers_pieces_merge(code):
    q, k, v = jax.random.normal(jax.random.key(4), (3, 12, 4))
    parts = [code["piece"](q, k[i : i + 4], v[i : i + 4]) for i in (0, 4, 8)]
    _, weight, value = code["merge"](code["merge"](parts[0], parts[1]), parts[2])
    wanted = code["attend"](q[:, None], k[:, None], v[:, None])[:, 0]
    np.testing.assert_allclose(value / weight, wanted, atol=1e-5)
