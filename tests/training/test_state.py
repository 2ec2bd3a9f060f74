"""What a training carries from step to step, metrics beside the loss."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim, precision, training
from mlax_tutorial.nn.paths import flatten

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
LABELS = (X[:, 0] > 0).astype(np.int32)
MODEL = nn.Series(nn.Linear(4), nn.BatchNorm(), nn.F(jnp.tanh), nn.Linear(2), nn.Bias())


def begin(optimizer, model=MODEL):
    trainables, non_trainables = model.init(jax.random.key(0), X)
    return trainables, non_trainables, optimizer.init(trainables)


def loss(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def loss_and_metrics(logits, labels):
    return loss(logits, labels), {"right": jnp.mean(training.is_right(logits, labels)), "logits": logits}


def same(first, second):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    jax.tree.map(np.testing.assert_array_equal, first, second)


@pytest.mark.parametrize("optimizer", [optim.Adam(0.1), optax.adam(0.1)], ids=["ours", "Optax"])
def test_a_state_is_the_triple_that_it_was_made_of(optimizer):
    triple = begin(optimizer)
    state = training.State(*triple)
    assert type(tuple(state)[2]) is type(triple[2])
    same(tuple(state), triple)
    same((state.trainables, state.non_trainables, state.optimizer_state), triple)


def test_a_state_is_a_pytree_of_flat_leaves():
    triple = begin(optim.Adam(0.1))
    state = training.State(*triple)
    assert jax.tree.leaves(state) == jax.tree.leaves(triple)
    doubled = jax.jit(lambda state: jax.tree.map(lambda leaf: 2 * leaf, state))(state)
    same(tuple(doubled), jax.tree.map(lambda leaf: 2 * leaf, triple))
    for other in (training.State(*triple), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert jax.tree.structure(other) == jax.tree.structure(state)
        assert hash(jax.tree.structure(other)) == hash(jax.tree.structure(state))
    assert jax.tree.structure(training.State(*triple[:2], ())) != jax.tree.structure(state)
    holes = jax.tree.map(lambda leaf: object(), state)
    assert jax.tree.structure(holes) == jax.tree.structure(state) and "State(trainables=" in repr(holes)


def test_the_paths_of_a_state_name_its_leaves():
    paths, leaves, structure = flatten(
        training.State({"b": 1.0, "a": (2.0,)}, (), optim.SGDState({"b": 3.0, "a": (4.0,)}, 5))
    )
    assert paths == [
        ".trainables['a'][0]", ".trainables['b']", ".optimizer_state.velocity['a'][0]", ".optimizer_state.velocity['b']",
        ".optimizer_state.count"
    ]  # fmt: skip
    assert leaves == [2.0, 1.0, 4.0, 3.0, 5]
    assert jax.tree.unflatten(structure, leaves).trainables == {"a": (2.0,), "b": 1.0}


def test_metrics_stand_beside_the_loss():
    optimizer = optim.SGD(0.1)
    plain = training.make_step(MODEL, loss)
    step = training.make_step(MODEL, loss_and_metrics, has_aux=True)
    wanted, value = plain(optimizer, training.State(*begin(optimizer)), None, X, LABELS)
    state, (also, metrics) = step(optimizer, training.State(*begin(optimizer)), None, X, LABELS)
    same(tuple(state), tuple(wanted))
    assert also == value
    trainables, non_trainables, _ = begin(optimizer)
    logits, _ = MODEL.fwd(X, trainables, non_trainables)
    np.testing.assert_allclose(metrics["logits"], logits, rtol=1e-5, atol=1e-6)
    assert metrics["right"] == np.mean(np.argmax(logits, axis=1) == LABELS)


def test_metrics_of_a_scaled_step():
    model, optimizer = precision.Policy("float16").apply(MODEL), optim.SGD(0.1)
    trainables, non_trainables, inner = begin(optimizer, model)
    scaled = precision.ScaledState(precision.StaticLossScale(128), inner)
    step = precision.make_scaled_step(model, loss_and_metrics, has_aux=True)
    logits, _ = model.fwd(X, trainables, non_trainables)
    _, (value, metrics) = step(optimizer, training.State(trainables, non_trainables, scaled), None, X, LABELS)
    np.testing.assert_allclose(value, loss(logits, LABELS), rtol=1e-3)
    assert metrics["logits"].shape == (12, 2)


def test_fit_tells_the_means_of_the_metrics_as_plain_numbers():
    optimizer, told = optim.SGD(0.0), []
    model = nn.Series(nn.Linear(2), nn.Bias())  # no statistics: each example counts by itself
    step = training.make_step(
        model,
        lambda y, labels: (loss(y, labels), {"right": jnp.mean(training.is_right(y, labels))}),
        has_aux=True,
    )
    state = training.State(*begin(optimizer, model))
    logits, _ = model.fwd(X, state.trainables, ())
    result = training.fit(
        jax.random.key(1), step, optimizer, state, X, LABELS, epochs=2, batch_size=4,
        each_epoch=lambda epoch, trainables, non_trainables, found: told.append(found),
    )  # fmt: skip
    assert type(result) is tuple and len(told) == 2
    for value, metrics in told:
        assert type(value) is float and type(metrics["right"]) is float
        np.testing.assert_allclose(value, loss(logits, LABELS), rtol=1e-5)
        np.testing.assert_allclose(metrics["right"], np.mean(training.is_right(logits, LABELS)))


def test_a_step_is_traced_once_whatever_state_it_is_given():
    traces, optimizer = [], optim.Adam(0.1)
    step = training.make_step(MODEL, lambda y, labels: traces.append(1) or loss(y, labels))
    for _ in range(3):
        state = training.State(*begin(optimizer))
        for _ in range(3):
            state, _ = step(optimizer, state, None, X, LABELS)
    assert len(traces) == 1


WRONG = {
    "a loss and more, unannounced": (
        lambda: training.make_step(MODEL, loss_and_metrics),
        r"^make_step: loss must return one floating-point number, got a tuple of length 2, .*: say has_aux=True",
    ),
    "metrics announced, and none": (
        lambda: training.make_step(MODEL, loss, has_aux=True),
        r"^make_step: loss must return one floating-point number, and its metrics, got float32\[\], ",
    ),
    "metrics before the loss": (
        lambda: training.make_step(MODEL, lambda y, labels: ({"a": y}, loss(y, labels)), has_aux=True),
        r"^make_step: loss must return one floating-point number, and its metrics, got a tuple of length 2, ",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_wrong_losses(make, message):
    optimizer = optim.SGD(0.1)
    with pytest.raises(ValueError, match=message):
        make()(optimizer, training.State(*begin(optimizer)), None, X, LABELS)


@pytest.mark.parametrize("wrong", [(), ((), (), ()), None], ids=str)
def test_what_is_no_state(wrong):
    message = r"^make_step: state must be training\.State\(trainables, non_trainables, optimizer\.init\(trainables\)\), got"
    with pytest.raises(ValueError, match=message):
        training.make_step(MODEL, loss)(optim.SGD(0.1), wrong, None, X, LABELS)
