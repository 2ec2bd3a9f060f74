"""What attention can be asked for: bias, masks a head, windows, dropout, positions, other implementations, a cache for cross attention."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from mlax_tutorial import nn
from mlax_tutorial.nn import attention


def draw(seed, *shape, dtype=jnp.float32):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def reference(query, key, value, allowed, bias):
    """Written out in float64: one matrix of weights for each example and head."""
    y = np.zeros(query.shape)
    for batch, head in np.ndindex(query.shape[0], query.shape[2]):
        keys, values = (np.float64(a)[batch, :, head * a.shape[2] // query.shape[2]] for a in (key, value))
        logits = np.float64(query)[batch, :, head] @ keys.T / np.sqrt(query.shape[-1]) + bias[batch, head]
        weights = np.where(allowed[batch, head], np.exp(logits), 0)
        total = weights.sum(axis=-1, keepdims=True)
        y[batch, :, head] = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0) @ values
    return y


FORMS = {
    "plain": attention.attend,
    "chunks": functools.partial(attention.attend_in_chunks, chunk_size=3),
    "xla": functools.partial(attention.attend_by_jax, implementation="xla"),
    "cudnn, of which a CPU has none": functools.partial(attention.attend_by_jax, implementation="cudnn"),
}
BATCH, QUERIES, KEYS, HEADS = 2, 5, 7, 4
CASES = {
    "a bias": dict(bias=(BATCH, HEADS, QUERIES, KEYS)),
    "a bias for all": dict(bias=(HEADS, 1, KEYS)),
    "a bias for all heads, causal": dict(bias=(1, QUERIES, KEYS), causal=True, offset=2),
    "a mask and a bias": dict(mask=(BATCH, QUERIES, KEYS), bias=(1, HEADS, QUERIES, KEYS)),
    "a mask for all examples": dict(mask=(1, KEYS)),
    "a mask a head": dict(bias=(BATCH, HEADS, QUERIES, KEYS), forbids=True),
    "a window": dict(window=3),
    "a causal window": dict(window=2, causal=True),
    "all of it": dict(
        mask=(BATCH, 1, KEYS), bias=(HEADS, QUERIES, KEYS), forbids=True, window=3, causal=True, offset=1
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_against_the_formula(case):
    """All forms in one program, since compiling takes the time; their gradients against those of the plain form."""
    case = dict(case)
    arrays = draw(0, BATCH, QUERIES, HEADS, 6), draw(1, BATCH, KEYS, 2, 6), draw(2, BATCH, KEYS, 2, 6)
    mask = np.random.default_rng(3).random(case.pop("mask", (1, 1))) < 0.5
    bias = np.random.default_rng(4).normal(size=(bias_shape := case.pop("bias", (1, 1, 1)))).astype("float32")
    if case.pop("forbids", False):
        bias = np.where(np.random.default_rng(5).random(bias_shape) < 0.5, bias, -np.inf).astype("float32")
        bias[..., 0, :] = -np.inf  # a query that may look at nothing
    given = {"mask": mask} if mask.size > 1 else {}
    given |= {"bias": bias} if bias.size > 1 else {}
    allowed = np.ones((BATCH, HEADS, QUERIES, KEYS), bool)
    if given.keys() & {"mask"}:
        mask[..., 1:, :][..., -1:, :] = False  # nor may the last, where the mask tells queries apart
        allowed &= mask[..., None, :, :]
    bias = np.broadcast_to(bias if "bias" in given else 0, allowed.shape)
    distance = case.get("offset", 0) + np.arange(QUERIES)[:, None] - np.arange(KEYS)
    allowed = allowed & (distance >= 0 if case.get("causal") else True)
    allowed = allowed & (abs(distance) < case.get("window", 99)) & np.isfinite(bias)

    @jax.jit
    def run(arrays, cotangent):
        found = {}
        for name, form in FORMS.items():
            y, back = jax.vjp(lambda arrays, form=form: form(*arrays, **given, **case), arrays)
            found[name] = y, back(cotangent)[0]
        return found

    given = jax.tree.map(jnp.asarray, given)
    found = run(arrays, draw(6, *arrays[0].shape))
    for name, (y, gradients) in found.items():
        np.testing.assert_allclose(y, reference(*arrays, allowed, bias), atol=2e-6, err_msg=name)
        for got, wanted in zip(gradients, found["plain"][1]):
            np.testing.assert_allclose(got, wanted, atol=1e-5, err_msg=name)


def test_where_jax_averages_what_is_forbidden_we_give_zeros():
    query, mask = draw(0, 1, 3, 2, 4), jnp.array([[True] * 3, [False] * 3, [True] * 3])
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        theirs = jax.nn.dot_product_attention(query, query, query, mask=mask[None, None])
    np.testing.assert_allclose(theirs[0, 1], query.mean(axis=1)[0], atol=1e-6)
    for form in FORMS.values():
        np.testing.assert_array_equal(form(query, query, query, mask=mask)[0, 1], 0)
        np.testing.assert_allclose(form(query, query, query, mask=mask)[0, ::2], theirs[0, ::2], atol=1e-6)


def test_the_fused_kernel_is_chosen_when_the_program_is_lowered():
    x = draw(0, 2, 8, 2, 16, dtype=jnp.bfloat16)
    run = jax.jit(functools.partial(attention.attend_by_jax, implementation="cudnn", causal=True))
    plain = jax.jit(functools.partial(attention.attend, causal=True))
    assert "platform_index" in str(run.trace(x, x, x).jaxpr)
    np.testing.assert_array_equal(run(x, x, x), plain(x, x, x))
    for wrapped in (jax.vmap(run), jax.grad(lambda x, *more: jnp.sum(run(x, *more)))):
        assert wrapped(x, x, x).shape == x.shape


def test_dropout_loses_weights_and_keeps_their_mean():
    layer, x = nn.MultiHeadAttention(2, dropout=0.5), draw(0, 6, 8)
    trainables, _ = layer.init(jax.random.key(0), x)
    plain = nn.MultiHeadAttention(2).fwd(x, trainables, ())[0]
    np.testing.assert_array_equal(layer.fwd(x, trainables, (), inference_mode=True)[0], plain)
    drawn = jax.vmap(lambda key: layer.fwd(x, trainables, (), key=key)[0])(
        jax.random.split(jax.random.key(1), 4000)
    )
    assert layer.needs_key and float(jnp.std(drawn, axis=0).min()) > 0.01
    np.testing.assert_allclose(drawn.mean(axis=0), plain, atol=0.1)
    query = draw(1, 64, 1, 4)
    one = attention.attend(query, query, jnp.ones((64, 1, 4)), dropout=0.25, dropout_key=jax.random.key(2))
    np.testing.assert_allclose(one.mean(), 1, atol=0.05)  # the sum of what is left of each query's weights


def test_biases_of_the_projections_start_at_zero_and_are_added():
    layer, x = nn.MultiHeadAttention(2, kv_heads=1, use_bias=True), draw(0, 3, 5, 8)
    trainables, _ = layer.init(jax.random.key(0), x)
    assert {name: a.shape for name, a in trainables.items() if name.endswith("bias")} == {
        "query_bias": (2, 4), "key_bias": (1, 4), "value_bias": (1, 4), "out_bias": (8,)
    }  # fmt: skip
    assert not any(trainables[name].any() for name in trainables if name.endswith("bias"))
    biases = {name: draw(7, *a.shape) for name, a in trainables.items() if name.endswith("bias")}
    query, key, value = (
        np.einsum("bld,dhk->blhk", x, trainables[f"{name}_kernel"]) + np.asarray(biases[f"{name}_bias"])
        for name in ("query", "key", "value")
    )
    allowed = np.ones((3, 2, 5, 5), bool)
    wanted = reference(query, key, value, allowed, np.zeros((3, 2)))
    wanted = np.einsum("blhk,hkd->bld", wanted, trainables["out_kernel"]) + np.asarray(biases["out_bias"])
    np.testing.assert_allclose(layer.fwd(x, trainables | biases, ())[0], wanted, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"chunk_size": 2}, {"implementation": "xla"}], ids=["plain", "chunks", "jax"]
)
@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences_do_not_see_each_other(options, causal):
    layer, x = nn.MultiHeadAttention(2, causal=causal, **options), draw(0, 2, 5, 8)
    segments = jnp.array([[0, 0, 1, 1, 1], [3, 3, 3, 3, 1]])
    trainables, _ = layer.init(jax.random.key(0), x, segments=segments)
    packed, _ = layer.fwd(x, trainables, (), segments=segments)
    for row, start, end in ((0, 0, 2), (0, 2, 5), (1, 0, 4), (1, 4, 5)):
        alone, _ = layer.fwd(x[row, start:end], trainables, ())
        np.testing.assert_allclose(packed[row, start:end], alone, atol=1e-5)


def test_segments_of_a_context():
    layer, x, context = nn.MultiHeadAttention(2), draw(0, 4, 8), draw(1, 5, 8)
    trainables, _ = layer.init(jax.random.key(0), x, context=context)
    segments = jnp.array([0, 0, 1, 1]), jnp.array([0, 0, 0, 1, 1])
    packed, _ = layer.fwd(x, trainables, (), context=context, segments=segments)
    for own, theirs in ((slice(0, 2), slice(0, 3)), (slice(2, 4), slice(3, 5))):
        alone, _ = layer.fwd(x[own], trainables, (), context=context[theirs])
        np.testing.assert_allclose(packed[own], alone, atol=1e-5)


def test_the_weights_of_all_heads_are_shown():
    model, x = (
        nn.Series(nn.Linear(8), nn.MultiHeadAttention(4, kv_heads=2, causal=True, rotary_base=100)),
        draw(0, 2, 5, 8),
    )
    variables = model.init(jax.random.key(0), x)
    _, captured = nn.capture(model, "weights")(x, *variables, inference_mode=True)
    weights = captured["[1]"]
    assert weights.shape == (2, 4, 5, 5) and not jnp.triu(weights, 1).any()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)


def test_positions_from_outside():
    layer, x = nn.MultiHeadAttention(2, rotary_base=100), draw(0, 2, 5, 8)
    trainables, _ = layer.init(jax.random.key(0), x, positions=jnp.arange(5))
    plain, _ = layer.fwd(x, trainables, ())
    shifted, _ = layer.fwd(x, trainables, (), positions=7 + jnp.arange(5))  # only distances count
    np.testing.assert_allclose(shifted, plain, atol=1e-5)
    order = jnp.array([3, 1, 4, 0, 2])
    mixed, _ = layer.fwd(x[:, order], trainables, (), positions=order)
    np.testing.assert_allclose(mixed, plain[:, order], atol=1e-5)
    each, _ = layer.fwd(x, trainables, (), positions=jnp.stack([jnp.arange(5), 2 * jnp.arange(5)]))
    np.testing.assert_allclose(each[0], plain[0], atol=1e-5)
    assert jnp.abs(each[1] - plain[1]).max() > 1e-3


OPTIONS = {
    "plain": {},
    "window": {"window": 2},
    "rotary": {"rotary_base": 100},
    "biases": {"use_bias": True},
    "chunks": {"chunk_size": 2},
    "xla": {"implementation": "xla"},
    "cudnn": {"implementation": "cudnn", "window": 3},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_decoding_with_a_mask_and_a_bias_equals_the_whole(options):
    layer, x, length = nn.MultiHeadAttention(2, causal=True, **options), draw(0, 3, 6, 8), 6
    mask, bias = np.random.default_rng(1).random((3, 6, 6)) < 0.7, draw(2, 2, 6, 6)
    positions = {"positions": 3 * jnp.arange(6)} if "rotary_base" in options else {}
    trainables, _ = layer.init(jax.random.key(0), x)
    whole, _ = layer.fwd(x, trainables, (), mask=mask, bias=bias, **positions)
    cache, parts = layer.init_cache(x[:, :1], length), []
    decode = jax.jit(layer.decode)
    for steps in (slice(0, 2), slice(2, 4), slice(4, 6)):
        given = {name: array[steps] for name, array in positions.items()}
        y, cache = decode(
            x[:, steps], trainables, (), cache, mask=mask[:, steps], bias=bias[:, steps], **given
        )
        parts.append(y)
    np.testing.assert_allclose(jnp.concatenate(parts, axis=1), whole, atol=1e-5)


class Decoder(nn.Composite):
    own: nn.Layer
    cross: nn.Layer

    decodes = True

    def forward(self, call, x, *, memory=None):
        x = x + call.own(x)
        return x + call.cross(x, context=memory)


DECODER = Decoder(nn.MultiHeadAttention(2, causal=True), cross=nn.MultiHeadAttention(2, use_bias=True))


@pytest.mark.parametrize("model", [DECODER, nn.Stack(DECODER, depth=2)], ids=["one", "stack"])
def test_cross_attention_decodes_and_projects_its_context_once(model):
    x, memory = draw(0, 3, 4, 8), draw(1, 3, 5, 8)
    trainables, _ = model.init(jax.random.key(0), x, memory=memory)
    whole, _ = model.fwd(x, trainables, (), memory=memory)
    cache = model.init_cache(x[:, :1], 4, memory=memory)
    first, cache = model.decode(x[:, :2], trainables, (), cache, memory=memory)
    rest = []
    decode = jax.jit(model.decode)
    for step in (2, 3):
        y, cache = decode(x[:, step : step + 1], trainables, (), cache)
        rest.append(y)
    np.testing.assert_allclose(jnp.concatenate([first, *rest], axis=1), whole, atol=1e-5)
    later = str(jax.make_jaxpr(model.decode)(x[:, :1], trainables, (), cache))
    again = str(jax.make_jaxpr(model.decode)(x[:, :1], trainables, (), cache, memory=memory))
    assert "f32[3,5,8]" in again and "f32[3,5,8]" not in later  # the shape of the context


X = jnp.ones((2, 5, 8))
PLAIN, CAUSAL = nn.MultiHeadAttention(2), nn.MultiHeadAttention(2, causal=True)
WEIGHTS = PLAIN.init(jax.random.key(0), X)[0]
WRONG = {
    "heads and head_dim by place": (lambda: nn.MultiHeadAttention(32, 4), TypeError, "takes .* positional"),
    "dropout in chunks": (
        lambda: nn.MultiHeadAttention(2, dropout=0.1, chunk_size=4), ValueError, "exclude each other"
    ),
    "dropout in a fused kernel": (
        lambda: nn.MultiHeadAttention(2, dropout=0.1, implementation="cudnn"), ValueError, "needs all weights"
    ),
    "dropout above 1": (lambda: nn.MultiHeadAttention(2, dropout=10), ValueError, r"number in \[0, 1\], got 10"),
    "an unknown implementation": (
        lambda: nn.MultiHeadAttention(2, implementation="flash"), ValueError, "must be one of 'xla', 'cudnn', got 'flash'"
    ),
    "a window of nothing": (lambda: nn.MultiHeadAttention(2, window=0), ValueError, "window must be an integer of at least 1"),
    "weights in a window of nothing": (
        lambda: attention.pair_weights(X, X, window=0), ValueError, "window must be an integer of at least 1"
    ),
    "dropout without a key": (
        lambda: nn.MultiHeadAttention(2, dropout=0.1).fwd(X, WEIGHTS, ()), nn.LayerError, "needs a key in training, got None"
    ),
    "a traced inference_mode": (
        lambda: jax.jit(lambda mode: nn.MultiHeadAttention(2, dropout=0.1).fwd(X, WEIGHTS, (), inference_mode=mode))(True),
        nn.LayerError, "must be a Python bool",
    ),
    "a Boolean bias": (
        lambda: PLAIN.fwd(X, WEIGHTS, (), bias=jnp.ones((2, 5, 5), bool)), nn.LayerError, r"jnp\.where\(mask, 0\.0, -jnp\.inf\)"
    ),
    "a bias without heads": (
        lambda: PLAIN.fwd(X, WEIGHTS, (), bias=jnp.ones((5, 5))), nn.LayerError, r"bias expects shape \(\.\.\., 2 or 1, 5 or 1, 5\)"
    ),
    "a bias of other heads": (
        lambda: PLAIN.fwd(X, WEIGHTS, (), bias=jnp.ones((3, 5, 5))), nn.LayerError, r"got float32\[3,5,5\]"
    ),
    "a bias of another batch": (
        lambda: PLAIN.fwd(X, WEIGHTS, (), bias=jnp.ones((3, 2, 5, 5))), nn.LayerError, r"bias expects the batch axes \(2,\)"
    ),
    "segments of one step": (  # which would allow everything
        lambda: PLAIN.fwd(X, WEIGHTS, (), segments=jnp.zeros((2, 1), int)), nn.LayerError,
        r"segments expect integers of shape \(\.\.\., 5\), got int32\[2,1\]",
    ),
    "segments for a context that has others": (
        lambda: PLAIN.fwd(X, WEIGHTS, (), context=X[:, :3], segments=jnp.zeros((2, 5), int)), nn.LayerError,
        r"shape \(\.\.\., 3\), got int32\[2,5\]: where queries and keys differ, give a pair",
    ),
    "segments in a list": (
        lambda: attention.attend(X[..., None], X[..., None], X[..., None], segments=[[0, 0, 1, 1, 1]] * 2), ValueError,
        r"^attention: segments expect integers of shape \(\.\.\., 5\), got a list of length 2",
    ),
    "segments of the keys alone": (  # which would switch them off
        lambda: PLAIN.fwd(X, WEIGHTS, (), segments=(None, jnp.zeros((2, 5), int))), nn.LayerError,
        r"segments expect one array, or a pair: .*, got \(None, int32\[2,5\]\)\.",
    ),
    "segments of the queries alone": (
        lambda: PLAIN.fwd(X, WEIGHTS, (), segments=(jnp.zeros((2, 5), int), None)), nn.LayerError,
        r"segments expect one array, or a pair: .*, got \(int32\[2,5\], None\)\.",
    ),
    "three segments": (
        lambda: attention.attend_in_chunks(*[X[..., None]] * 3, segments=(jnp.zeros((2, 5), int),) * 3), ValueError,
        r"^attention: segments expect one array, or a pair",
    ),
    "positions without rotary_base": (
        lambda: PLAIN.fwd(X, WEIGHTS, (), positions=jnp.arange(5)), nn.LayerError, "positions are for rotary layers"
    ),
    "positions of another length": (
        lambda: nn.MultiHeadAttention(2, rotary_base=9).fwd(X, WEIGHTS, (), positions=jnp.arange(4)), nn.LayerError,
        r"positions expect integers of shape \(\.\.\., 5\), got int32\[4\]: one for each step",
    ),
    "positions of another batch": (
        lambda: nn.MultiHeadAttention(2, rotary_base=9).fwd(X, WEIGHTS, (), positions=jnp.ones((3, 5), int)), nn.LayerError,
        r"positions expect the batch axes \(2,\), got int32\[3,5\]",
    ),
    "segments of another batch": (
        lambda: PLAIN.fwd(X[:1], WEIGHTS, (), segments=jnp.ones((3, 5), int)), nn.LayerError,
        r"segments expect the batch axes \(1,\), got int32\[3,5\]",
    ),
    "a context for a window": (
        lambda: nn.MultiHeadAttention(2, window=2).fwd(X, WEIGHTS, (), context=X), nn.LayerError, "takes no context"
    ),
    "a cache for what looks ahead": (
        lambda: PLAIN.init_cache(X[:, :1], 5), nn.LayerError, "does not decode, for each place looks at later ones"
    ),
    "cross attention that was never given its context": (
        lambda: PLAIN.decode(X[:, :1], WEIGHTS, (), PLAIN.init_cache(X[:, :1], 5, context=X)), nn.LayerError,
        "its first decode needs the context",
    ),
    "a mask of the new keys alone": (
        lambda: CAUSAL.decode(X[:, :1], WEIGHTS, (), CAUSAL.init_cache(X[:, :1], 5), mask=jnp.ones((1, 1), bool)),
        nn.LayerError, r"mask expects shape \(\.\.\., 1 or 1, 5\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_uses(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()


EXPORTED = {
    "plain": PLAIN,
    "causal, grouped, rotary": nn.MultiHeadAttention(
        2, kv_heads=1, causal=True, rotary_base=100, use_bias=True
    ),
    "window": nn.MultiHeadAttention(2, window=2),
    "chunks": nn.MultiHeadAttention(2, causal=True, chunk_size=2),
    "cudnn": nn.MultiHeadAttention(2, causal=True, implementation="cudnn"),
}


@pytest.mark.parametrize("layer", EXPORTED.values(), ids=EXPORTED)
def test_export_with_a_symbolic_batch_and_length(layer):
    trainables, _ = layer.init(jax.random.key(0), X)
    batch, length = export.symbolic_shape("batch, length")
    x = jax.ShapeDtypeStruct((batch, length, 8), jnp.float32)
    mask = jax.ShapeDtypeStruct((batch, 1, length), jnp.bool_)

    def run(x, mask):
        return layer.fwd(x, trainables, (), mask=mask)[0]

    exported = export.export(jax.jit(run))(x, mask)
    for shape in ((3, 5, 8), (1, 4, 8)):
        x, mask = draw(0, *shape), jnp.ones((shape[0], 1, shape[1]), bool).at[..., -1].set(False)
        np.testing.assert_allclose(exported.call(x, mask), run(x, mask), atol=1e-5)


def test_decoding_under_debug_nans_eagerly_and_jitted():
    cache = CAUSAL.init_cache(X[:, :1], 2)
    with jax.debug_nans(True):
        for decode in (CAUSAL.decode, jax.jit(CAUSAL.decode)):
            y, _ = decode(X[:, :1], WEIGHTS, (), cache)
            assert jnp.isfinite(y).all()
        masked, _ = PLAIN.fwd(X, WEIGHTS, (), mask=jnp.zeros((5, 5), bool))
    np.testing.assert_array_equal(masked, 0)


@pytest.mark.parametrize("implementation", ["xla", "cudnn"])
def test_queries_that_a_window_leaves_without_keys_get_zeros(implementation):
    query, key = jnp.ones((5, 1, 4)), jnp.ones((2, 1, 4))
    options = {"causal": True, "window": 1}
    y = attention.attend_by_jax(query, key, key, implementation=implementation, **options)
    np.testing.assert_array_equal(y[:, 0, 0], [1, 1, 0, 0, 0])
    np.testing.assert_array_equal(y, attention.attend(query, key, key, **options))
