"""The pieces of the training loop."""

import functools
import io
import operator
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import nn, optim, precision, sharding, training, trees
from mlax_tutorial.inspection.jaxprs import walk
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
        step(wrong, training.State(*variables), None, X, LABELS)
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


PLATEAU = optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(factor=0.5, patience=2))


@pytest.mark.parametrize("optimizer", [PLATEAU, optax.lbfgs()], ids=["reduce_on_plateau", "lbfgs"])
def test_optimizers_of_optax_that_ask_for_more(optimizer):
    """The value, the gradients, and the loss of other weights: as in the loop that Optax documents."""
    model, y = nn.Series(nn.Linear(1), nn.Bias()), X @ jnp.arange(4.0)[:, None] + 1

    def squared_error(outputs, targets):
        return jnp.mean((outputs - targets) ** 2)

    trainables, rest = model.init(jax.random.key(1), X)
    by_hand, hands_state = trainables, optimizer.init(trainables)
    state = training.State(*jax.tree.map(jnp.copy, (trainables, rest, hands_state)))
    step = training.make_step(model, squared_error)

    def value_fn(trainables):
        return squared_error(model.fwd(X, trainables, rest)[0], y)

    @jax.jit
    def hands_step(trainables, state):
        value, gradients = jax.value_and_grad(value_fn)(trainables)
        given = {"value": value, "grad": gradients, "value_fn": value_fn}
        updates, state = optimizer.update(gradients, state, trainables, **given)
        return optax.apply_updates(trainables, updates), state, value

    with jax.numpy_dtype_promotion("standard"):
        for _ in range(12):
            state, value = step(optimizer, state, None, X, y)
            by_hand, hands_state, wanted = hands_step(by_hand, hands_state)
    np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-6)
    for got, wanted in zip(
        jax.tree.leaves(tuple(state)), jax.tree.leaves((by_hand, rest, hands_state)), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    assert value < 0.1 * value_fn(trainables)


class Weighed(optim.SGD):
    """Multiplies by what it is told of the batch."""

    extra = frozenset({"weight", "value"})

    def step(self, gradients, state, trainables, *, weight, value):
        assert value.shape == ()
        return super().step(jax.tree.map(lambda leaf: leaf * weight, gradients), state, trainables)


def test_the_weight_of_a_batch():
    model = nn.Linear(2)
    results = []
    for optimizer, weight in (
        (Weighed(0.1), lambda labels: (labels >= 0).sum().astype("float32") / 50),
        (optim.SGD(0.2), None),
    ):
        step = training.make_step(model, loss, weight=weight)
        results.append(step(optimizer, training.State(*begin(optimizer, model)), None, X, LABELS)[0])
    np.testing.assert_allclose(results[0].trainables["kernel"], results[1].trainables["kernel"], rtol=1e-6)
    step, optimizer = training.make_step(model, loss, weight=lambda labels: 1.0), optim.SGD(0.1)
    with pytest.raises(ValueError, match=r"^make_step: weight is for an optimizer that asks for it, got SGD"):
        step(optimizer, training.State(*begin(optimizer, model)), None, X, LABELS)


class Turn(nn.Layer):
    """One complex weight, from real and to complex numbers."""

    def init(self, key, x):
        return {"w": jnp.array(1 + 1j)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return trainables["w"] * x, non_trainables


@pytest.mark.parametrize("make", [training.make_step, precision.make_scaled_step])
@pytest.mark.parametrize("optimizer", [optim.SGD(0.2), optax.sgd(0.2)], ids=["ours", "Optax"])
def test_complex_weights_descend(make, optimizer):
    """``jax.grad`` gives the conjugate of where the loss rises."""
    model, x, target = Turn(), jnp.array([1.0, -1.0]), 2 - 3j
    step = make(model, lambda y, t: jnp.mean(jnp.abs(y - t * x) ** 2))
    trainables, rest = model.init(None, x)
    inner = optimizer.init(trainables)
    if make is precision.make_scaled_step:
        inner = precision.ScaledState(precision.StaticLossScale(8.0), inner)
    state = training.State(trainables, rest, inner)
    for _ in range(40):
        state, value = step(optimizer, state, None, x, jnp.full(2, target))
    np.testing.assert_allclose(state.trainables["w"], target, rtol=1e-4)


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


def test_several_seeds_train_in_one_program(tmp_path):
    model = nn.Series(nn.Linear(8), nn.BatchNorm(), nn.Dropout(0.1), nn.Linear(1))
    x = jax.random.normal(jax.random.key(0), (20, 3))
    targets, optimizer = jnp.sum(x, axis=1, keepdims=True), optim.Adam(0.01)
    step = training.make_step(model, lambda outputs, targets: jnp.mean((outputs - targets) ** 2))

    def start(key):
        trainables, non_trainables = model.init(key, x)
        return trainables, non_trainables, optimizer.init(trainables)

    def train(key, variables, **options):
        return training.fit(key, step, optimizer, variables, x, targets, epochs=2, batch_size=8, **options)

    seeds = [jax.random.split(jax.random.key(seed)) for seed in range(3)]
    start_keys, keys = jnp.stack(seeds, axis=1)
    together = jax.vmap(train)(keys, jax.vmap(start)(start_keys))
    for place, (start_key, key) in enumerate(seeds):
        alone = train(key, start(start_key))
        each = jax.tree.map(operator.itemgetter(place), together)
        assert not trees.differences(alone, each, rtol=1e-4, atol=1e-5)
    with training.Log(tmp_path / "log") as log:
        for option, seed in ({"each_epoch": print}, 3), ({"log": log}, 4):
            start_keys, keys = jax.random.split(jax.random.key(seed), (2, 5))
            with pytest.raises(ValueError, match="leave both out, and evaluate what fit returns"):
                jax.vmap(functools.partial(train, **option))(keys, jax.vmap(start)(start_keys))


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
    make, seen = training.loop._taker, []

    def watched(*args):
        take = make(*args)
        return lambda *args: seen.append(args) or take(*args)

    monkeypatch.setattr(training.loop, "_taker", watched)
    training.fit(
        jax.random.key(0), lambda o, state, *args: (state, jnp.zeros(())), optim.SGD(0.1), ((), (), ()),
        np.ones((6, 2)), np.ones(6), epochs=2, batch_size=2,
    )  # fmt: skip
    assert len(seen) == 6 and {id(data[0]) for *_, data in seen} == {id(seen[0][-1][0])}
    assert all(isinstance(array, jax.Array) for call in seen for array in jax.tree.leaves(call[1:]))


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
    before = training.State(*begin(optimizer, model))
    step = training.make_step(model, lambda outputs, targets: jnp.mean(outputs))
    after, value = step(optimizer, before, None, X, LABELS)
    assert after.non_trainables[1]["calls"] == 1 and value.shape == ()
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))
    kept = (X, LABELS, after, *((optimizer,) if isinstance(optimizer, optim.Optimizer) else ()))
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

    donated, (kept, _, kept_state) = training.State(*variables()), variables()
    for _ in range(10):
        donated, value = step(optimizer, donated, None, x, y)
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
        (X[:0], LABELS[:0], "^evaluate: x has 0 examples, but targets has 0; there must be some"),
        (X, LABELS[:-1], "^evaluate: x has 100 examples, but targets has 99"),
        (
            X.tolist(),
            LABELS,
            r"^evaluate: x must be an array with a leading axis of examples, got a list of length 100",
        ),
        (X, None, "^evaluate: targets must be an array with a leading axis of examples, got None"),
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
        ValueError, match=r"metric must return a scalar, got shape \(4,\), for one example, an output"
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
        ({"inputs": {"mask": X[:9]}}, "^fit: x has 100 examples, but mask has 9"),
        ({"inputs": {"mask": 1.0}}, "^fit: mask must be an array with a leading axis of examples, got"),
        ({"x": X.tolist()}, r"^fit: x must be an array .*, got .*: make one of it with jnp\.asarray\.$"),
        ({"targets": iter(LABELS)}, "^fit: targets must be an array with a leading axis of examples, got"),
    ],
)
def test_data_that_do_not_fit(wrong, message):
    options = {"x": X, "targets": LABELS, "epochs": 1, "batch_size": 10, **wrong}
    with pytest.raises(ValueError, match=message):
        training.fit(jax.random.key(0), None, optim.SGD(0.1), (), **options)


