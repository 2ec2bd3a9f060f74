"""The pieces of the training loop."""

import io
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim, training
from mlax_tutorial.jaxprs import walk
from tests.settings import configured

X = jax.random.normal(jax.random.key(0), (100, 4))
LABELS = (X[:, 0] > 0).astype(jnp.int32)
MODEL = nn.Series(nn.Linear(16), nn.Bias(), nn.F(jax.nn.relu), nn.Dropout(0.1), nn.Linear(2), nn.Bias())


def loss(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def begin(optimizer, model=MODEL):
    trainables, non_trainables = model.init(jax.random.key(1), X)
    return trainables, non_trainables, optimizer.init(trainables)


@pytest.fixture(autouse=True)
def guards():
    with configured(jax_debug_key_reuse=True), warnings.catch_warnings():
        warnings.simplefilter("error")  # a donation that cannot be honoured warns
        yield


def test_an_epoch_holds_each_example_at_most_once():
    order = training.batches(jax.random.key(0), 100, 30)
    assert order.shape == (3, 30) and order.dtype == jnp.int32
    flat = np.sort(np.asarray(order).ravel())
    assert len(set(flat.tolist())) == 90 and flat.min() >= 0 and flat.max() < 100
    assert (np.sort(np.asarray(training.batches(jax.random.key(0), 100, 50)).ravel()) == np.arange(100)).all()


def test_the_order_is_the_keys():
    first, again, other = (training.batches(jax.random.key(seed), 50, 10) for seed in (0, 0, 1))
    assert (first == again).all() and not (first == other).all()


@pytest.mark.parametrize("batch_size", [0, -1, 101])
def test_batch_sizes_that_do_not_fit(batch_size):
    with pytest.raises(
        ValueError,
        match=f"^batches: batch_size must be .*{'100' if batch_size > 0 else 'at least 1'}, got {batch_size}",
    ):
        training.batches(jax.random.key(0), 100, batch_size)


@pytest.mark.parametrize("size", [2.5, "2", None, True])
def test_sizes_that_are_no_integers(size):
    wanted = f"must be an integer of at least 1, got {size!r}"
    with pytest.raises(ValueError, match=f"^batches: batch_size {wanted}"):
        training.batches(jax.random.key(0), 100, size)
    with pytest.raises(ValueError, match=f"^make_evaluation: batch_size {wanted}"):
        training.make_evaluation(MODEL, training.is_right, size)


@pytest.mark.parametrize(
    "wrong",
    [optim.SGD, None, 0.1, optim.ClipByGlobalNorm(1.0)],
    ids=["a class", "None", "a number", "clipping"],
)
def test_what_is_no_optimizer(wrong):
    """A class would be taken for a schedule, and a transformation's gradients would be added."""
    message = "^make_step: optimizer must be of mlax_tutorial.optim or of Optax, got "
    model = nn.Linear(2)
    variables = model.init(jax.random.key(1), X)[0], (), ()
    step = training.make_step(model, loss)
    with pytest.raises(ValueError, match=message):
        step(wrong, *variables, None, X, LABELS)
    with pytest.raises(ValueError, match=message):
        training.fit(jax.random.key(0), step, wrong, variables, X, LABELS, epochs=1, batch_size=50)


def counted(model, optimizer):
    traces = []

    def counting(logits, labels):
        traces.append(1)
        return loss(logits, labels)

    return training.make_step(model, counting), traces


@pytest.mark.parametrize(
    "optimizer", [optim.SGD(0.1, momentum=0.9), optax.adam(1e-2)], ids=["ours", "Optax, a drop-in"]
)
def test_training_learns_in_one_trace(optimizer):
    step, traces = counted(MODEL, optimizer)
    losses = []
    trainables, rest, _ = training.fit(
        jax.random.key(2), step, optimizer, begin(optimizer), X, LABELS, epochs=20, batch_size=20, draws=True,
        each_epoch=lambda epoch, trainables, non_trainables, value: losses.append((epoch, value)),
    )  # fmt: skip
    assert len(traces) == 1
    assert [epoch for epoch, _ in losses] == list(range(20)) and losses[-1][1] < 0.5 * losses[0][1]
    evaluate = training.make_evaluation(MODEL, training.is_right, batch_size=30)
    assert evaluate(trainables, rest, X, LABELS) > 0.9


def test_a_schedule_does_not_trace_again():
    step, traces = counted(MODEL, None)
    rates = []

    def schedule(epoch):
        rates.append(epoch)
        return optim.SGD(0.1 / (epoch + 1), momentum=0.9)

    training.fit(
        jax.random.key(2), step, schedule, begin(optim.SGD(0.1, momentum=0.9)), X, LABELS, epochs=3, batch_size=25,
        draws=True,
    )  # fmt: skip
    assert len(traces) == 1 and rates == [0, 1, 2]


def test_training_is_deterministic():
    results = []
    for _ in range(2):
        optimizer = optim.SGD(0.1)
        step = training.make_step(MODEL, loss)
        results.append(
            training.fit(
                jax.random.key(2),
                step,
                optimizer,
                begin(optimizer),
                X,
                LABELS,
                epochs=2,
                batch_size=10,
                draws=True,
            )[0]
        )
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), *results))


