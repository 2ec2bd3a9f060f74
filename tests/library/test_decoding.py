"""Decoding a step at a time equals the whole, for every row of the law table; or it is refused by name."""

import functools
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.nn.elementwise import is_elementwise
from mlax_tutorial.precision import Policy
from tests.library.rows import LAYERS
from tests.library.rows.row import LayerRow

QUICK_TO_COMPILE = True
LENGTH = 5


class Positions(nn.Composite):
    """Learned positions, added to what it reads."""

    table: nn.Layer
    decodes = True

    def forward(self, call, x):
        places = call.position + jnp.arange(x.shape[-2])
        return x + call.table(jnp.broadcast_to(places, x.shape[:-1]))


class Silent(Positions):
    """The same, not declared."""

    def forward(self, call, x):
        return super().forward(call, x)


class Tokens(nn.Composite):
    """From ids to logits, with positions and attention."""

    embed: nn.Layer
    positions: nn.Layer
    body: nn.Layer
    decodes = True

    def forward(self, call, ids):
        return call.embed.attend(call.body(call.positions(call.embed(ids))))


ATTENTION = nn.Residual(nn.MultiHeadAttention(2, causal=True))
POSITIONS = Positions(nn.Embed(LENGTH, 4))
DECODERS = [
    LayerRow(POSITIONS, (LENGTH, 4)),
    LayerRow(nn.Series(POSITIONS, nn.Linear(3)), (LENGTH, 4)),
    LayerRow(nn.Stack(nn.Series(POSITIONS, ATTENTION), 2), (LENGTH, 4)),
    LayerRow(nn.Remat(nn.Series(POSITIONS, ATTENTION, nn.F(jax.nn.gelu))), (LENGTH, 4)),
    LayerRow(Policy("float32").apply(nn.Series(POSITIONS, ATTENTION)), (LENGTH, 4)),
    LayerRow(Tokens(nn.Embed(5, 4), POSITIONS, nn.Stack(ATTENTION, 2)), (LENGTH,), ids=5),
    LayerRow(nn.Parallel(nn.Linear(2), nn.Recurrent(nn.GRUCell(3))), (LENGTH, 4)),
    LayerRow(nn.Series(nn.F(jax.nn.softmax, decodes=True)), (LENGTH, 4)),
    LayerRow(nn.Series(nn.F(lambda x: jax.nn.sigmoid(x) * x + 1)), (LENGTH, 4)),
]
DECODE = {
    "Series(Flatten(2), Linear(5), Bias(), F(relu), Series(Linear(2), F(tanh)))": False,
    "Linear(3)": True,
    "MultiHeadAttention(2)": False,
    "BatchNorm()": True,
}


def decoded(layer, x, variables, axis, sizes):
    """What decoding in parts of these sizes gives, put together."""
    first = jax.lax.slice_in_dim(x, 0, sizes[0], axis=axis)
    cache, decode, parts, start = layer.init_cache(first, x.shape[axis]), jax.jit(layer.decode), [], 0
    for size in sizes:
        part = jax.lax.slice_in_dim(x, start, start + size, axis=axis)
        y, cache = decode(part, *variables, cache)
        parts.append(y)
        start += size
    return parts


@pytest.mark.parametrize("row", [*LAYERS, *DECODERS], ids=lambda row: row.id)
def test_decoding_equals_the_whole_or_is_refused_by_name(row):
    x = row.subject.example(batch=(3, 2))
    axis = x.ndim + (-1 if jnp.issubdtype(x.dtype, jnp.integer) else -2)
    length = x.shape[axis]
    variables = row.arrays
    wanted = DECODE.get(row.id, True if row in DECODERS else None)
    try:
        row.layer.init_cache(jax.lax.slice_in_dim(x, 0, 1, axis=axis), length)
    except nn.LayerError as error:
        assert not wanted, "it says that it decodes"
        assert "does not decode" in str(error) and type(error).__name__ == "LayerError"
        return
    assert wanted is not False, "it must refuse"
    whole, _ = jax.jit(functools.partial(row.layer.fwd, inference_mode=True))(x, *variables)
    chunks = [(1,) * length, (2, *(1,) * (length - 2)), (1, length - 1), (length,)]
    for sizes in {sizes for sizes in chunks if sum(sizes) == length and min(sizes) > 0}:
        parts = decoded(row.layer, x, variables, axis, sizes)
        if getattr(row.layer, "output", "sequence") == "last":
            got = parts[-1]
        else:
            got = jax.tree.map(lambda *ys: jnp.concatenate(ys, axis=axis), *parts)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), got, whole)