def test_no_epochs_change_nothing():
    variables = begin(optim.SGD(0.1))
    got = training.fit(jax.random.key(0), None, optim.SGD(0.1), variables, X, LABELS, epochs=0, batch_size=10)
    assert got == variables and type(got) is tuple


def test_the_order_is_int32_under_x64_too(x64):
    assert training.batches(jax.random.key(0), 100, 30).dtype == jnp.int32


def test_the_loss_told_is_the_mean_over_the_epoch_and_the_data_are_shuffled():
    """Every example comes once an epoch, in another order, with its own target; the loss is told before the update."""
    seen, told = [], []

    def step(optimizer, state, key, x, targets):
        seen.append(np.asarray(x))
        np.testing.assert_array_equal(targets, 2 * x)
        return state, jnp.mean(x)

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

    def step(optimizer, state, key, x, targets):
        keys.append(tuple(jax.random.key_data(key).tolist()))
        return state, jnp.zeros(())

    x = jnp.arange(6.0)
    training.fit(
        jax.random.key(0), step, optim.SGD(0.1), ((), (), ()), x, x, epochs=3, batch_size=2, draws=True
    )
    assert len(set(keys)) == len(keys) == 9


def test_data_and_targets_must_match():
    with pytest.raises(ValueError, match="x has 100 examples, but targets has 99"):
        training.fit(jax.random.key(0), None, optim.SGD(0.1), (), X, LABELS[:-1], epochs=1, batch_size=10)


