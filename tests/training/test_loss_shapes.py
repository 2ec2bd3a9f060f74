"""A loss of outputs (n, 1) and targets (n,): n * n differences, whose mean is minimal at the mean of all targets."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim, precision, training
from tests.settings import strict  # noqa: F401

X = jnp.asarray(np.random.default_rng(0).normal(size=(8, 3)), "float32")
Y = jnp.sum(X, axis=-1)


def squares(outputs, targets):
    return jnp.mean((outputs - targets) ** 2)


def train(loss, model=None, x=X, y=Y, steps=1):
    model, optimizer = model or nn.Linear(1), optim.SGD(0.1)
    step = training.make_step(model, loss)
    trainables, rest = model.init(jax.random.key(0), x)
    state = training.State(trainables, rest, optimizer.init(trainables))
    for _ in range(steps):
        state, value = step(optimizer, state, None, x, y)
    return value


WRONG = {
    "squares": (squares, None, Y, r"outputs float32\[8,1\] and targets float32\[8\] with each: drop the axis of size 1"),
    "cross entropy": (
        lambda y, t: optax.sigmoid_binary_cross_entropy(y, t).mean(), None, Y > 0,
        r"outputs float32\[8,1\] and targets bool\[8\] with each",
    ),
    "the other way round": (squares, nn.F(lambda x: x[:, 0]), Y[:, None], r"outputs float32\[8\] and targets float32\[8,1\]"),
    "a step for each": (squares, nn.F(lambda x: x[..., None]), X, r"outputs float32\[8,3,1\] and targets float32\[8,3\] with"),
}  # fmt: skip


@pytest.mark.parametrize(("loss", "model", "y", "message"), WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize("promotion", ["allow", "raise"])
def test_each_with_each_is_refused(loss, model, y, message, promotion):
    with (
        pytest.raises(ValueError, match=f"^make_step: loss pairs each of {message}"),
        jax.numpy_rank_promotion(promotion),
    ):
        with jax.numpy_dtype_promotion("standard"):
            train(loss, model, y=y)


def test_a_scaled_step_refuses_it_too():
    model, optimizer = nn.Linear(1), optim.SGD(0.1)
    step = precision.make_scaled_step(model, squares)
    trainables, rest = model.init(jax.random.key(0), X)
    scaled = precision.ScaledState(precision.StaticLossScale(2), optimizer.init(trainables))
    with pytest.raises(ValueError, match=r"^make_scaled_step: loss pairs each"):
        step(optimizer, training.State(trainables, rest, scaled), None, X, Y)


@jax.numpy_rank_promotion("allow")
def test_a_loss_that_drops_the_axis_is_fine():
    fine = {
        "drops": (lambda y, t: squares(y[:, 0], t), Y),
        "adds": (lambda y, t: squares(y, t[:, None]), Y),
        "alike": (squares, Y[:, None]),
        "broadcasts something else": (lambda y, t: squares(y[:, 0], t) + 0 * jnp.sum(X * jnp.ones(3)), Y),
    }
    values = [float(train(loss, y=y, steps=200)) for loss, y in fine.values()]
    np.testing.assert_allclose(values, 0, atol=1e-3)


@jax.numpy_rank_promotion("allow")
def test_classes_and_single_examples_are_no_pairs():
    """Ids beside logits of one class each, and one example with one output: nothing is paired wrongly."""
    train(
        lambda y, t: optax.softmax_cross_entropy_with_integer_labels(y, t).mean(),
        nn.Linear(3),
        y=jnp.zeros(8, int),
    )
    train(lambda y, t: jnp.sum((y - t) ** 2), x=X[:1], y=Y[:1])

    def other(y, t):  # its own fault, told in its own words
        raise ValueError("other")

    with pytest.raises(ValueError, match="^other"):
        train(other)
