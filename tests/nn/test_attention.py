"""Attention against NumPy and `jax.nn.dot_product_attention`; masks, chunks, rotary positions, decoding, errors, memory."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.inspection.retracing import counted
from mlax_tutorial.nn import attention


def draw(seed, *shape, dtype=jnp.float32):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def reference(query, key, value, mask=None):
    """Loops over heads and queries, in float64."""
    query, key, value = (np.asarray(a, np.float64) for a in (query, key, value))
    y = np.zeros((*query.shape[:-1], value.shape[-1]))
    groups = query.shape[-2] // key.shape[-2]
    for index in np.ndindex(query.shape[:-1]):
        *batch, place, head = index
        keys, values = (
            key[(*batch, slice(None), head // groups)],
            value[(*batch, slice(None), head // groups)],
        )
        allowed = np.ones(len(keys), bool)
        if mask is not None:
            allowed = np.broadcast_to(mask, (*query.shape[:-2], len(keys)))[(*batch, place)]
        if not allowed.any():
            continue
        weights = np.exp(keys @ query[index] / np.sqrt(query.shape[-1])) * allowed
        y[index] = weights / weights.sum() @ values
    return y


CASES = {
    "plain": dict(batch=(2,), queries=3, keys=8, heads=4, kv_heads=4, mask=None),
    "grouped, no batch": dict(batch=(), queries=5, keys=8, heads=4, kv_heads=2, mask=None),
    "one query head a key head, masked": dict(
        batch=(2, 3), queries=4, keys=4, heads=2, kv_heads=1, mask=(2, 3, 4, 4)
    ),
    "a mask for all queries": dict(batch=(2,), queries=3, keys=6, heads=2, kv_heads=2, mask=(2, 1, 6)),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
forms = pytest.mark.parametrize(
    "form",
    [attention.attend, functools.partial(attention.attend_in_chunks, chunk_size=2)],
    ids=["plain", "chunks"],
)


def inputs(batch, queries, keys, heads, kv_heads, mask):
    allowed = None if mask is None else np.random.default_rng(9).random(mask) < 0.6
    if mask is not None and mask[-2] > 1:
        allowed[..., 0, :] = False  # one query may look at nothing
    arrays = (
        draw(0, *batch, queries, heads, 5), draw(1, *batch, keys, kv_heads, 5), draw(2, *batch, keys, kv_heads, 5)
    )  # fmt: skip
    return arrays, None if allowed is None else jnp.asarray(allowed)


@forms
@cases
def test_against_loops(form, case):
    arrays, mask = inputs(**case)
    np.testing.assert_allclose(form(*arrays, mask=mask), reference(*arrays, mask), rtol=1e-5, atol=1e-5)


@cases
def test_gradients_in_chunks_are_those_of_the_plain_form(case):
    arrays, mask = inputs(**case)
    weights = draw(3, *attention.attend(*arrays).shape)

    def gradients(form):
        return jax.jit(jax.grad(lambda arrays: jnp.sum(weights * form(*arrays, mask=mask))))(arrays)

    in_chunks = functools.partial(attention.attend_in_chunks, chunk_size=2)
    for got, wanted in zip(gradients(in_chunks), gradients(attention.attend)):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_against_jax(dtype):
    query, key, value = (
        draw(0, 2, 6, 4, 8, dtype=dtype),
        draw(1, 2, 6, 2, 8, dtype=dtype),
        draw(2, 2, 6, 2, 8, dtype=dtype),
    )
    mask = np.tri(6, dtype=bool)
    with jax.numpy_dtype_promotion("standard"):
        wanted = jax.nn.dot_product_attention(query, key, value, is_causal=True)
    tolerance = 1e-5 if dtype == "float32" else 0.03
    for got in (
        attention.attend(query, key, value, mask=jnp.asarray(mask)),
        attention.attend_in_chunks(query, key, value, causal=True, chunk_size=3),
    ):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(np.float32(got), np.float32(wanted), atol=tolerance)


def test_large_logits_do_not_overflow():
    query, key, value = 300 * draw(0, 4, 1, 8), 300 * draw(1, 4, 1, 8), draw(2, 4, 1, 8)
    plain = attention.attend(query, key, value)
    assert np.isfinite(plain).all()
    np.testing.assert_allclose(attention.attend_in_chunks(query, key, value, chunk_size=2), plain, atol=1e-5)


def temporary_bytes(form, length):
    x = jax.ShapeDtypeStruct((length, 2, 16), jnp.float32)
    step = jax.jit(jax.grad(lambda q, k, v: jnp.sum(form(q, k, v)), argnums=(0, 1, 2)))
    return step.lower(x, x, x).compile().memory_analysis().temp_size_in_bytes


def test_memory_of_the_backward_pass_grows_linearly_in_chunks(optimized):
    """The plain form stores all pairs."""
    in_chunks = functools.partial(attention.attend_in_chunks, causal=True, chunk_size=64)
    assert temporary_bytes(attention.attend, 2048) > 2.2 * temporary_bytes(attention.attend, 1024)
    assert temporary_bytes(in_chunks, 2048) < 2.5 * temporary_bytes(in_chunks, 1024)
    assert temporary_bytes(in_chunks, 2048) < 0.3 * temporary_bytes(attention.attend, 2048)


def test_rotary_products_depend_on_distance_only():
    query, key = draw(0, 1, 1, 8), draw(1, 1, 1, 8)

    def product(query_place, key_place):
        turned = (
            attention.rotary(a, jnp.array([place])) for a, place in ((query, query_place), (key, key_place))
        )
        return float(jnp.sum(functools.reduce(jnp.multiply, turned)))

    assert abs(product(3, 1) - product(103, 101)) < 1e-4
    assert abs(product(3, 1) - product(3, 2)) > 1e-3


def test_rotary_against_complex_numbers():
    x, places, base = draw(0, 6, 2, 8), np.array([0, 1, 2, 5, 700, 1000]), 50.0
    pairs = np.asarray(x)[..., :4] + 1j * np.asarray(x)[..., 4:]
    turned = pairs * np.exp(1j * places[:, None, None] * base ** (-np.arange(4) / 4))
    wanted = np.concatenate([turned.real, turned.imag], axis=-1)
    np.testing.assert_allclose(attention.rotary(x, jnp.asarray(places), base), wanted, atol=2e-4)


LAYER = nn.MultiHeadAttention(heads=4, kv_heads=2, causal=True, rotary_base=100)


@pytest.mark.parametrize("steps", [1, 3])
def test_decoding_equals_the_whole(steps):
    x = draw(0, 2, 6, 16)
    trainables, _ = LAYER.init(jax.random.key(0), x)
    whole, _ = LAYER.fwd(x, trainables, ())
    cache = LAYER.init_cache(x[:, :steps], length=6)
    decode = jax.jit(LAYER.decode)
    parts = []
    with counted(decode) as traces:
        for start in range(0, 6, steps):
            y, cache = decode(x[:, start : start + steps], trainables, (), cache)
            parts.append(y)
    np.testing.assert_allclose(jnp.concatenate(parts, axis=1), whole, rtol=1e-4, atol=1e-5)
    assert traces() == 1


def test_decoding_past_the_end_gives_nan():
    x = draw(0, 1, 16)
    trainables, _ = LAYER.init(jax.random.key(0), x)
    cache = LAYER.init_cache(x, length=2)
    for finite in (True, True, False):
        y, cache = LAYER.decode(x, trainables, (), cache)
        assert bool(jnp.isfinite(y).all()) is finite


def test_causal_outputs_ignore_what_comes_later():
    x = draw(0, 6, 16)
    trainables, _ = LAYER.init(jax.random.key(0), x)
    other = x.at[4:].set(0.0)
    np.testing.assert_array_equal(
        LAYER.fwd(x, trainables, ())[0][:4], LAYER.fwd(other, trainables, ())[0][:4]
    )


def test_padding_is_not_looked_at():
    layer, x = nn.MultiHeadAttention(heads=2), draw(0, 2, 5, 8)
    trainables, _ = layer.init(jax.random.key(0), x)
    present = jnp.array([[True] * 5, [True] * 3 + [False] * 2])
    masked, _ = layer.fwd(x, trainables, (), mask=present[..., None, :])
    short, _ = layer.fwd(x[1:, :3], trainables, ())
    np.testing.assert_allclose(masked[1, :3], short[0], rtol=1e-5, atol=1e-6)


def test_cross_attention_with_other_features():
    layer, x, context = nn.MultiHeadAttention(heads=2), draw(0, 3, 5, 8), draw(1, 3, 7, 6)
    trainables, _ = layer.init(jax.random.key(0), x, context=context)
    assert trainables["key_kernel"].shape == (6, 2, 4)
    y, _ = layer.fwd(x, trainables, (), context=context)
    assert y.shape == x.shape
    query = np.einsum("bld,dhk->blhk", x, trainables["query_kernel"])
    keys, values = (
        np.einsum("bld,dhk->blhk", context, trainables[f"{name}_kernel"]) for name in ("key", "value")
    )
    wanted = np.einsum("blhk,hkd->bld", reference(query, keys, values), trainables["out_kernel"])
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_initial_variance_keeps_that_of_the_input():
    trainables, _ = nn.MultiHeadAttention(heads=8).init(jax.random.key(0), jnp.ones((1, 256)))
    for kernel in trainables.values():
        np.testing.assert_allclose(jnp.var(kernel) * 256, 1, rtol=0.03)


X = jnp.ones((2, 5, 8))
WRONG = {
    "integers": (lambda: run(nn.MultiHeadAttention(2), jnp.ones((5, 8), int)), "floating-point numbers"),
    "no length": (lambda: run(nn.MultiHeadAttention(2), jnp.ones(8)), "at least 2 axes"),
    "heads that do not divide": (lambda: run(nn.MultiHeadAttention(3), X), "3 heads share evenly"),
    "no features": (lambda: run(nn.MultiHeadAttention(2), X[..., :0]), "2 heads share evenly"),
    "an odd head_dim": (lambda: run(nn.MultiHeadAttention(8, rotary_base=10), X), "head_dim is 1: choose an even"),
    "a float mask": (lambda: run(nn.MultiHeadAttention(2), X, mask=jnp.ones((5, 5))), "mask expects Booleans"),
    "a mask of padding alone": (
        lambda: run(nn.MultiHeadAttention(2), X, mask=jnp.ones((2, 5), bool)), r"present\[..., None, :\]"
    ),
    "a causal context": (lambda: run(nn.MultiHeadAttention(2, causal=True), X, context=X), "takes no context"),
    "another batch": (lambda: run(nn.MultiHeadAttention(2), X, context=X[:1]), "batch axes and dtype of x"),
    "weights of another model": (
        lambda: nn.MultiHeadAttention(2).fwd(X, nn.MultiHeadAttention(4).init(jax.random.key(0), X)[0], ()),
        "query_kernel expects shape",
    ),
    "decoding without causal": (
        lambda: nn.MultiHeadAttention(2).decode(X, nn.MultiHeadAttention(2).init(jax.random.key(0), X)[0], (), {}),
        "set causal=True",
    ),
}  # fmt: skip


def run(layer, x, **further):
    return layer.fwd(x, *layer.init(jax.random.key(0), x, **further), **further)


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_wrong_calls(wrong, message):
    with pytest.raises(nn.LayerError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(heads=4, kv_heads=3), "kv_heads must divide heads=4"),
        (dict(heads=0), "heads must be an integer of at least 1"),
        (dict(heads=2, rotary_base=float("nan")), "rotary_base must be a finite number above 0"),
        (dict(heads=2, causal=1), "causal must be True or False"),
    ],
)
def test_wrong_hyperparameters(options, message):
    with pytest.raises(ValueError, match=message):
        nn.MultiHeadAttention(**options)


def test_a_traced_base_is_told_as_such():
    with pytest.raises(
        ValueError, match="rotary_base must be a finite number above 0, not a traced value: it is static"
    ):
        jax.jit(lambda base: nn.MultiHeadAttention(2, rotary_base=base))(3.0)


@pytest.mark.parametrize("causal", [False, True])
def test_chunks_of_any_size(causal):
    arrays = draw(0, 2, 5, 4, 3), draw(1, 2, 5, 2, 3), draw(2, 2, 5, 2, 3)
    mask = jnp.asarray(np.random.default_rng(3).random((2, 5, 5)) < 0.6)
    both = mask & attention.distance_mask(5, 5)[None] if causal else mask

    @jax.jit  # one program for all, since compiling takes the time
    def run(arrays):
        forms = {None: functools.partial(attention.attend, mask=both)}
        for size in (1, 2, 3, 4, 5, 9):
            in_chunks = functools.partial(attention.attend_in_chunks, chunk_size=size)
            forms[size] = functools.partial(in_chunks, mask=mask, causal=causal)
        found = {size: jax.vjp(form, *arrays) for size, form in forms.items()}
        return {str(size): (y, back(arrays[0])) for size, (y, back) in found.items()}

    found = run(arrays)
    whole, gradients = found.pop("None")
    for size, (y, slopes) in found.items():
        np.testing.assert_allclose(y, whole, atol=1e-6, err_msg=size)
        for got, wanted in zip(slopes, gradients):
            np.testing.assert_allclose(got, wanted, atol=1e-5, err_msg=size)


@pytest.mark.parametrize("chunk_size", [None, 4])
def test_of_an_empty_context_nothing_comes(chunk_size):
    layer, x, context = nn.MultiHeadAttention(2, chunk_size=chunk_size), draw(0, 3, 4), jnp.zeros((0, 4))
    trainables, _ = layer.init(jax.random.key(0), x, context=context)
    np.testing.assert_array_equal(layer.fwd(x, trainables, (), context=context)[0], 0)


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_layers_of_one_shape_are_traced_once(chunk_size, monkeypatch):
    calls, logits = [], attention.attention_logits
    monkeypatch.setattr(attention, "attention_logits", lambda *a, **o: calls.append(a) or logits(*a, **o))
    layer, x = nn.MultiHeadAttention(2, chunk_size=chunk_size, rotary_base=50), jnp.ones((3, 6, 12))
    trainables, _ = layer.init(jax.random.key(0), x)

    def deep(layers):
        jax.make_jaxpr(lambda x: [x := layer.fwd(x, trainables, ())[0] for _ in range(layers)])(x)
        return len(calls)

    assert 0 < deep(1) == deep(4)


QUERY, KEY = jnp.ones((2, 7, 4, 6)), jnp.ones((2, 9, 2, 6))


UNFIT = {
    "fewer values than keys": ((QUERY, KEY, KEY[:, :8]), r"value .*: got float32\[2,8,2,6\] for float32\[2,9,2,6\]"),
    "queries that are integers": ((QUERY.astype(int), KEY, KEY), r"query expects floating-point numbers, got int32\[2,7,4,6\]"),
    "values that are integers": ((QUERY, KEY, KEY.astype(int)), r"value expects floating-point numbers, got int32"),
    "a mask of numbers": ((QUERY, KEY, KEY, jnp.ones((7, 9))), r"mask expects Booleans, got float32\[7,9\]"),
    "a mask turned round": ((QUERY, KEY, KEY, jnp.ones((9, 7), bool)), r"\(\.\.\., 7 or 1, 9\).* bool\[9,7\]"),
    "a mask of keys alone": ((QUERY, KEY, KEY, jnp.ones(9, bool)), r"mask expects .*, got bool\[9\]"),
    "a mask for heads": ((QUERY, KEY, KEY, jnp.ones((2, 4, 7, 9), bool)), r"mask expects .* bool\[2,4,7,9\]"),
}  # fmt: skip


@forms
@pytest.mark.parametrize(("arrays", "message"), UNFIT.values(), ids=UNFIT)
def test_functions_on_what_does_not_fit(form, arrays, message):
    """What the products would not refuse, or not in words that say what was meant."""
    query, key, value, mask = (*arrays, None)[:4]
    with pytest.raises(ValueError, match=rf"^attention: .*{message}"):
        form(query, key, value, mask=mask)


@forms
def test_the_output_has_the_dtype_of_the_query(form):
    assert form(QUERY.astype("bfloat16"), KEY, KEY).dtype == jnp.bfloat16


def test_positions_that_do_not_fit():
    for x, length in ((QUERY[..., :5], 7), (QUERY, 6)):
        with pytest.raises(
            ValueError, match=rf"^rotary: expects x .* and positions .*, got .*int32\[{length}\]"
        ):
            attention.rotary(x, jnp.arange(length))


@pytest.mark.parametrize(
    "layer",
    [nn.Linear(3), nn.Conv(3, (3,)), nn.Recurrent(nn.GRUCell(3)), nn.MultiHeadAttention(1, head_dim=2)],
    ids=lambda layer: type(layer).__name__,
)
def test_without_features_kernels_are_empty(layer):
    y, _ = run(layer, jnp.ones((2, 5, 0)))
    assert not jnp.isnan(y).any() and y.shape[0] == 2