class Scaled(nn.Composite):
    """Takes a further input, as attention takes a mask."""

    layer: nn.Layer

    def forward(self, call, x, *, weights):
        return call.layer(x) * weights[..., None]


def test_further_inputs_go_with_their_examples():
    """Weights of 0 hide every example but those of class 1; were they taken in another order, others would show."""
    model, optimizer = Scaled(nn.Linear(1, kernel_initializer=jax.nn.initializers.zeros)), optim.SGD(0.1)
    weights, targets = LABELS.astype(jnp.float32), X[:, :1] * LABELS[:, None]
    trainables, rest = model.init(jax.random.key(0), X, weights=weights)
    step = training.make_step(model, lambda outputs, targets: jnp.mean((outputs - targets) ** 2))
    trainables, rest, _ = training.fit(
        jax.random.key(1),
        step,
        optimizer,
        (trainables, rest, optimizer.init(trainables)),
        X,
        targets,
        epochs=200,
        batch_size=20,
        inputs={"weights": weights},
    )
    np.testing.assert_allclose(trainables["layer"]["kernel"][:, 0], [1, 0, 0, 0], atol=0.05)
    evaluate = training.make_evaluation(
        model, lambda output, target: jnp.abs(output - target)[0], batch_size=30
    )
    assert evaluate(trainables, rest, X, targets, weights=weights) < 0.05
    assert evaluate(trainables, rest, X, targets, weights=jnp.ones(100)) > 0.2
    with pytest.raises(ValueError, match="^evaluate: x has 100 examples, but weights has 9"):
        evaluate(trainables, rest, X, targets, weights=weights[:9])


def test_the_step_tells_whether_it_needs_keys():
    step = training.make_step(MODEL, loss)
    assert step.needs_key and not training.make_step(nn.Linear(2), loss).needs_key
    variables = begin(optim.SGD(0.1))  # MODEL has a dropout, which refuses to train without a key
    training.fit(jax.random.key(0), step, optim.SGD(0.1), variables, X, LABELS, epochs=1, batch_size=50)


def test_the_new_variables_lie_where_they_are_told_to():
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
    model, optimizer = nn.Series(nn.Linear(6), nn.Bias()), optim.Adam(0.1)
    rules = [("*['kernel']", P("data"))]
    variables = sharding.init(model, optimizer, jax.random.key(0), X, mesh, rules)
    places = jax.tree.map(lambda leaf: leaf.sharding, variables)
    assert places[0][0]["kernel"].spec == P("data")
    plain, placed = (training.make_step(model, loss, shardings) for shardings in (None, places))
    copies = jax.tree.map(jnp.copy, variables)
    after, value = placed(optimizer, training.State(*variables), None, X, LABELS)
    assert jax.tree.all(
        jax.tree.map(
            lambda leaf, place: leaf.sharding.is_equivalent_to(place, leaf.ndim), tuple(after), places
        )
    )
    np.testing.assert_allclose(
        value, plain(optimizer, training.State(*copies), None, X, LABELS)[-1], rtol=1e-6
    )


