"""Attention in half precision against float64: as exact as JAX's own, in every form and at any ``head_dim``."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.nn.attention import attend, attend_by_jax, attend_in_chunks

SHAPE = 2, 48, 4  # batch, length, heads


def exact(query, key, value, causal=False, window=None):
    """Attention in float64, by NumPy."""
    query, key, value = (np.asarray(array, np.float64) for array in (query, key, value))
    groups = query.shape[-2] // key.shape[-2]
    key, value = (np.repeat(array, groups, axis=-2) for array in (key, value))
    logits = np.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(query.shape[-1])
    distance = np.arange(query.shape[-3])[:, None] - np.arange(key.shape[-3])
    allowed = (distance >= 0) | (not causal)
    allowed &= np.abs(distance) < (window or len(distance))
    weights = np.exp(np.where(allowed, logits, -np.inf))
    return np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), value)


def draw(head_dim, kv_heads=4, dtype="bfloat16"):
    keys = jax.random.split(jax.random.key(head_dim), 3)
    query, key, value = (
        jax.random.normal(key, (*SHAPE[:-1], heads, head_dim))
        for key, heads in zip(keys, (4, kv_heads, kv_heads))
    )
    return [array.astype(dtype) for array in (4 * query, key, value)]


def mean_error(y, wanted):
    return float(np.mean(np.abs(np.asarray(y, np.float64) - wanted)))


FORMS = {
    "plain": attend,
    "in chunks": functools.partial(attend_in_chunks, chunk_size=16),
    "the last chunk not full": functools.partial(attend_in_chunks, chunk_size=20),
    "by JAX, or what stands for it here": attend_by_jax,
}


@pytest.mark.parametrize(
    ("head_dim", "kv_heads", "options"), [(32, 4, {}), (128, 2, {"causal": True}), (32, 2, {"window": 5})]
)
def test_bfloat16_is_as_exact_as_jax_is(head_dim, kv_heads, options):
    """The scale is exact at 64 only: a query that is scaled in bfloat16 nearly doubles the error elsewhere."""
    arrays = draw(head_dim, kv_heads)
    wanted = exact(*arrays, **options)
    theirs = mean_error(attend_by_jax(*arrays, implementation="xla", **options), wanted)
    for name, form in FORMS.items():
        assert mean_error(form(*arrays, **options), wanted) <= 1.05 * theirs, name


def test_the_layer_and_its_cache_do_as_the_function(head_dim=32):
    """Kernels that round nothing: what is left is the attention."""
    layer = nn.MultiHeadAttention(1, head_dim=head_dim, causal=True)
    x = draw(head_dim)[1][:, :12, 0]
    same = jnp.roll(
        jnp.eye(head_dim, dtype=x.dtype), 1, axis=0
    )  # of an input with itself, the softmax would be too sure
    trainables = {
        "query_kernel": 4 * same[:, None],
        "key_kernel": jnp.eye(head_dim, dtype=x.dtype)[:, None],
        "out_kernel": same[None],
    }
    trainables["value_kernel"] = trainables["key_kernel"]
    query, heads = 4 * jnp.roll(x, -1, axis=-1)[:, :, None], x[:, :, None]
    arrays = query, heads, heads

    def mixed(y):
        return jnp.roll(y[:, :, 0], -1, axis=-1)

    wanted = np.asarray(np.roll(exact(*arrays, causal=True)[:, :, 0], -1, axis=-1))
    theirs = mean_error(mixed(attend_by_jax(*arrays, causal=True, implementation="xla")), wanted)
    cache, steps = layer.init_cache(x[:, :1], x.shape[1]), []
    for step in range(x.shape[1]):
        y, cache = layer.decode(x[:, step : step + 1], trainables, (), cache)
        steps.append(y)
    for y in (layer.fwd(x, trainables, ())[0], jnp.concatenate(steps, axis=1)):
        assert mean_error(y, wanted) <= 1.05 * theirs


SIZES = {
    "no size of a chunk": (
        attend_in_chunks,
        {"chunk_size": None},
        "chunk_size must be an integer of at least 1, got None",
    ),
    "no chunk": (attend_in_chunks, {"chunk_size": 0}, "chunk_size must be an integer of at least 1, got 0"),
    "half a chunk": (
        attend_in_chunks,
        {"chunk_size": 2.5},
        "chunk_size must be an integer of at least 1, got 2.5",
    ),
    "no window": (attend, {"window": 0}, "window must be an integer of at least 1, got 0"),
    "a window to the right": (
        attend_in_chunks,
        {"window": -1},
        "window must be an integer of at least 1, got -1",
    ),
    "no window, by JAX": (attend_by_jax, {"window": 0}, "window must be an integer of at least 1, got 0"),
}


@pytest.mark.parametrize(("form", "options", "message"), SIZES.values(), ids=list(SIZES))
def test_sizes_of_nothing(form, options, message):
    x = jnp.ones((3, 2, 4))
    with pytest.raises(ValueError, match=f"^attention: {message}"):
        form(x, x, x, **options)