def test_numpy_arrays_train_alike():
    """They go to the device once; the network draws nothing, so no keys are split for it."""
    optimizer, model = optim.SGD(0.1), nn.Series(nn.Linear(2), nn.Bias())
    results = [
        training.fit(
            jax.random.key(2), training.make_step(model, loss), optimizer, begin(optimizer, model), x, labels,
            epochs=2, batch_size=30,
        )[0]
        for x, labels in ((X, LABELS), (np.asarray(X), np.asarray(LABELS)))
    ]  # fmt: skip
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), *results))


class Counted(nn.Layer):
    """Counts its calls."""

    def init(self, key, x):
        return (), {"calls": jnp.zeros((), jnp.int32)}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x, {"calls": non_trainables["calls"] + 1}


def test_the_data_go_to_the_device_once(monkeypatch):
    take, seen = training._take, []
    monkeypatch.setattr(training, "_take", lambda *args: seen.append(args) or take(*args))
    training.fit(
        jax.random.key(0), lambda o, *args: (*args[:3], jnp.zeros(())), optim.SGD(0.1), ((), (), ()),
        np.ones((6, 2)), np.ones(6), epochs=2, batch_size=2,
    )  # fmt: skip
    assert len(seen) == 6 and {id(x) for _, x, _ in seen} == {id(seen[0][1])}
    assert all(isinstance(array, jax.Array) for call in seen for array in call)


def test_evaluation_takes_the_batches_that_it_was_told_to():
    evaluate = training.make_evaluation(MODEL, training.is_right, 30)
    jaxpr = jax.make_jaxpr(evaluate)(*begin(optim.SGD(0.1))[:2], X, LABELS)
    found = [equation for _, equation in walk(jaxpr) if equation.primitive.name == "scan"]
    assert [equation.params["length"] for equation in found] == [3]  # and the ten that are left


@pytest.mark.parametrize(
    "optimizer", [optim.SGD(0.1, momentum=0.9), optax.sgd(0.1, momentum=0.9)], ids=["ours", "Optax"]
)
def test_the_old_variables_are_donated(optimizer):
    model = nn.Series(nn.Linear(16), Counted())
    before = begin(optimizer, model)
    step = training.make_step(model, lambda outputs, targets: jnp.mean(outputs))
    *after, value = step(optimizer, *before, None, X, LABELS)
    assert after[1][1]["calls"] == 1 and value.shape == ()
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))
    kept = (X, LABELS, *after, *((optimizer,) if isinstance(optimizer, optim.Optimizer) else ()))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(kept))