MADE = {
    "a class for a model": (lambda: training.make_step(nn.Linear, loss), "^make_step: model must be a layer, .*, got the class Linear"),
    "no loss": (lambda: training.make_step(MODEL, 0.1), "^make_step: loss must be a function, got 0.1"),
    "a layer for a loss": (lambda: training.make_step(MODEL, MODEL), "^make_step: loss must be a function, not a layer: .*, got Series"),
    "a function for a model": (
        lambda: training.make_evaluation(jnp.sin, loss),
        "^make_evaluation: model must be a layer, ",
    ),
    "no metric": (lambda: training.make_evaluation(MODEL, "accuracy"), "^make_evaluation: metric must be a function, got 'accuracy'"),
    "a loss for each example": (
        lambda: training.make_step(nn.Linear(2), lambda outputs, targets: outputs[:, 0])(
            optim.SGD(0.1), training.State(*begin(optim.SGD(0.1), nn.Linear(2))), None, X, LABELS
        ),
        r"^make_step: loss must return one floating-point number, got float32\[100\], from outputs float32\[100,2\] and targets "
        r"int32\[100\]: end it with a mean",
    ),
    "a raw key": (
        lambda: training.fit(np.zeros(2, "uint32"), None, None, ((), (), ()), X, LABELS, epochs=1, batch_size=1),
        r"^fit: key must be a typed key, as from jax\.random\.key\(0\), got uint32\[2\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), MADE.values(), ids=MADE)
def test_wrong_uses(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_what_was_donated_is_explained():
    model, optimizer = nn.Linear(2), optim.SGD(0.1, momentum=0.9)
    step, state = training.make_step(model, loss), training.State(*begin(optimizer, model))
    step(optimizer, state, None, X, LABELS)
    with pytest.raises((RuntimeError, ValueError)) as caught:
        step(optimizer, state, None, X, LABELS)
    assert "deleted" in str(caught.value)
    assert "A step of make_step donates its state: go on with" in caught.value.__notes__[-1]


def test_weights_that_are_one_array_are_explained():
    model, optimizer = nn.Parallel(nn.Linear(2), nn.Linear(2)), optim.SGD(0.1)
    step = training.make_step(model, lambda outputs, labels: jnp.mean(outputs[0] + outputs[1]))
    kernel = jnp.ones((4, 2))
    with pytest.raises((RuntimeError, ValueError), match="donate the same buffer") as caught:
        trainables = ({"kernel": kernel}, {"kernel": kernel})
        step(optimizer, training.State(trainables, (), optimizer.init(trainables)), None, X, LABELS)
    assert "give each array in it a memory of its own" in caught.value.__notes__[-1]


@pytest.mark.parametrize("scaled", [False, True], ids=["make_step", "make_scaled_step"])
def test_the_weights_of_attention_reach_the_loss(scaled):
    model, optimizer = nn.Residual(nn.MultiHeadAttention(2)), optim.SGD(1.0)
    x = jax.random.normal(jax.random.key(0), (2, 3, 4))
    trainables, _ = model.init(jax.random.key(1), x)

    def penalty(outputs, targets, notes):
        return sum(jnp.mean(weights**2) for weights in notes["weights"].values())

    def by_hand(trainables):
        return penalty(None, None, {"weights": nn.capture(model, "weights")(x, trainables, ())[1]})

    make = precision.make_scaled_step if scaled else training.make_step
    inner = optimizer.init(trainables)
    inner = precision.ScaledState(precision.StaticLossScale(1.0), inner) if scaled else inner
    wanted = jax.tree.map(lambda w, g: np.asarray(w - g), trainables, jax.grad(by_hand)(trainables))
    step = make(model, penalty, observe="weights")
    state, _ = step(optimizer, training.State(trainables, (), inner), None, x, x)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), state.trainables, wanted
    )
    name = make.__name__
    with pytest.raises(
        ValueError, match=f"^{name}: observe is for a loss whose third parameter is notes, got loss"
    ):
        make(model, loss, observe="weights")
    with pytest.raises(ValueError, match=f"^{name}: observe must be names of what layers show, .*, got 1"):
        make(model, penalty, observe=1)


def test_statistics_of_a_frozen_body_go_on_but_in_inference():
    body, stays = nn.Series(nn.Linear(4), nn.BatchNorm()), []
    for wrapped in (body, nn.Inference(body)):
        model, optimizer = nn.Series(wrapped, nn.Linear(2)), optim.Freeze(optim.SGD(0.1), where="[0]*")
        trainables, rest, inner = begin(optimizer, model)
        before = jax.tree.map(np.asarray, (trainables[0], rest))
        state, _ = training.make_step(model, loss)(
            optimizer, training.State(trainables, rest, inner), None, X, LABELS
        )
        after = state.trainables[0], state.non_trainables
        stays.append([not trees.differences(*pair) for pair in zip(before, after)])
    assert stays == [[True, False], [True, True]]


def test_a_wrapped_step_is_given_keys():
    step = training.make_step(MODEL, loss)
    variables = begin(optim.SGD(0.1))
    training.fit(
        jax.random.key(0),
        functools.partial(step),
        optim.SGD(0.1),
        variables,
        X,
        LABELS,
        epochs=1,
        batch_size=50,
    )


class Named(nn.Layer):
    """Its further inputs have the names of a step's own."""

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, state=0.0, targets=0.0):
        return x + state + targets, non_trainables


