"""The state of recurrent layers, given to ``fwd`` and taken from it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.precision import Policy


def draw(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def equal(got, wanted):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), got, wanted)


X = draw(0, 2, 6, 4)


@pytest.mark.parametrize("cell", [nn.LSTMCell(3), nn.GRUCell(3)], ids=["lstm", "gru"])
def test_two_parts_equal_the_whole(cell):
    layer = nn.Recurrent(cell, return_state=True)
    trainables, _ = layer.init(jax.random.key(0), X)
    (whole, end), _ = layer.fwd(X, trainables, ())
    (first, state), _ = layer.fwd(X[:, :4], trainables, ())
    (second, last), _ = layer.fwd(X[:, 4:], trainables, (), initial_state=state)
    equal((jnp.concatenate([first, second], axis=1), last), (whole, end))
    # The state of each sequence at its own end, and that of decode.
    (_, short), _ = layer.fwd(X, trainables, (), lengths=jnp.array([4, 4]))
    equal(short, state)
    plain = nn.Recurrent(cell)
    y, cache = plain.decode(X[:, 4:], trainables, (), plain.init_cache(X[:, :1], 6), initial_state=state)
    equal((y, cache), (second, end))


@pytest.mark.parametrize("cell", [nn.LSTMCell(1), nn.GRUCell(1)], ids=["lstm", "gru"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_states_of_half_precision_add_up_in_float32(cell, dtype):
    """What is kept of the state is 0.989 of it: in bfloat16 an LSTM's would end at 64 for 91, a GRU's at 0.8 for 1."""
    layer, bias = nn.Recurrent(cell, return_state=True), [9.0, 4.5, 9.0, 9.0]

    def last(dtype):
        x = jnp.zeros((2000, 1), dtype)
        trainables, _ = jax.tree.map(jnp.zeros_like, layer.init(jax.random.key(0), x))
        trainables["bias"] = jnp.array(bias[: trainables["bias"].size], dtype)
        (y, state), _ = layer.fwd(x, trainables, ())
        assert y.dtype == dtype
        return jax.tree.leaves(state)[-1]

    np.testing.assert_allclose(last(dtype), last("float32"), rtol=1e-2)
    narrow = type(cell)(1, accum_dtype=dtype)
    assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(narrow.init_carry(jnp.ones(1, dtype))))


@pytest.mark.parametrize("cell", [nn.LSTMCell(3), nn.GRUCell(3)], ids=["lstm", "gru"])
def test_a_policy_takes_the_state_that_it_gave(cell):
    layer = Policy("bfloat16").apply(nn.Recurrent(cell, return_state=True))
    trainables, _ = layer.init(jax.random.key(0), X)
    (whole, _), _ = layer.fwd(X, trainables, ())
    (_, state), _ = layer.fwd(X[:, :4], trainables, ())
    (second, _), _ = layer.fwd(X[:, 4:], trainables, (), initial_state=state)
    np.testing.assert_allclose(second, whole[:, 4:], atol=1e-2)


def test_both_directions_take_and_give_a_pair():
    layer = nn.Bidirectional(nn.GRUCell(3), return_state=True)
    trainables, _ = layer.init(jax.random.key(0), X)
    start = draw(1, 2, 3), draw(2, 2, 3)
    (y, states), _ = layer.fwd(X, trainables, (), initial_state=start)
    for name, reverse, part, state, initial in zip(
        ("forward", "backward"), (False, True), jnp.split(y, 2, axis=-1), states, start
    ):
        one = nn.Recurrent(nn.GRUCell(3), reverse=reverse, return_state=True)
        equal(one.fwd(X, trainables[name], (), initial_state=initial)[0], (part, state))


def test_gradients_flow_through_both_states():
    layer = nn.Recurrent(nn.GRUCell(3), return_state=True)
    trainables, _ = layer.init(jax.random.key(0), X)

    def loss(state):
        (_, state), _ = layer.fwd(X, trainables, (), initial_state=state)
        return jnp.sum(jnp.square(state))

    assert (jax.grad(loss)(draw(1, 2, 3)) != 0).all()


LSTM = nn.Recurrent(nn.LSTMCell(3))
WRONG = {
    "the state of another batch": (
        lambda t: LSTM.fwd(X, t, (), initial_state=(jnp.ones((3, 3)),) * 2),
        r"initial_state expects \(float32\[2,3\], float32\[2,3\]\) for this x, got \(float32\[3,3\]",
    ),
    "half of the state": (lambda t: LSTM.fwd(X, t, (), initial_state=jnp.ones((2, 3))), r"got float32\[2,3\]: take"),
    "another dtype": (
        lambda t: LSTM.fwd(X, t, (), initial_state=(jnp.ones((2, 3), "bfloat16"),) * 2), r"got \(bfloat16\[2,3\]"
    ),
    "a cache for what returns its state": (
        lambda t: nn.Recurrent(nn.LSTMCell(3), return_state=True).init_cache(X, 6), "does not decode"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_wrong_states(wrong, message):
    trainables, _ = LSTM.init(jax.random.key(0), X)
    with pytest.raises(nn.LayerError, match=message):
        wrong(trainables)