def test_donation_does_not_change_the_numbers():
    """Sizes at which jaxlib 0.7.2 on a CPU trains with stale weights, if they are donated."""
    x, y = jax.random.normal(jax.random.key(0), (128, 784)), jnp.arange(128) % 10
    model = nn.Series(nn.Linear(256), nn.Bias(), nn.F(jax.nn.relu), nn.Linear(10), nn.Bias())
    optimizer, step = optim.SGD(0.05, momentum=0.9), training.make_step(model, loss)

    @jax.jit
    def undonated(optimizer, trainables, state):
        value, gradients = jax.value_and_grad(lambda t: loss(model.fwd(x, t, ())[0], y))(trainables)
        updates, state = optimizer.step(gradients, state, trainables)
        return optim.apply_updates(trainables, updates), state, value

    def variables():
        trainables, rest = model.init(jax.random.key(1), x)
        return trainables, rest, optimizer.init(trainables)

    donated, (kept, _, kept_state) = variables(), variables()
    for _ in range(10):
        *donated, value = step(optimizer, *donated, None, x, y)
        kept, kept_state, wanted = undonated(optimizer, kept, kept_state)
    np.testing.assert_allclose(value, wanted, rtol=1e-3)


def test_evaluation_is_exact_for_any_batch_size():
    trainables, rest, _ = begin(optim.SGD(0.1))
    logits, _ = MODEL.fwd(X, trainables, rest, inference_mode=True)
    wanted = float(jnp.mean(jnp.argmax(logits, axis=-1) == LABELS))
    for batch_size in (1, 7, 100, 1000):
        evaluate = training.make_evaluation(MODEL, training.is_right, batch_size)
        np.testing.assert_allclose(evaluate(trainables, rest, X, LABELS), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "targets", "message"),
    [
        (X[:0], LABELS[:0], "^evaluate: there are no examples"),
        (X, LABELS[:-1], "^evaluate: x has 100 examples, but targets has 99"),
        (
            X,
            jax.nn.one_hot(LABELS, 2),
            r"^is_right: label must be of shape \(\), as logits are of \(2,\), got \(2,\)",
        ),
    ],
)
def test_what_cannot_be_evaluated(x, targets, message):
    trainables, rest, _ = begin(optim.SGD(0.1))
    with pytest.raises(ValueError, match=message):
        training.make_evaluation(MODEL, training.is_right)(trainables, rest, x, targets)


def test_a_metric_is_one_number_an_example():
    evaluate = training.make_evaluation(nn.F(jnp.sin), lambda output, target: output)
    with pytest.raises(
        ValueError, match=r"metric must return a scalar for one example, got shape \(4,\), from an"
    ):
        evaluate((), (), X, LABELS)
    assert training.make_evaluation(nn.F(jnp.sin), lambda output, target: 2)((), (), X, LABELS) == 2


@pytest.mark.parametrize("batch_size", [0, -1])
def test_evaluation_needs_a_batch(batch_size):
    with pytest.raises(
        ValueError, match=f"^make_evaluation: batch_size must be an integer of at least 1, got {batch_size}"
    ):
        training.make_evaluation(MODEL, training.is_right, batch_size)


def test_a_last_batch_that_is_smaller_weighs_less():
    """The mean of the means of [0, 1] and [5] would be 2.75."""
    x = jnp.array([0.0, 1.0, 5.0])
    evaluate = training.make_evaluation(nn.F(jnp.asarray), lambda output, target: output, batch_size=2)
    result = evaluate((), (), x, x)
    assert result == 2 and result.dtype == jnp.float32


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.int32, np.int64])
def test_right_answers_for_labels_of_any_integer_dtype(dtype):
    logits = jnp.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
    with jax.numpy_dtype_promotion("strict"):
        got = training.is_right(logits, np.array([1, 1, 1], dtype))
    assert got.tolist() == [True, False, True]


