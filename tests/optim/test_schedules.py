"""Schedules: against Optax, in optimizers, under JAX's transformations; wrong ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import optim
from mlax_tutorial.optim.tunable import at_least, number
from tests.laws.rows import SCHEDULES

schedules = pytest.mark.parametrize(
    ("schedule", "peer"), SCHEDULES, ids=[repr(schedule) for schedule, _ in SCHEDULES]
)
COUNTS = np.arange(60)
WEIGHTS = {"w": jnp.ones(2)}


@schedules
def test_every_step_equals_optax(schedule, peer):
    with jax.numpy_dtype_promotion("standard"):
        wanted = [float(peer(count)) for count in COUNTS]
    np.testing.assert_allclose(schedule(COUNTS), wanted, rtol=2e-6, atol=1e-8)


@schedules
def test_every_way_to_count_gives_one_float32(schedule, peer):
    counts = [3, np.int64(3), np.uint8(3), jnp.int32(3), jnp.asarray(3)]
    for count in counts:
        rate = schedule(count)
        assert rate.dtype == "float32" and rate.shape == () and not jax.typeof(rate).weak_type
        np.testing.assert_allclose(rate, schedule(COUNTS)[3], rtol=1e-6)
    np.testing.assert_allclose(jax.jit(schedule)(jnp.int32(3)), schedule(3), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(schedule)(jnp.asarray(COUNTS)), schedule(COUNTS), rtol=1e-6)


@schedules
def test_in_float64_sessions_it_stays_float32(schedule, peer, x64):
    assert schedule(3).dtype == schedule(np.arange(4)).dtype == "float32"


@schedules
def test_numbers_are_leaves(schedule, peer):
    traces = []

    @jax.jit
    def rate(schedule):
        traces.append(1)
        return schedule(4)

    for factor in (1, 2, 3):
        scaled = jax.tree.map(lambda leaf, factor=factor: leaf * factor, schedule)
        np.testing.assert_allclose(rate(scaled), scaled(4), rtol=1e-5)
    assert len(traces) == 1
    slopes = jax.grad(rate, allow_int=True)(schedule)
    assert all(leaf.dtype == jax.dtypes.float0 or np.isfinite(leaf) for leaf in jax.tree.leaves(slopes))
    assert {leaf.dtype.name for leaf in jax.tree.leaves(schedule)} <= {"float32", "int32"}


def test_long_trainings_keep_their_ends():
    """Counts beyond 2**24 are no float32, but steps are still told apart where that matters."""
    every = 2**24 + 1
    assert optim.StepDecay(1.0, every=every)(every - 1) == 1
    np.testing.assert_allclose(optim.StepDecay(1.0, every=every)(every), 0.1)
    assert optim.LinearDecay(0.3, steps=2**30, end=0.1)(2**31 - 1) == np.float32(0.1)
    assert optim.CosineDecay(0.3, steps=2**30)(2**31 - 1) == 0


@pytest.mark.parametrize(
    "make",
    [optim.SGD, optim.RMSProp, optim.Adagrad, optim.Adam, optim.AdamW, optim.Lion],
    ids=lambda make: make.__name__,
)
def test_each_optimizer_follows_a_schedule(make):
    """Step by step, it equals the optimizer whose learning rate is set by hand."""
    schedule = optim.WarmUp(optim.LinearDecay(0.3, steps=3), steps=2, start=0.1)
    scheduled, gradients = make(schedule), {"w": jnp.array([1.0, -2.0])}
    state, other = scheduled.init(WEIGHTS), make(0.0).init(WEIGHTS)
    for count in range(6):
        assert state.count == count
        updates, state = scheduled.step(gradients, state, WEIGHTS)
        wanted, other = make(schedule(count)).step(gradients, other, WEIGHTS)
        np.testing.assert_allclose(updates["w"], wanted["w"], rtol=1e-6)


def test_the_count_stays_at_the_end_of_int32():
    optimizer = optim.SGD(0.1)
    state = optimizer.init(WEIGHTS)._replace(count=jnp.int32(2**31 - 1))
    assert optimizer.step(WEIGHTS, state, WEIGHTS)[1].count == 2**31 - 1


def test_a_schedule_of_ones_own():
    class Root(optim.Schedule):
        peak: float = number(at_least(0))

        def __call__(self, count):
            return self.peak / jnp.sqrt(jnp.asarray(count, jnp.float32) + 1)

    optimizer = optim.SGD(optim.WarmUp(Root(0.5), steps=1))
    assert repr(optimizer) == "SGD(WarmUp(Root(0.5), 1))"
    assert optimizer.learning_rate(4) == 0.25


WRONG = {
    "a NaN": (
        lambda: optim.LinearDecay(np.nan, 3),
        r"^LinearDecay: start must be a finite number of at least 0, got nan",
    ),
    "negative": (lambda: optim.LinearDecay(-1, 3), r"^LinearDecay: start must be .* of at least 0, got -1"),
    "text": (lambda: optim.LinearDecay("1", 3), r"^LinearDecay: start must be .* got '1'"),
    "an end in its place": (
        lambda: optim.LinearDecay(0.1, 3, 0.01),
        r"^LinearDecay: takes 2 positional, start, steps, got \(0.1, 3, 0.01\): write LinearDecay\(start, steps, end=…\)\.",
    ),
    "no steps": (
        lambda: optim.LinearDecay(0.1, steps=0),
        r"^LinearDecay: steps must be a whole number of at least 1, got 0",
    ),
    "half a step": (
        lambda: optim.LinearDecay(0.1, 2.5),
        r"^LinearDecay: steps must be a whole number .* got 2.5",
    ),
    "a negative end": (lambda: optim.LinearDecay(0.1, 2, end=-0.1), r"^LinearDecay: end must be .* got -0.1"),
    "steps beyond int32": (
        lambda: optim.CosineDecay(0.1, 2**31),
        r"^CosineDecay: steps must be a whole number",
    ),
    "steps in bool": (lambda: optim.CosineDecay(0.1, True), r"^CosineDecay: steps must be .* got True"),
    "a start with axes": (
        lambda: optim.CosineDecay(jnp.ones(1), 3),
        r"^CosineDecay: start must be a finite number",
    ),
    "a negative factor": (
        lambda: optim.StepDecay(0.1, 3, factor=-0.5),
        r"^StepDecay: factor must be .* got -0.5",
    ),
    "every 0": (lambda: optim.StepDecay(0.1, every=0), r"^StepDecay: every must be a whole number"),
    "every NaN": (lambda: optim.StepDecay(0.1, every=np.nan), r"^StepDecay: every must be .* got nan"),
    "no function": (lambda: optim.Function(0.1), r"^Function: function must be a function, .*got 0.1"),
    "the name of a schedule": (
        lambda: optim.Function("cosine"),
        r"^Function: function must be a function, got 'cosine'",
    ),
    "a function that returns several rates": (
        lambda: optim.SGD(lambda count: jnp.full((1, 2), 0.1)).step(
            WEIGHTS, optim.SGD(0.1).init(WEIGHTS), WEIGHTS
        ),
        r"^Function: <lambda> must return one number for a count, got float32\[1,2\]",
    ),
    "a class to follow": (
        lambda: optim.WarmUp(optim.StepDecay, 3),
        r"^WarmUp: schedule must be .*, an optim.Schedule, or a function of the count, got StepDecay",
    ),
    "a warm-up of no steps": (lambda: optim.WarmUp(0.1, 0), r"^WarmUp: steps must be a whole number"),
    "a warm-up from below": (lambda: optim.WarmUp(0.1, 3, start=-1.0), r"^WarmUp: start must be .* got -1.0"),
    "a class as learning rate": (
        lambda: optim.Adam(optim.CosineDecay),
        r"^Adam: learning_rate must be .*, an optim.Schedule, or a function of the count, got CosineDecay",
    ),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=list(WRONG))
def test_wrong_schedules(wrong, message):
    with pytest.raises(optim.OptimizerError, match=message):
        wrong()


def test_a_subclass_must_say_what_it_is():
    with pytest.raises(NotImplementedError, match="Schedule must define __call__"):
        optim.Schedule()(3)