def test_further_inputs_of_any_name():
    model, optimizer = nn.Series(nn.Linear(1), Named()), optim.SGD(0.0)
    step = training.make_step(model, lambda outputs, targets: jnp.mean(outputs))
    state = training.State(*begin(optimizer, model))
    further = {"state": jnp.full((100, 1), 2.0), "targets": jnp.ones((100, 1))}
    state, first = step(optimizer, state, None, X, LABELS)
    state, second = step(optimizer, state, None, X, LABELS, **further)
    np.testing.assert_allclose(second, first + 3, rtol=1e-5)
    evaluate = training.make_evaluation(model, lambda output, target: output[0])
    np.testing.assert_allclose(
        evaluate(state.trainables, state.non_trainables, X, LABELS, **further), second, rtol=1e-5
    )


def shared_out(array, mesh):
    return jax.device_put(array, NamedSharding(mesh, P("data")))


def test_batches_are_shared_out_as_the_data_are():
    """A batch that lies whole on each device would be computed by each."""
    mesh, seen, results = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,)), [], []
    model, optimizer = nn.Linear(2), optim.SGD(0.1)
    step = training.make_step(model, loss)

    def watched(*args, **inputs):
        seen.append((args[-2].sharding, args[-1].sharding))
        return step(*args, **inputs)

    for put in (lambda array: array, lambda array: shared_out(array, mesh)):
        variables = begin(optimizer, model)
        results.append(
            training.fit(
                jax.random.key(2),
                watched,
                optimizer,
                variables,
                put(X),
                put(LABELS),
                epochs=2,
                batch_size=20,
                draws=False,
            )[0]
        )
    assert all(sharding.spec == P("data") for pair in seen[10:] for sharding in pair) and len(seen) == 20
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), *results)


def test_a_metric_of_a_batch_is_explained():
    def accuracy(logits, labels):
        return jnp.mean(jnp.argmax(logits, axis=1) == labels)

    trainables, rest, _ = begin(optim.SGD(0.1))
    with pytest.raises(IndexError) as caught:
        training.make_evaluation(MODEL, accuracy)(trainables, rest, X, LABELS)
    assert any(
        "given one example, an output float32[2] and a target int32[]" in note
        for note in caught.value.__notes__
    )


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


@pytest.mark.parametrize("decay", [1.5, -0.1, "much"])
def test_an_average_keeps_a_share_between_0_and_1(decay):
    state = training.State({"bias": jnp.ones(2)}, (), ())
    with pytest.raises(ValueError, match=r"^follow: decay must be a finite number in \[0, 1\], got"):
        training.follow(({"bias": jnp.zeros(2)}, ()), state, decay)
    average = training.follow(({"bias": jnp.zeros(2)}, ()), state, jnp.float32(0.75))
    assert average[0]["bias"].tolist() == [0.25, 0.25]


def test_the_mean_loss_of_many_steps_in_half_precision():
    """In bfloat16 the sum of 600 ones is 256."""

    class Weight(nn.Layer):
        def init(self, key, x):
            return {"kernel": jnp.ones((), x.dtype)}, ()

        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            return x * trainables["kernel"], non_trainables

    model, optimizer, x = Weight(), optim.SGD(0.0), jnp.ones((600, 1), jnp.bfloat16)
    step = training.make_step(model, lambda y, targets: jnp.mean((y - targets) ** 2))
    trainables, rest = model.init(jax.random.key(0), x)
    means = []
    training.fit(
        jax.random.key(0), step, optimizer, (trainables, rest, optimizer.init(trainables)), x, jnp.zeros_like(x),
        epochs=1, batch_size=1, each_epoch=lambda epoch, trainables, rest, mean: means.append(mean),
    )  # fmt: skip
    assert means == [1.0]