def test_labels_with_an_axis_too_many_are_refused():
    """They would broadcast, and the accuracy would be that of all pairs."""
    with pytest.raises(
        ValueError, match=r"label must be of shape \(100,\), as logits are of \(100, 4\), got \(100, 1\)"
    ):
        training.is_right(X, LABELS[:, None])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batch_size": 0}, "^fit: batch_size must be an integer of at least 1, got 0"),
        ({"batch_size": 101}, "^fit: batch_size must be from 1 to size = 100, got 101"),
        ({"epochs": -1}, "^fit: epochs must be an integer of at least 0, got -1"),
        ({"epochs": 1.5}, "^fit: epochs must be an integer of at least 0, got 1.5"),
    ],
)
def test_sizes_that_do_not_fit(wrong, message):
    options = {"epochs": 1, "batch_size": 10, **wrong}
    with pytest.raises(ValueError, match=message):
        training.fit(jax.random.key(0), None, optim.SGD(0.1), (), X, LABELS, **options)


def test_no_epochs_change_nothing():
    variables = begin(optim.SGD(0.1))
    got = training.fit(jax.random.key(0), None, optim.SGD(0.1), variables, X, LABELS, epochs=0, batch_size=10)
    assert got == variables and type(got) is tuple


def test_the_order_is_int32_under_x64_too(x64):
    assert training.batches(jax.random.key(0), 100, 30).dtype == jnp.int32


def test_the_loss_told_is_the_mean_over_the_epoch_and_the_data_are_shuffled():
    """Every example comes once an epoch, in another order, with its own target; the loss is told before the update."""
    seen, told = [], []

    def step(optimizer, trainables, rest, state, key, x, targets):
        seen.append(np.asarray(x))
        np.testing.assert_array_equal(targets, 2 * x)
        return trainables, rest, state, jnp.mean(x)

    x = jnp.arange(6.0)
    got = training.fit(
        jax.random.key(0), step, optim.SGD(0.1), ((), (), ()), x, 2 * x, epochs=2, batch_size=2,
        each_epoch=lambda epoch, trainables, rest, value: told.append(value),
    )  # fmt: skip
    first, second = np.concatenate(seen[:3]), np.concatenate(seen[3:])
    assert sorted(first) == sorted(second) == list(range(6)) and not (first == second).all()
    assert told == [2.5, 2.5] and all(type(value) is float for value in told)
    assert got == ((), (), ())  # a tuple, as it was given


def test_each_step_draws_with_a_key_of_its_own():
    keys = []

    def step(optimizer, trainables, rest, state, key, x, targets):
        keys.append(tuple(jax.random.key_data(key).tolist()))
        return trainables, rest, state, jnp.zeros(())

    x = jnp.arange(6.0)
    training.fit(
        jax.random.key(0), step, optim.SGD(0.1), ((), (), ()), x, x, epochs=3, batch_size=2, draws=True
    )
    assert len(set(keys)) == len(keys) == 9


def test_data_and_targets_must_match():
    with pytest.raises(ValueError, match="x has 100 examples, but targets has 99"):
        training.fit(jax.random.key(0), None, optim.SGD(0.1), (), X, LABELS[:-1], epochs=1, batch_size=10)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_redraws_in_a_terminal_and_leaves_no_trace():
    file = Terminal()
    with training.Progress(200, file) as progress:
        for _ in range(200):
            progress.advance()
    drawings = file.getvalue().split("\r")
    assert drawings[-2].strip() == "" and drawings[-1] == "" and drawings[-3].endswith(" 200/200")
    assert len(drawings) < 40 and "\n" not in file.getvalue()
    assert len(drawings[-2]) >= max(map(len, drawings[:-2]))


def test_the_bar_is_silent_elsewhere(capsys):
    with training.Progress(3) as progress:
        progress.advance()
    assert capsys.readouterr() == ("", "")


def test_a_bar_without_a_total_does_not_divide_by_it():
    file = Terminal()
    with training.Progress(0, file) as progress:
        progress.advance()
    assert file.getvalue().endswith("\r")
