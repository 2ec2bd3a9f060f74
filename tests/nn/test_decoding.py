"""Decoding a step at a time equals the whole, for every row of the law table; or it is refused by name."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.precision import Policy
from tests.laws.rows import LAYERS
from tests.laws.rows.row import LayerRow

QUICK_TO_COMPILE = True
LENGTH = 5


class Positions(nn.Composite):
    """Learned positions, added to what it reads."""

    table: nn.Layer
    decodes = True

    def forward(self, call, x):
        return x + call.table(call.place)


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


class Memory(nn.Layer):
    """A leaky sum of all steps, as someone else would write it."""

    decodes = True

    def init(self, key, x):
        return {"rate": jnp.full(x.shape[-1:], 0.5, x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.decode(x, trainables, non_trainables, None)[0], non_trainables

    def build_cache(self, x, length):
        return jnp.zeros((*x.shape[:-2], x.shape[-1]), jnp.float32)

    def decode(self, x, trainables, non_trainables, cache):
        rate = jnp.broadcast_to(trainables["rate"], x.shape)
        return nn.linear_recurrence(1 - rate, rate * x, cache)


class Gated(nn.Composite):
    """A block in the manner of Mamba: a short convolution, a recurrence, a gate."""

    width: int
    decodes = True

    def children(self):
        return {
            "mix": nn.Conv(4, (self.width,), padding="CAUSAL", groups=4),
            "memory": Memory(),
            "gate": nn.Linear(4),
        }

    def forward(self, call, x):
        return x + call.memory(call.mix(x)) * jax.nn.silu(call.gate(x))


ATTENTION = nn.Residual(nn.MultiHeadAttention(2, causal=True))
POSITIONS = Positions(nn.Embed(LENGTH, 4))
DECODERS = [
    LayerRow(POSITIONS, (LENGTH, 4)),
    LayerRow(nn.Series(POSITIONS, nn.Linear(3)), (LENGTH, 4)),
    LayerRow(nn.Stack(nn.Series(POSITIONS, ATTENTION), 2), (LENGTH, 4)),
    LayerRow(nn.Remat(nn.Series(POSITIONS, ATTENTION, nn.F(jax.nn.gelu))), (LENGTH, 4)),
    LayerRow(Policy("float32").apply(nn.Series(POSITIONS, ATTENTION)), (LENGTH, 4)),
    LayerRow(Tokens(nn.Embed(5, 4), POSITIONS, nn.Stack(ATTENTION, 2)), (LENGTH,), ids=5),
    LayerRow(
        nn.Series(nn.LoRA(nn.MultiHeadAttention(2, causal=True), 1), nn.LoRA(nn.Linear(2), 1)), (LENGTH, 4)
    ),
    LayerRow(nn.Parallel(nn.Linear(2), nn.Recurrent(nn.GRUCell(3))), (LENGTH, 4)),
    LayerRow(
        nn.Series(
            nn.Conv(2, (3,), padding="CAUSAL", dilation=2, groups=2), nn.Conv(3, (2,), padding="CAUSAL")
        ),
        (LENGTH, 4),
    ),
    LayerRow(nn.Stack(Gated(3), 2), (LENGTH, 4)),
    LayerRow(nn.Series(nn.F(jax.nn.softmax, decodes=True)), (LENGTH, 4)),
    LayerRow(nn.Series(nn.F(lambda x: jax.nn.sigmoid(x) * x + 1, decodes=True)), (LENGTH, 4)),
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


class Keeps(nn.Layer):
    decodes = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.cumsum(x, axis=-2), non_trainables

    def build_cache(self, x, length):
        return jnp.zeros((*x.shape[:-2], 1, x.shape[-1]), x.dtype)


class Single(Keeps):
    def decode(self, x, trainables, non_trainables, cache):
        return cache + jnp.cumsum(x, axis=-2)


class Bare(nn.Layer):
    decodes = True
    fwd, decode = Keeps.fwd, Single.decode


class Holds(nn.Composite):
    layer: nn.Layer
    decodes = True
    build_cache = Keeps.build_cache

    def forward(self, call, x):
        return call.layer(x)


@pytest.mark.parametrize(
    "around", [nn.Series, nn.Remat, Policy("float32").apply], ids=["Series", "Remat", "Policy"]
)
def test_a_cache_that_nothing_uses_and_one_that_nothing_makes_are_refused(around):
    step = jnp.ones((2, 1, 4))
    with pytest.raises(
        nn.LayerError, match=r"Keeps: writes build_cache but no decode, which would use the cache"
    ):
        around(Keeps()).init_cache(step, LENGTH)
    with pytest.raises(
        nn.LayerError, match=r"Bare: writes decode but no build_cache, which makes what it is given"
    ):
        around(Bare()).init_cache(step, LENGTH)
    with pytest.raises(
        nn.LayerError, match=r"Holds: writes build_cache, but holds layers, so that its cache is theirs"
    ):
        around(Holds(nn.Linear(4))).init_cache(step, LENGTH)
    model = around(Single())
    with pytest.raises(
        nn.LayerError, match=r"Single: decode must return \(y, cache\), got float32\[2,1,4\]: end it"
    ):
        model.decode(step, *model.init(jax.random.key(0), step), model.init_cache(step, LENGTH))


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


@pytest.mark.parametrize("row", [row for row in DECODERS if "Multi" in row.id], ids=lambda row: row.id)
def test_rows_at_different_places(row):
    """Prompts of different lengths, padded, read at once: each row goes on from its own place, as if it were alone."""
    x, lengths = row.subject.example(batch=(3,)), jnp.array([2, 1, 3])
    whole, _ = row.layer.fwd(x, *row.arrays, inference_mode=True)
    cache = row.layer.init_cache(x[:, :1], LENGTH)
    _, cache = row.layer.decode(
        x[:, :3], *row.arrays, cache
    )  # behind a row's length stands what comes later: padding
    cache, rows = nn.with_place(cache, lengths), jnp.arange(3)
    for _ in range(2):
        y, cache = row.layer.decode(x[rows, lengths][:, None], *row.arrays, cache)
        np.testing.assert_allclose(y[:, 0], whole[rows, lengths], rtol=1e-4, atol=1e-5)
        lengths += 1


def block(layer):
    return nn.Series(nn.Linear(4), nn.Residual(layer))


REFUSED = {
    "a class that does not declare it": (Silent(nn.Embed(5, 4)), r"\[1\]\.layer\.Silent: does not decode"),
    "a sum over steps": (
        nn.F(lambda x: jnp.cumsum(x, -2)),
        r"\[1\]\.layer\.F: does not decode: .*decodes=True",
    ),
    "a softmax": (nn.F(jax.nn.softmax), r"\.F: does not decode: softmax may mix steps"),
    "a child of Stack": (
        nn.Stack(nn.Series(nn.LayerNorm(axes=2)), 2),
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
    assert cache["place"].tolist() == [0, 0] and cache["place"].dtype == "int32"
    _, cache = POSITIONS.decode(x[:, :3], *variables, cache)
    assert cache["place"].tolist() == [3, 3]
    with pytest.raises(nn.LayerError, match=r"^Positions: cache expects what init_cache made"):
        POSITIONS.decode(x, *variables, ())


@pytest.mark.parametrize(
    "function",
    [
        jax.nn.relu,
        jax.nn.gelu,
        jax.nn.silu,
        jnp.tanh,
        functools.partial(jax.nn.leaky_relu, negative_slope=0.2),
    ],
)
def test_activations_decode_and_other_functions_where_they_say_so(function):
    x = jnp.ones((2, 1, 4))
    assert nn.F(function).init_cache(x, 5) == nn.F(lambda x: x + 1, decodes=True).init_cache(x, 5) == ()
    for layer in (nn.F(function, infer_fn=lambda x: x), nn.F(function, decodes=False)):
        with pytest.raises(nn.LayerError, match=r"^F: does not decode"):
            layer.decode(x, (), (), ())