def block(layer):
    return nn.Series(nn.Linear(4), nn.Residual(layer))


REFUSED = {
    "a class that does not declare it": (Silent(nn.Embed(5, 4)), r"\[1\]\.layer\.Silent: does not decode"),
    "a sum over steps": (
        nn.F(lambda x: jnp.cumsum(x, -2)),
        r"\[1\]\.layer\.F: does not decode: .*decodes=True",
    ),
    "a place": (
        nn.F(lambda x: x * jnp.arange(x.shape[-2], dtype="float32")[None, :, None]),
        r"\.F: does not decode",
    ),
    "the length": (nn.F(lambda x: x / x.shape[-2]), r"\.F: does not decode"),
    "the length as a power": (nn.F(lambda x: x ** x.shape[-2]), r"\.F: does not decode"),
    "a constant of a step": (nn.F(lambda x: x + np.ones((2, 1, 4), "float32")), r"\.F: does not decode"),
    "a child of Stack": (
        nn.Stack(nn.Series(nn.LayerNorm(2)), 2),
        r"layer\[…\]\[0\]\.LayerNorm: does not decode",
    ),
    "a child of a policy": (
        Policy("float32").apply(nn.MultiHeadAttention(2)),
        r"MultiHeadAttention: does not decode",
    ),
    "a recomputed one": (nn.Remat(nn.Recurrent(nn.GRUCell(4), reverse=True)), r"Recurrent: does not decode"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_decode_is_named(name):
    layer, message = REFUSED[name]
    with pytest.raises(nn.LayerError, match=rf"^model.*{message}"):
        block(layer).init_cache(jnp.ones((2, 1, 4)), 5)


def test_a_class_declares_for_its_own_function():
    """A derived class that writes another fwd, or forward, declares anew."""

    class Shifted(nn.Linear):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            return super().fwd(jnp.roll(x, 1, -2), trainables, non_trainables)

    class Backwards(nn.Series):
        def forward(self, call, x):
            return super().forward(call, x[..., ::-1, :])

    x = jnp.ones((2, 1, 4))
    for layer in (Shifted(4), Backwards(nn.Linear(4))):
        assert nn.Linear(4).decodes and not layer.decodes
        with pytest.raises(nn.LayerError, match=rf"^{type(layer).__name__}: does not decode"):
            layer.init_cache(x, 3)
        with pytest.raises(nn.LayerError, match=r"does not decode"):
            layer.decode(x, *layer.init(jax.random.key(0), x), ())


def test_the_place_is_0_in_fwd_and_counts_in_decode():
    x = jnp.ones((2, 6, 4))
    variables = POSITIONS.init(jax.random.key(0), x[:, :5])
    cache = POSITIONS.init_cache(x[:, :1], 5)
    assert cache == {"position": 0} and cache["position"].dtype == "int32"
    _, cache = POSITIONS.decode(x[:, :3], *variables, cache)
    assert cache["position"] == 3
    with pytest.raises(nn.LayerError, match=r"^Positions: cache expects what init_cache made"):
        POSITIONS.decode(x, *variables, ())


@pytest.mark.parametrize(
    "function",
    [jax.nn.relu, jax.nn.gelu, jax.nn.silu, jax.nn.leaky_relu, jnp.tanh, lambda x: jnp.where(x > 0, x, 0.0) ** 2,
     lambda x: x.astype("bfloat16"), jax.jit(lambda x: jax.nn.elu(2 * x)), jnp.ones_like, jax.nn.softplus],
)  # fmt: skip
def test_elementwise_functions_are_found(function):
    assert is_elementwise(function, jax.ShapeDtypeStruct((2, 1, 4), jnp.float32))


def test_a_sum_of_branches_is_elementwise():
    x = jax.ShapeDtypeStruct((2, 1, 4), jnp.float32)
    assert is_elementwise(lambda xs: xs[0] * xs[1], (x, x))
    assert not is_elementwise(lambda xs: jnp.concatenate(xs, -1), (x, x))
    assert not is_elementwise(lambda x: x + jax.random.normal(jax.random.key(0), x.shape), x)


def test_whoever_asks_leaves_nothing_to_the_garbage_collector():
    x = jax.ShapeDtypeStruct((2, 1, 4), jnp.float32)
    is_elementwise(jax.nn.gelu, x)  # what JAX remembers of it is made now
    gc.collect()
    gc.disable()
    try:
        is_elementwise(jax.nn.gelu, x)
        assert gc.collect() == 0
    finally:
        gc.enable()
