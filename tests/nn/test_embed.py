"""Embed: values and gradients against NumPy, ids out of range, precision, the tied read-out, errors."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.inspection.jaxprs import count

LAYER = nn.Embed(5, 3)


def draw(seed, *shape, dtype=jnp.float32):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def table(seed=0, dtype=jnp.float32):
    return {"embed": draw(seed, 5, 3, dtype=dtype)}


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "uint32"])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 1, 3), (0, 3)])
def test_against_numpy(shape, dtype):
    ids = np.random.default_rng(1).integers(5, size=shape).astype(dtype)
    trainables = table()
    y, back = jax.vjp(lambda t: LAYER.fwd(jnp.asarray(ids), t, ())[0], trainables)
    np.testing.assert_array_equal(y, np.asarray(trainables["embed"])[ids])
    dy = draw(9, *y.shape)
    wanted = np.zeros((5, 3))
    np.add.at(wanted, ids, np.asarray(dy, np.float64))
    np.testing.assert_allclose(back(dy)[0]["embed"], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("inference_mode", [False, True])
def test_ids_out_of_range_give_nan_and_no_gradient(jit, inference_mode):
    ids = jnp.array([[0, 5, 4], [-1, 0, 2**31 - 1], [-(2**31), -5, 6]], jnp.int32)
    outside = np.array([[0, 1, 0], [1, 0, 1], [1, 1, 1]], bool)

    def total(t):
        y, _ = LAYER.fwd(ids, t, (), inference_mode=inference_mode)
        return jnp.nansum(y), y

    transform = jax.jit if jit else lambda f: f
    gradient, y = transform(jax.grad(total, has_aux=True))(table())
    np.testing.assert_array_equal(jnp.isnan(y), np.broadcast_to(outside[..., None], y.shape))
    np.testing.assert_array_equal(gradient["embed"], np.array([[2.0], [0], [0], [0], [1]]) * np.ones((1, 3)))


@pytest.mark.parametrize(
    ("dtype", "outside"), [("int8", [-1, -128, 100, 127]), ("uint8", [255, 254, 100, 128])]
)
def test_ids_of_a_small_dtype_do_not_wrap(dtype, outside):
    assert jnp.isnan(LAYER.fwd(jnp.asarray(outside, dtype), table(), ())[0]).all()
    large = nn.Embed(300, 2)
    ids = jnp.arange(128, dtype=dtype)
    trainables, _ = large.init(jax.random.key(0), ids)
    np.testing.assert_array_equal(large.fwd(ids, trainables, ())[0], trainables["embed"][:128])
    negative = jnp.asarray(outside[:1], dtype)  # 255 is a row of this table, -1 is none
    assert jnp.isnan(large.fwd(negative, trainables, ())[0]).all() == (dtype == "int8")


def test_the_gradient_of_a_frequent_id_does_not_stall_in_bfloat16():
    ids = jnp.zeros(3072, jnp.int32)

    def gradient(layer):
        def total(t):
            return jnp.sum(layer.fwd(ids, t, ())[0], dtype=jnp.float32)

        return np.asarray(jax.grad(total)(table(dtype=jnp.bfloat16))["embed"], np.float32)[0]

    np.testing.assert_array_equal(gradient(LAYER), [3072] * 3)
    np.testing.assert_array_equal(gradient(nn.Embed(5, 3, accum_dtype=jnp.float32)), [3072] * 3)
    assert (gradient(nn.Embed(5, 3, accum_dtype=jnp.bfloat16)) < 3072).all()


def test_the_table_is_not_converted_as_a_whole(optimized):
    """Looking up in float32 costs no float32 copy of a bfloat16 table, once it is compiled."""
    ids = jax.ShapeDtypeStruct((8,), jnp.int32)
    trainables = {"embed": jax.ShapeDtypeStruct((10_000, 64), jnp.bfloat16)}
    layer = nn.Embed(10_000, 64)
    compiled = jax.jit(lambda ids, t: layer.fwd(ids, t, ())[0]).lower(ids, trainables).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 64 * 8 * 8
    assert "convert_element_type" not in count(
        lambda ids, t: LAYER.fwd(ids, t, ())[0], jnp.arange(3), table()
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_cast_weights_cast_all_that_follows(dtype):
    model = nn.Series(LAYER, nn.Linear(4), nn.Bias())
    ids = jnp.arange(5)
    trainables, _ = model.init(jax.random.key(0), ids)
    y, _ = model.fwd(ids, jax.tree.map(lambda leaf: leaf.astype(dtype), trainables), ())
    assert y.dtype == dtype


def test_numpy_arrays_do():
    trainables = jax.tree.map(np.asarray, table())
    np.testing.assert_array_equal(LAYER.fwd(np.arange(5), trainables, ())[0], trainables["embed"])
    attended, _ = LAYER.attend(np.ones(3, np.float32), trainables, ())
    np.testing.assert_allclose(attended, trainables["embed"].sum(1), rtol=1e-6)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3), (0, 3)])
def test_attend_against_numpy(shape):
    x, trainables = draw(1, *shape), table()
    y, back = jax.vjp(lambda x, t: LAYER.attend(x, t, ())[0], x, trainables)
    dy = draw(9, *y.shape)
    dx, gradient = back(dy)
    x, rows, dy = (np.asarray(a, np.float64) for a in (x, trainables["embed"], dy))
    np.testing.assert_allclose(y, x @ rows.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dx, dy @ rows, rtol=1e-5, atol=1e-6)
    wanted = dy.reshape(-1, 5).T @ x.reshape(-1, 3)
    np.testing.assert_allclose(gradient["embed"], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_attend_has_the_dtype_of_its_input(dtype):
    y, state = LAYER.attend(draw(1, 4, 3, dtype=dtype), table(), (), key=None, inference_mode=True)
    assert y.dtype == dtype and state == ()


class Tied(nn.Composite):
    """Words in, logits of the next one out, with one table for both."""

    embed: nn.Layer
    body: nn.Layer
    decodes = True

    def forward(self, call, x):
        return call.embed.attend(call.body(call.embed(x)))


def test_the_tied_table_gets_the_gradients_of_both_uses():
    model, ids = Tied(LAYER, nn.Linear(3)), jnp.array([[1, 4, 1]])
    trainables, state = model.init(jax.random.key(0), ids)
    assert jax.tree.map(jnp.shape, trainables) == {"embed": {"embed": (5, 3)}, "body": {"kernel": (3, 3)}}
    dy = draw(9, 1, 3, 5)
    got = jax.grad(lambda t: jnp.sum(dy * model.fwd(ids, t, state)[0]))(trainables)

    def by_hand(read, write):
        hidden = read[ids] @ trainables["body"]["kernel"]
        return jnp.sum(dy * jnp.einsum("bld,vd->blv", hidden, write))

    read, write = jax.grad(by_hand, argnums=(0, 1))(*[trainables["embed"]["embed"]] * 2)
    np.testing.assert_allclose(got["embed"]["embed"], read + write, rtol=1e-5, atol=1e-6)
    decoded, _ = model.decode(ids, trainables, state, model.init_cache(ids, length=3))
    np.testing.assert_allclose(decoded, model.fwd(ids, trainables, state)[0], rtol=1e-6)


def test_initial_variances():
    layer = nn.Embed(2000, 256)
    trainables, _ = layer.init(jax.random.key(0), jnp.arange(3))
    np.testing.assert_allclose(jnp.var(trainables["embed"]) * 256, 1, rtol=0.02)
    np.testing.assert_allclose(jnp.linalg.norm(trainables["embed"], axis=1), 1, atol=0.3)
    logits, _ = layer.attend(draw(0, 64, 256), trainables, ())
    np.testing.assert_allclose(jnp.var(logits), 1, rtol=0.1)


def test_pickles():
    assert pickle.loads(pickle.dumps(LAYER)) == LAYER


X = jnp.ones((2, 3))

WRONG = {
    "features for ids": (
        lambda: LAYER.init(jax.random.key(0), X),
        r"^Embed: x expects integers, got float32\[2,3\]: pass ids, not one-hot .*astype\(jnp\.int32\)",
    ),
    "features for ids, in fwd": (lambda: LAYER.fwd(X, table(), ()), r"^Embed: x expects integers, got float32\[2,3\]"),
    "Booleans for ids": (lambda: LAYER.fwd(X > 0, table(), ()), r"^Embed: x expects integers, got bool\[2,3\]"),
    "a list of ids": (
        lambda: LAYER.fwd([1, 2], table(), ()), r"^Embed: x expects an array, got a list of length 2: wrap it"
    ),
    "the table of another model": (
        lambda: LAYER.fwd(jnp.arange(3), {"embed": jnp.ones((3, 5))}, ()),
        r"^Embed: embed expects shape \(5, 3\), got float32\[3,5\]: these trainables, or this input",
    ),
    "a kernel for a table": (
        lambda: LAYER.attend(X, {"kernel": jnp.ones((3, 5))}, ()),
        r"^Embed: trainables expect a dict with keys \['embed'\], got a dict with keys \['kernel'\]",
    ),
    "attending to ids": (
        lambda: LAYER.attend(jnp.arange(3), table(), ()), r"^Embed: x expects floating-point numbers, got int32\[3\]"
    ),
    "attending with other features": (
        lambda: LAYER.attend(jnp.ones((2, 4)), table(), ()),
        r"^Embed: attend expects x of shape \(\.\.\., 3\), got float32\[2,4\]: project it",
    ),
    "attending with other features, in a model": (
        lambda: Tied(LAYER, nn.Linear(4)).init(jax.random.key(0), jnp.arange(3)),
        r"^model\.embed\.Embed: attend expects x of shape \(\.\.\., 3\), got float32\[3,4\]",
    ),
    "a seed for a key": (lambda: LAYER.init(0, jnp.arange(3)), r"^Embed: expects a typed key, got int 0"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_wrong_calls(wrong, message):
    with pytest.raises(nn.LayerError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: nn.Embed(0, 3), r"^Embed: vocab_size must be an integer of at least 1, got 0"),
        (lambda: nn.Embed(5, 3.0), r"^Embed: embed_dim must be an integer of at least 1, got 3.0"),
        (lambda: nn.Embed(5, 3, param_dtype=int), r"^Embed: param_dtype must be a floating-point dtype"),
        (lambda: nn.Embed(5, 3, param_dtype=None), r"^Embed: param_dtype must be a floating-point dtype"),
        (lambda: nn.Embed(5, 3, embed_initializer=0.02), r"^Embed: embed_initializer must be a function, got 0.02"),
    ],
)  # fmt: skip
def test_wrong_hyperparameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
