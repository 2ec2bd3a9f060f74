"""Optimizers, transformations and wrappers: values against references of their own, and wrong uses."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import optim, packing
from mlax_tutorial.optim.moments import bias_correction
from tests.nn.test_oracles import optimized_ops

RNG = np.random.default_rng(0)
WEIGHTS = ({"kernel": jnp.ones((3, 2)), "bias": jnp.zeros(2)}, (), [jnp.full(4, -1.0)])
GRADIENTS = [
    jax.tree.map(lambda w: jnp.asarray(RNG.normal(size=w.shape), w.dtype), WEIGHTS) for _ in range(50)
]


def final(optimizer, gradients=GRADIENTS, weights=WEIGHTS):
    """The weights and the state after a step for each of some gradients."""
    step, state = jax.jit(optimizer.step), optimizer.init(weights)
    for g in gradients:
        updates, state = step(g, state, weights)
        weights = optim.apply_updates(weights, updates)
    return weights, state


def assert_close(first, second, rtol=1e-5, atol=1e-6):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second)):
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=atol)


# Against the papers, in NumPy and float64.


def by_hand(update, memories, begin=0.0):
    """50 steps of ``update(g, t, *memories) -> (step, *memories)``, leaf by leaf."""

    def train(weight, *gradients):
        weight, memory = np.asarray(weight, np.float64), [np.full(weight.shape, begin)] * memories
        for t, g in enumerate(gradients, start=1):
            step, *memory = update(np.asarray(g, np.float64), t, weight, *memory)
            weight = weight - step
        return weight

    return jax.tree.map(train, WEIGHTS, *GRADIENTS)


def adam(g, t, w, m, v, inside, decay=0.0):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
    divisor = np.sqrt(v_hat + 0.1) if inside else np.sqrt(v_hat) + 0.1
    return 0.01 * (m_hat / divisor + decay * w), m, v


def adagrad(g, t, w, s, inside):
    s = s + g**2
    return 0.01 * g / (np.sqrt(s + 0.1) if inside else np.sqrt(s) + 0.1), s


def rmsprop(g, t, w, v, u, inside):
    v = 0.8 * v + 0.2 * g**2
    u = 0.7 * u + g / (np.sqrt(v + 0.1) if inside else np.sqrt(v) + 0.1)
    return 0.01 * u, v, u


def lion(g, t, w, m):
    return 0.01 * (np.sign(0.9 * m + 0.1 * g) + 0.3 * w), 0.99 * m + 0.01 * g


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_epsilon_inside_and_outside_the_root(inside):
    options = {"epsilon": 0.1, "epsilon_inside": inside}
    update = functools.partial(adam, inside=inside)
    assert_close(final(optim.Adam(0.01, **options))[0], by_hand(update, 2))
    assert_close(
        final(optim.AdamW(0.01, weight_decay=0.3, **options))[0],
        by_hand(functools.partial(update, decay=0.3), 2),
    )
    adagrad_ = optim.Adagrad(0.01, initial_sum=0.5, **options)
    assert_close(final(adagrad_)[0], by_hand(functools.partial(adagrad, inside=inside), 1, begin=0.5))
    rmsprop_ = optim.RMSProp(0.01, decay=0.8, momentum=0.7, **options)
    assert_close(final(rmsprop_)[0], by_hand(functools.partial(rmsprop, inside=inside), 2))


def test_lion():
    assert_close(final(optim.Lion(0.01, weight_decay=0.3))[0], by_hand(lion, 1))


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 0.999, 0.999999])
def test_bias_correction_keeps_its_digits(decay):
    decay = jnp.float32(decay)
    for count in (1, 2, 10, 1000, 10**6):
        exact = 1 - float(decay) ** count
        np.testing.assert_allclose(jax.jit(bias_correction)(decay, jnp.int32(count)), exact, rtol=1e-6)


def test_the_first_step_of_adam_is_the_learning_rate():
    updates, _ = optim.Adam(0.1).step(
        {"w": jnp.array([1e-3, -1e3])}, *_begin(optim.Adam(0.1), {"w": jnp.ones(2)})
    )
    np.testing.assert_allclose(updates["w"], [-0.1, 0.1], rtol=2e-5)


def _begin(optimizer, weights):
    return optimizer.init(weights), weights


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_second_moment_of_half_precision_weights_forgets(dtype):
    """In bfloat16, 0.999 times a number rounds to that number: an average kept there would stay for ever."""
    weights = {"w": jnp.ones(3, dtype)}
    optimizer = optim.Adam(0.0)
    state = optimizer.init(weights)._replace(second_moment={"w": jnp.ones(3)})
    nothing, step = {"w": jnp.zeros(3, dtype)}, jax.jit(optimizer.step)
    for _ in range(100):
        _, state = step(nothing, state, weights)
    np.testing.assert_allclose(state.second_moment["w"], 0.999**100, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_velocity_of_half_precision_weights_keeps_growing(dtype):
    """In bfloat16 it would stop at 75."""
    weights = {"w": jnp.ones((), dtype)}
    optimizer, gradients = optim.SGD(0.0, momentum=0.99), [weights] * 600
    np.testing.assert_allclose(
        final(optimizer, gradients, weights)[1].velocity["w"], (1 - 0.99**600) / 0.01, rtol=1e-4
    )


def test_a_scheduled_decay_is_that_of_optax():
    schedule = optax.linear_schedule(0.5, 0.0, 20)
    weights, theirs = WEIGHTS, optax.inject_hyperparams(optax.adamw)(0.1, weight_decay=schedule)
    with jax.numpy_dtype_promotion("standard"):  # Optax is not written for strict promotion
        state = theirs.init(weights)
        for g in GRADIENTS:
            updates, state = theirs.update(g, state, weights)
            weights = optax.apply_updates(weights, updates)
    assert_close(final(optim.AdamW(0.1, weight_decay=schedule))[0], weights)


def test_moment_dtypes():
    weights = {"w": jnp.ones(3, jnp.bfloat16)}
    state = optim.Adam(0.1, first_moment_dtype=jnp.float32, second_moment_dtype="bfloat16").init(weights)
    assert state.first_moment["w"].dtype == "float32" and state.second_moment["w"].dtype == "bfloat16"
    assert (
        optim.SGD(0.1, momentum=0.9, velocity_dtype="float16").init(weights).velocity["w"].dtype == "float16"
    )
    assert optim.Lion(0.1, first_moment_dtype="float32").init(weights).first_moment["w"].dtype == "float32"
    assert (
        optim.RMSProp(0.1, second_moment_dtype="float16").init(weights).second_moment["w"].dtype == "float16"
    )
    assert (
        optim.Adagrad(0.1, sum_of_squares_dtype="bfloat16").init(weights).sum_of_squares["w"].dtype
        == "bfloat16"
    )


# Transformations


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (optim.ClipByGlobalNorm(0.5), optax.clip_by_global_norm(0.5)),
        (optim.ClipByGlobalNorm(3.0), optax.clip_by_global_norm(3.0)),
        (optim.ClipByGlobalNorm(100.0), optax.clip_by_global_norm(100.0)),
        (optim.ClipByValue(0.3), optax.clip(0.3)),
        (optim.WeightDecay(0.3), optax.add_decayed_weights(0.3)),
    ],
    ids=lambda side: str(side) if isinstance(side, optim.Transformation) else "optax",
)
def test_transformations_equal_optax(ours, theirs):
    state, peer = ours.init(WEIGHTS), theirs.init(WEIGHTS)
    for g in GRADIENTS:
        got, state = ours.step(g, state, WEIGHTS)
        wanted, peer = theirs.update(g, peer, WEIGHTS)
        assert_close(got, wanted)


def test_a_clipped_norm_is_the_maximum_and_a_short_one_stays_exactly():
    clipped, _ = optim.ClipByGlobalNorm(0.5).step(GRADIENTS[0], (), WEIGHTS)
    np.testing.assert_allclose(optax.tree.norm(clipped), 0.5, rtol=1e-6)
    kept, _ = optim.ClipByGlobalNorm(100.0).step(GRADIENTS[0], (), WEIGHTS)
    assert_close(kept, GRADIENTS[0], rtol=0, atol=0)


def test_a_gradient_of_zero_is_clipped_to_zero_and_has_a_slope():
    zero = jax.tree.map(jnp.zeros_like, WEIGHTS)
    assert_close(optim.ClipByGlobalNorm(0.5).step(zero, (), WEIGHTS)[0], zero)

    def clipped(scale):
        g = jax.tree.map(lambda z: z * scale, zero)
        return sum(map(jnp.sum, jax.tree.leaves(optim.ClipByGlobalNorm(0.5).step(g, (), WEIGHTS)[0])))

    assert jax.grad(clipped)(1.0) == 0


def test_norms_of_half_precision_do_not_overflow():
    """The square of 300 is no float16."""
    gradients = {"w": jnp.full(4, 300.0, jnp.float16)}
    clipped, _ = optim.ClipByGlobalNorm(1.0).step(gradients, (), gradients)
    np.testing.assert_allclose(clipped["w"], 0.5, rtol=1e-6)


@pytest.mark.parametrize("large", [1e20, 1e36, 1e-20, np.inf, np.nan])
def test_the_norm_of_gradients_of_any_size(large):
    gradients = {"w": jnp.array([large, 1.0, -large]), "b": jnp.full(3, 2.0)}
    clipped, _ = optim.ClipByGlobalNorm(0.5).step(gradients, (), gradients)
    exact = jax.tree.map(lambda g: np.asarray(g, np.float64), gradients)
    norm = np.sqrt(sum(np.sum(g**2) for g in exact.values()))
    with np.errstate(invalid="ignore"):
        assert_close(clipped, {name: 0.5 / norm * g for name, g in exact.items()})
        if not large < np.inf:
            assert_close(clipped, optax.clip_by_global_norm(0.5).update(gradients, optax.EmptyState())[0])


@pytest.mark.parametrize("maximum", [1e-30, 1.0, 1e38])
@pytest.mark.parametrize("size", [0, 1e-30, 1.0, 1e38])
def test_a_maximum_of_any_size(maximum, size):
    g = np.array([size, -size / 2], np.float32).astype(np.float64)
    clipped, _ = jax.jit(optim.ClipByGlobalNorm(maximum).step)({"w": jnp.asarray(g)}, (), {"w": jnp.zeros(2)})
    np.testing.assert_allclose(
        clipped["w"], g * min(1, maximum / max(np.linalg.norm(g), 1e-45)), rtol=1e-6, atol=1e-38
    )


@pytest.mark.parametrize("weight", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("update", [1e-30, 1.0, 1e30])
def test_a_trust_ratio_of_any_size(weight, update):
    w, u = np.array([3.0, 4.0]) * weight, np.array([1.0, -2.0]) * update
    found, _ = jax.jit(optim.ScaleByTrustRatio().step)({"w": jnp.asarray(u)}, (), {"w": jnp.asarray(w)})
    np.testing.assert_allclose(found["w"], u / np.linalg.norm(u) * np.linalg.norm(w), rtol=1e-6)


def test_complex_weights_descend_as_in_optax():
    weights = {"w": jnp.array([1 + 2j, -3j]), "b": jnp.ones(2)}
    for ours, theirs in (
        (optim.SGD(0.1, momentum=0.5), optax.sgd(0.1, momentum=0.5)),
        (optim.Adam(0.1), optax.adam(0.1)),
        (
            optim.Chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1)),
            optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1)),
        ),
    ):
        first, state, second, peer = weights, ours.init(weights), weights, theirs.init(weights)
        for _ in range(9):
            gradients = jax.grad(lambda w: jnp.sum(jnp.abs(w["w"] - 1j) ** 2) + jnp.sum(w["b"] ** 2))(first)
            gradients = jax.tree.map(jnp.conj, gradients)
            updates, state = ours.step(gradients, state, first)
            first = optim.apply_updates(first, updates)
            with jax.numpy_dtype_promotion("standard"):
                updates, peer = theirs.update(gradients, peer, second)
                second = optax.apply_updates(second, updates)
        for name in weights:
            assert first[name].dtype == weights[name].dtype
            np.testing.assert_allclose(first[name], second[name], rtol=1e-4, atol=1e-5)


# After the optimizer


def test_lamb_is_a_chain():
    schedule = optax.linear_schedule(0.1, 0.0, 50)
    ours = optim.Chain(
        optim.AdamW(1.0, weight_decay=0.1, epsilon=1e-6), optim.ScaleByTrustRatio(), optim.Scale(schedule)
    )
    assert_close(final(ours)[0], with_optax(optax.lamb(schedule, weight_decay=0.1)))


def test_trust_ratio_of_zeros_has_a_gradient_and_complex_weights_a_length():
    def updated(weight):
        return optim.ScaleByTrustRatio().step({"w": jnp.ones(2)}, (), {"w": weight})[0]["w"].sum()

    assert (jax.grad(updated)(jnp.zeros(2)) == 0).all()  # biases begin at zero
    weights, update = {"w": jnp.array([3j, 4.0])}, {"w": jnp.array([1.0 + 0j, 0])}
    found, _ = optim.ScaleByTrustRatio().step(update, (), weights)
    np.testing.assert_allclose(found["w"], [5, 0], rtol=1e-6)


class Orthogonalize(optim.Transformation):
    """Push the singular values of each matrix towards 1, by the polynomial of Muon."""

    def transform(self, gradients, state, trainables):
        def one(update):
            x = update.T if update.shape[0] > update.shape[1] else update
            x = x / jnp.linalg.norm(x)
            for _ in range(5):
                square = x @ x.T
                x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
            x = x.T if update.shape[0] > update.shape[1] else x
            return max(1, x.shape[1] / x.shape[0]) ** 0.5 * x

        return jax.tree.map(one, gradients), state


def test_muon_for_matrices_is_a_chain():
    muon = optim.Chain(optim.SGD(1.0, momentum=0.95), Orthogonalize(), optim.Scale(0.02))
    ours = optim.Groups({optim.kernels: muon, lambda path: "kernel" not in path: optim.Adam(0.02)})
    theirs = optax.contrib.muon(0.02, nesterov=False, adam_b2=0.999)
    assert_close(final(ours)[0], with_optax(theirs))


def with_optax(optimizer):
    """The weights after a step for each of the gradients."""
    weights, state = WEIGHTS, optimizer.init(WEIGHTS)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        for g in GRADIENTS:
            updates, state = optimizer.update(g, state, weights)
            weights = optax.apply_updates(weights, updates)
    return weights


# Wrappers


def test_accumulated_gradients_step_once_with_their_mean():
    """48 gradients, three at a time, are 16 steps with the means."""
    inner = optim.AdamW(0.05, weight_decay=0.1)
    means = [jax.tree.map(lambda *g: sum(g) / 3, *GRADIENTS[i : i + 3]) for i in range(0, 48, 3)]
    weights, state = final(optim.Accumulate(inner, steps=3), GRADIENTS[:48])
    wanted, inner_state = final(inner, means)
    assert_close(weights, wanted)
    assert_close(state.inner, inner_state)
    assert state.count == 0 and state.inner.count == 16
    between, state = final(optim.Accumulate(inner, steps=3), GRADIENTS[:50])
    assert_close(between, wanted)
    assert state.count == 2


def test_a_new_number_of_steps_between_gives_the_right_mean():
    optimizer, g = optim.Accumulate(optim.SGD(1.0), steps=5), {"w": jnp.ones(())}
    state = optimizer.init(g)
    for factor in (1.0, 2.0):
        _, state = optimizer.step({"w": jnp.float32(factor)}, state, g)
    updates, state = optim.Accumulate(optim.SGD(1.0), steps=2).step({"w": jnp.float32(6.0)}, state, g)
    assert updates["w"] == -3 and state.count == 0


def test_batches_count_by_their_weights():
    """Means over 10 and over 1,000 tokens step as the mean over all 1,010."""
    tokens = RNG.normal(size=1010).astype(np.float32)
    inner = optim.SGD(1.0, momentum=0.5)
    optimizer = optim.Chain(optim.ClipByGlobalNorm(9.0), optim.Accumulate(inner, steps=2))
    weights = {"w": jnp.zeros(())}
    state, step = optimizer.init(weights), jax.jit(optimizer.step)
    for part in (tokens[:10], tokens[10:], tokens[:10], tokens[10:]):
        updates, state = step({"w": part.mean()}, state, weights, weight=len(part))
    np.testing.assert_allclose(updates["w"], -1.5 * tokens.mean(), rtol=1e-4)
    updates, _ = optimizer.step(weights, optimizer.init(weights), weights, weight=0)  # padding alone
    assert updates["w"] == 0
    alone = optim.Accumulate(inner, steps=2)
    _, state = alone.step({"w": jnp.float32(jnp.nan)}, alone.init(weights), weights, weight=0)
    assert state.total["w"] == 0  # a mean over no token


@pytest.mark.parametrize(
    ("weight", "got"),
    [
        (jnp.ones(3), r"\[1\. 1\. 1\.\]|Array|float32"),
        (-1, "-1"),
        (np.nan, "nan"),
        (None, "None"),
        ("3", "'3'"),
    ],
)
def test_a_weight_is_one_number(weight, got):
    optimizer, weights = optim.Accumulate(optim.SGD(1.0), steps=2), {"w": jnp.zeros(3)}
    wanted = rf"^Accumulate: weight must be a finite number of at least 0, how much this batch counts, got .*({got})"
    with pytest.raises(optim.OptimizerError, match=wanted):
        optimizer.step(weights, optimizer.init(weights), weights, weight=weight)


class FollowsTheLoss(optim.Transformation):
    extra = frozenset({"value"})

    def transform(self, gradients, state, trainables, value):
        return jax.tree.map(lambda g: value * g, gradients), state


def test_what_a_part_asks_for_reaches_it():
    inner = optim.Chain(FollowsTheLoss(), optim.SGD(1.0))
    optimizer = optim.Groups({"['a']": optim.Accumulate(inner, steps=1), "['b']": optim.SGD(1.0)})
    optimizer = optim.ExponentialMovingAverage(optim.MasterWeights(optimizer))
    assert optimizer.extra == {"weight", "value"} and optim.Freeze(inner, "*a*").extra == {"value"}
    weights = {"a": jnp.ones(()), "b": jnp.ones(())}
    updates, _ = optimizer.step(weights, optimizer.init(weights), weights, value=3.0, weight=2)
    assert updates == {"a": -3, "b": -1}


def test_an_average_around_accumulate_counts_real_steps():
    inner = optim.ExponentialMovingAverage(optim.SGD(0.1), decay=0.7, bias_correction=True)
    outer = optim.ExponentialMovingAverage(
        optim.Chain(optim.Accumulate(optim.SGD(0.1), steps=3)), decay=0.7, bias_correction=True
    )
    means = [jax.tree.map(lambda *g: sum(g) / 3, *GRADIENTS[i : i + 3]) for i in range(0, 12, 3)]
    wanted, got = final(inner, means)[1], final(outer, GRADIENTS[:14])[1]
    assert got.count == 4
    assert_close(got.average, wanted.average)


def test_the_average_of_the_weights_equals_optax():
    optimizer, inner = optim.ExponentialMovingAverage(optim.Adam(0.1), decay=0.9), optim.Adam(0.1)
    weights, average = WEIGHTS, WEIGHTS
    state = inner.init(weights)
    for g in GRADIENTS:
        updates, state = inner.step(g, state, weights)
        weights = optim.apply_updates(weights, updates)
        average = optax.incremental_update(weights, average, 0.1)
    trained, averaged = final(optimizer)
    assert_close(trained, weights)
    assert_close(averaged.average, average)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_master_weights_are_a_float32_training_of_rounded_weights(dtype):
    adamw = optim.AdamW(1e-3, weight_decay=50.0)  # so much that rounded weights would decay to others
    half = jax.tree.map(lambda w: w.astype(dtype), WEIGHTS)
    gradients = [jax.tree.map(lambda g: g.astype(dtype), g) for g in GRADIENTS]
    weights, state = final(optim.MasterWeights(adamw), gradients, half)
    exact, _ = final(adamw, [jax.tree.map(lambda g: g.astype("float32"), g) for g in gradients])
    assert_close(state.masters, exact)
    assert_close(weights, jax.tree.map(lambda m: m.astype(dtype), state.masters), rtol=0, atol=0)


def test_frozen_weights_stay_and_are_not_stored():
    optimizer = optim.Freeze(optim.AdamW(0.1, weight_decay=0.5), where=lambda path: "kernel" in path)
    weights, state = final(optimizer)
    assert np.array_equal(weights[0]["kernel"], WEIGHTS[0]["kernel"])
    assert jax.tree.structure(state.inner.first_moment) == jax.tree.structure(
        ({"kernel": (), "bias": 0}, (), [0])
    )
    alone, _ = final(
        optim.AdamW(0.1, weight_decay=0.5),
        [(g[0]["bias"], g[2]) for g in GRADIENTS],
        (WEIGHTS[0]["bias"], WEIGHTS[2]),
    )
    assert_close((weights[0]["bias"], weights[2]), alone)


def test_a_frozen_gradient_takes_no_part_in_the_norm():
    clip = optim.Chain(optim.ClipByGlobalNorm(1.0), optim.SGD(1.0))
    weights, gradients = (
        {"a": jnp.zeros(1), "b": jnp.zeros(1)},
        {"a": jnp.full(1, 100.0), "b": jnp.full(1, 0.5)},
    )
    optimizer = optim.Freeze(clip, where=lambda path: path == "['a']")
    updates, _ = optimizer.step(gradients, optimizer.init(weights), weights)
    assert updates == {"a": 0, "b": -0.5}


def test_gradients_of_frozen_weights_are_not_computed(optimized):
    def step(weights, x):
        gradients = jax.grad(lambda w: jnp.sum((x @ w["body"]) @ w["head"]))(weights)
        optimizer = optim.Freeze(optim.SGD(0.1), where=lambda path: "body" in path)
        updates, _ = optimizer.step(gradients, optimizer.init(weights), weights)
        return optim.apply_updates(weights, updates)

    weights = {"body": jnp.ones((4, 5)), "head": jnp.ones((5, 6))}
    text = jax.jit(step).lower(weights, jnp.ones((3, 4))).compile().as_text()
    assert text.count("dot(") == 2  # one forward, one for the head


def test_a_lambda_written_again_traces_again_but_not_a_partial():
    def within(name, path):
        return name in path

    traces = []

    @jax.jit
    def init(optimizer):
        traces.append(1)
        return optimizer.init(WEIGHTS)

    for name in ("kernel", "kernel", "bias"):
        init(optim.AdamW(0.1, where=functools.partial(within, name)))
    assert len(traces) == 2
    for _ in range(2):
        init(optim.AdamW(0.1, where=lambda path: "kernel" in path))
    assert len(traces) == 4


def test_optimizers_nest():
    """Clipping, decay by path, masters, average and accumulation at once, in one jitted loop."""
    optimizer = optim.Accumulate(
        optim.Chain(
            optim.ClipByGlobalNorm(1.0),
            optim.MasterWeights(
                optim.ExponentialMovingAverage(
                    optim.AdamW(optim.WarmUp(0.1, 3), where=lambda path: "kernel" in path), decay=0.9
                )
            ),
        ),
        steps=2,
    )
    half = jax.tree.map(lambda w: w.astype("bfloat16"), WEIGHTS)

    @jax.jit
    def train(optimizer, weights, gradients):
        def step(carry, g):
            weights, state = carry
            updates, state = optimizer.step(g, state, weights)
            return (optim.apply_updates(weights, updates), state), None

        return jax.lax.scan(step, (weights, optimizer.init(weights)), gradients)[0]

    stacked = jax.tree.map(lambda *g: jnp.stack(g).astype("bfloat16"), *GRADIENTS)
    weights, state = train(optimizer, half, stacked)
    masters = state.inner.inner[1]
    assert_close(weights, jax.tree.map(lambda m: m.astype("bfloat16"), masters.masters), rtol=0, atol=0)
    assert masters.inner.inner.count == 25
    assert not np.allclose(masters.inner.average[0]["kernel"], 1)


def test_the_compiled_step_of_adam_is_that_of_hand_written_jax(optimized):
    weights = [jnp.full((8, 4), i + 1.0) for i in range(20)]
    optimizer = optim.Adam(1e-3)
    state = optimizer.init(weights)

    def ours(optimizer, gradients, state, weights):
        updates, state = optimizer.step(gradients, state, weights)
        return optim.apply_updates(weights, updates), state

    def by_hand(rate, b1, b2, epsilon, gradients, count, first, second, weights):
        count = count + (count < 2**31 - 1).astype(jnp.int32)
        c1, c2 = (-jnp.expm1(count.astype(jnp.float32) * jnp.log1p(b - 1)) for b in (b1, b2))
        first = [b1 * m + (1 - b1) * g for m, g in zip(first, gradients)]
        second = [b2 * v + (1 - b2) * jnp.square(g) for v, g in zip(second, gradients)]
        updates = [-rate * (m / c1 / (jnp.sqrt(v / c2) + epsilon)) for m, v in zip(first, second)]
        return [w + u for w, u in zip(weights, updates)], (count, first, second)

    numbers = optimizer.learning_rate, optimizer.first_decay, optimizer.second_decay, optimizer.epsilon
    library = optimized_ops(ours, optimizer, weights, state, weights)
    hand = optimized_ops(by_hand, *numbers, weights, *state, weights)
    assert library["fusion"] and library == hand


# Wrong uses


def typo(path):
    return "kernle" in path


@pytest.mark.parametrize(
    "optimizer",
    [
        optim.AdamW(optim.WarmUp(0.01, 3), weight_decay=0.5),
        optim.Chain(optim.ClipByGlobalNorm(0.5), optim.SGD(0.1, momentum=0.9)),
        optim.MasterWeights(optim.Lion(0.01)),
    ],
    ids=str,
)
def test_packed_weights_are_trained_alike(optimizer):
    dtypes = (({"kernel": "bfloat16", "bias": "float32"}), (), ["bfloat16"])
    weights, *gradients = [jax.tree.map(jnp.asarray, tree, dtypes) for tree in (WEIGHTS, *GRADIENTS)]
    got, state = final(packing.Packed(optimizer), gradients, weights)
    wanted, _ = final(optimizer, gradients, weights)
    assert jax.tree.map(lambda w: w.dtype, got) == jax.tree.map(lambda w: w.dtype, wanted)
    assert_close(got, wanted, rtol=1e-2)  # one step of bfloat16
    assert_close(got[0]["bias"], wanted[0]["bias"])
    assert max(map(jnp.ndim, jax.tree.leaves(state))) == 1
    assert {leaf.size for leaf in jax.tree.leaves(state) if leaf.ndim} == {2, 10}


def test_nothing_and_scalars_can_be_packed():
    optimizer = packing.Packed(optim.Adam(0.1))
    assert optimizer.step((), optimizer.init(()), ())[0] == ()
    weights = {"a": jnp.float32(1.0), "b": jnp.ones((2, 0)), "c": jnp.ones(3)}
    updates, _ = optimizer.step(weights, optimizer.init(weights), weights)
    assert_close(updates, jax.tree.map(lambda w: jnp.full_like(w, -0.1), weights))


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype float64")
def test_weights_of_numpy_are_packed_as_jax_takes_them():
    weights, optimizer = {"w": np.ones(3)}, packing.Packed(optim.SGD(0.1, momentum=0.9))
    state = optimizer.init(weights)
    for _ in range(2):
        updates, state = jax.jit(optimizer.step)({"w": np.ones(3)}, state, weights)
        weights = optim.apply_updates(weights, updates)
    np.testing.assert_allclose(weights["w"], 1 - 0.1 - 0.19, rtol=1e-6)


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="its compiler sees through the barrier")
def test_a_packed_step_has_one_loop_for_all_weights_of_a_size(optimized):
    """XLA compiles equal loops once, so compiling takes hardly longer for many weights."""

    def loops(number):
        weights, optimizer = [jnp.ones((3, 2)) for _ in range(number)], packing.Packed(optim.Adam(0.1))
        step = jax.jit(lambda weights, state: optimizer.step(weights, state, weights))
        text = step.lower(weights, optimizer.init(weights)).compile().as_text()
        bodies = re.findall(r"^%\S*computation.*?\n(.*?)^}", text, re.MULTILINE | re.DOTALL)
        bodies = [body for body in bodies if "dynamic-slice" in body]
        plain = [re.sub(r", metadata={.*?}|%[\w.-]+", "", body) for body in bodies]
        return len(plain), len(set(plain))

    assert loops(5) == (5, 1) and loops(50) == (50, 1)


def spread(tree):
    """The tree, cut over all devices."""
    mesh = jax.make_mesh((jax.device_count(),), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.device_put(tree, jax.NamedSharding(mesh, jax.P("model")))


def first_step(optimizer):
    return optimizer.step(WEIGHTS, optimizer.init(WEIGHTS), WEIGHTS)


CLIP = optim.ClipByGlobalNorm(1.0)
SGD = optim.SGD(0.1)
FLAT = {"w": jnp.ones(2)}
WRONG = {
    "RMSProp, NaN": (
        lambda: optim.RMSProp(np.nan),
        r"^RMSProp: learning_rate must be a finite number of at least 0",
    ),
    "RMSProp, decay of 1": (
        lambda: optim.RMSProp(0.1, decay=1),
        r"^RMSProp: decay must be a number of at least 0 and below 1, got 1",
    ),
    "RMSProp, no epsilon": (
        lambda: optim.RMSProp(0.1, epsilon=0),
        r"^RMSProp: epsilon must be a finite number above 0 \(.*\), got 0",
    ),
    "RMSProp, epsilon that is zero in float32": (
        lambda: optim.RMSProp(0.1, epsilon=1e-60),
        r"^RMSProp: epsilon must be a finite number above 0 \(.*\), got 1e-60",
    ),
    "RMSProp, epsilon that processors take for zero": (
        lambda: optim.RMSProp(0.1, epsilon=1e-40),
        r"^RMSProp: epsilon must be a finite number above 0 \(below 1.2e-38 float32 counts as 0\), got 1e-40",
    ),
    "Adagrad, negative": (lambda: optim.Adagrad(-0.1), r"^Adagrad: learning_rate must be .* got -0.1"),
    "Adagrad, negative sum": (
        lambda: optim.Adagrad(0.1, initial_sum=-1),
        r"^Adagrad: initial_sum must be a finite number of at least 0, got -1",
    ),
    "Adagrad, integers": (
        lambda: optim.Adagrad(0.1, sum_of_squares_dtype=int),
        r"^Adagrad: sum_of_squares_dtype must be a floating-point dtype, such as jnp.float32, got int",
    ),
    "Adam, infinite": (lambda: optim.Adam(np.inf), r"^Adam: learning_rate must be a finite number"),
    "Adam, too large for float32": (
        lambda: optim.Adam(1e39),
        r"^Adam: learning_rate must be a finite number",
    ),
    "Adam, decay that is 1 in float32": (
        lambda: optim.Adam(0.1, second_decay=1 - 1e-12),
        r"^Adam: second_decay must be a number of at least 0 and below 1, got 0.99",
    ),
    "Adam, a traced switch": (
        lambda: jax.jit(lambda nesterov: optim.Adam(0.1, nesterov=nesterov))(True),
        r"^Adam: nesterov must be True or False, not a traced value: it is static, so give it outside the jitted function, got",
    ),
    "Adam, a number for a switch": (
        lambda: optim.Adam(0.1, epsilon_inside=1),
        r"^Adam: epsilon_inside must be True or False, got 1",
    ),
    "Adam, a rate with axes under jit": (
        lambda: jax.jit(optim.Adam)(jnp.ones(2)),
        r"^Adam: learning_rate must be a finite number",
    ),
    "Adam, state of SGD": (
        lambda: optim.Adam(0.1).step(FLAT, SGD.init(FLAT), FLAT),
        r"^Adam: state must be what init returned, AdamState, got SGDState: init and step must be of the same optimizer",
    ),
    "SGD, a velocity without momentum": (
        lambda: optim.SGD(0.1).step(FLAT, optim.SGD(0.1, momentum=0.9).init(FLAT), FLAT),
        r"^SGD: state.velocity\['w'\] expects nothing, got \(2,\)",
    ),
    "RMSProp, a velocity without momentum": (
        lambda: optim.RMSProp(0.1).step(FLAT, optim.RMSProp(0.1, momentum=0.9).init(FLAT), FLAT),
        r"^RMSProp: state.velocity\['w'\] expects nothing, got \(2,\)",
    ),
    "RMSProp, momentum without a velocity": (
        lambda: optim.RMSProp(0.1, momentum=0.9).step(FLAT, optim.RMSProp(0.1).init(FLAT), FLAT),
        r"^RMSProp: state.velocity\['w'\] expects \(2,\), got nothing",
    ),
    "Adam, gradients in a list": (
        lambda: optim.Adam(0.1).step([jnp.ones(2)], optim.Adam(0.1).init((jnp.ones(2),)), (jnp.ones(2),)),
        r"^Adam: gradients expects the containers PyTreeDef\(\(\*,\)\), got PyTreeDef\(\[\*\]\): .*one model",
    ),
    "AdamW, negative decay": (
        lambda: optim.AdamW(0.1, weight_decay=-1),
        r"^AdamW: weight_decay must be a finite number of at least 0, .* got -1",
    ),
    "AdamW, a decay in the place of an option": (
        lambda: optim.AdamW(1e-3, 0.01),
        r"^AdamW: takes 1 positional, learning_rate, got \(0.001, 0.01\): write AdamW\(learning_rate, weight_decay=…\), and likewise where, ",
    ),
    "Adam, decaying weights without decay": (
        lambda: optim.Adam(0.1, where="*"),
        r"^Adam: where says which weights decay, so it needs a weight_decay, got None",
    ),
    "AdamW, a tree for a pattern": (
        lambda: optim.AdamW(0.1, where={"w": True}),
        r"^AdamW: where must be a pattern of paths, such as \"\*\['bias'\]\", or a function from a path to bool, got \{'w'",
    ),
    "AdamW, a part of a path": (
        lambda: optim.AdamW(0.1, where="w").init(WEIGHTS),
        r"^AdamW: where must choose at least one weight, but chose none of \d: their paths are \[0\]\['",
    ),
    "AdamW, a typo": (
        lambda: optim.AdamW(0.1, where=typo).init(WEIGHTS),
        r"^AdamW: where must choose at least one weight, but chose none of 3: "
        r"their paths are \[0\]\['bias'\], \[0\]\['kernel'\], \[2\]\[0\]\.",
    ),
    "Lion, a typo": (
        lambda: optim.Lion(0.1, weight_decay=0.1, where=typo).init(WEIGHTS),
        r"^Lion: where must choose at least one",
    ),
    "Lion, decay of 1": (
        lambda: optim.Lion(0.1, first_decay=1.0),
        r"^Lion: first_decay must be a number .* got 1.0",
    ),
    "Lion, state of Adam": (
        lambda: optim.Lion(0.1).step(FLAT, optim.Adam(0.1).init(FLAT), FLAT),
        r"^Lion: state must be what init returned, LionState, got AdamState",
    ),
    "ClipByGlobalNorm, 0": (
        lambda: optim.ClipByGlobalNorm(0),
        r"^ClipByGlobalNorm: maximum must be a finite number above 0 \(.*\), got 0",
    ),
    "ClipByGlobalNorm, negative": (
        lambda: optim.ClipByGlobalNorm(-1.0),
        r"^ClipByGlobalNorm: maximum must be",
    ),
    "ClipByGlobalNorm, other gradients": (
        lambda: CLIP.step({"v": jnp.ones(2)}, (), FLAT),
        r"^ClipByGlobalNorm: gradients\['w'\] expects \(2,\), got nothing",
    ),
    "ClipByValue, NaN": (lambda: optim.ClipByValue(np.nan), r"^ClipByValue: maximum must be .* got nan"),
    "ClipByValue, None": (lambda: optim.ClipByValue(None), r"^ClipByValue: maximum must be .* got None"),
    "ClipByValue, other gradients": (
        lambda: optim.ClipByValue(1.0).step({"w": jnp.ones(3)}, (), FLAT),
        r"^ClipByValue: gradients\['w'\] expects \(2,\), got \(3,\)",
    ),
    "WeightDecay, NaN": (lambda: optim.WeightDecay(np.nan), r"^WeightDecay: weight_decay must be .* got nan"),
    "WeightDecay, a typo": (
        lambda: optim.Chain(optim.WeightDecay(0.1, where=typo), SGD).init(WEIGHTS),
        r"^WeightDecay: where must choose at least one weight, but chose none of 3",
    ),
    "WeightDecay, a typo at the first step": (
        lambda: optim.WeightDecay(0.1, where=typo).step(WEIGHTS, (), WEIGHTS),
        r"^WeightDecay: where must choose",
    ),
    "WeightDecay, unhashable": (
        lambda: optim.WeightDecay(0.1, where=functools.partial(max, [1])),
        r"^WeightDecay: where must be hashable, because it is static under jax.jit; got",
    ),
    "Chain, empty": (lambda: optim.Chain(), r"^Chain: parts must hold exactly one optimizer.*, got \(\)"),
    "Chain, no optimizer": (lambda: optim.Chain(CLIP), r"^Chain: parts must hold exactly one optimizer"),
    "Chain, decay after the optimizer": (
        lambda: optim.Chain(CLIP, SGD, optim.WeightDecay(0.1)),
        r"^Chain: parts must hold WeightDecay before the optimizer: added to its updates, weights would grow\. For decoupled",
    ),
    "WeightDecay, a schedule": (
        lambda: optim.WeightDecay(optim.LinearDecay(0.1, steps=3)),
        r"^WeightDecay: weight_decay must be a finite number of at least 0 \(a schedule goes to the weight_decay of an optimizer\), got",
    ),
    "Chain, two optimizers": (
        lambda: optim.Chain(SGD, SGD),
        r"^Chain: parts must hold exactly one optimizer, which takes gradients and gives updates",
    ),
    "Chain, of Optax": (
        lambda: optim.Chain(optax.clip(1.0), SGD),
        r"^Chain: parts must be transformations and an optimizer, but number 0 is a GradientTransformation",
    ),
    "Chain, a name that nothing asks for": (
        lambda: optim.Chain(CLIP, optim.Accumulate(SGD, 2)).step(
            FLAT, optim.Chain(CLIP, optim.Accumulate(SGD, 2)).init(FLAT), FLAT, wieght=3
        ),
        r"^Chain: step takes weight besides, got wieght",
    ),
    "Freeze, an average inside": (
        lambda: optim.Freeze(optim.Chain(optim.ExponentialMovingAverage(SGD)), "['w']"),
        r"^Freeze: optimizer must not average the weights, .*: put ExponentialMovingAverage around it, got Chain",
    ),
    "Accumulate, 0": (
        lambda: optim.Accumulate(SGD, 0),
        r"^Accumulate: steps must be a whole number of at least 1, got 0",
    ),
    "Accumulate, half": (
        lambda: optim.Accumulate(SGD, 1.5),
        r"^Accumulate: steps must be a whole number .* got 1.5",
    ),
    "Accumulate, a transformation": (
        lambda: optim.Accumulate(CLIP, 2),
        r"^Accumulate: optimizer must be an optimizer of mlax_tutorial.optim, got ClipByGlobalNorm\(1.0\)",
    ),
    "ExponentialMovingAverage, 1": (
        lambda: optim.ExponentialMovingAverage(SGD, decay=1.0),
        r"^ExponentialMovingAverage: decay must be a number of at least 0 and below 1, got 1.0",
    ),
    "ExponentialMovingAverage, a number": (
        lambda: optim.ExponentialMovingAverage(0.1),
        r"^ExponentialMovingAverage: optimizer must be an optimizer of mlax_tutorial.optim, got 0.1",
    ),
    "ExponentialMovingAverage, the inner state": (
        lambda: optim.ExponentialMovingAverage(SGD).step(FLAT, SGD.init(FLAT), FLAT),
        r"^ExponentialMovingAverage: state must be what init returned, .* got SGDState",
    ),
    "MasterWeights, of Optax": (
        lambda: optim.MasterWeights(optax.sgd(0.1)),
        r"^MasterWeights: optimizer must be an",
    ),
    "MasterWeights, a class": (
        lambda: optim.MasterWeights(optim.SGD),
        r"^MasterWeights: optimizer must be an .* SGD",
    ),
    "MasterWeights, another's masters": (
        lambda: optim.MasterWeights(SGD).step(FLAT, optim.MasterWeights(SGD).init({"w": jnp.ones(3)}), FLAT),
        r"^MasterWeights: state.masters\['w'\] expects \(2,\), got \(3,\)",
    ),
    "Packed, by path": (
        lambda: packing.Packed(optim.Chain(CLIP, optim.AdamW(0.1, where=typo))),
        r"^Packed: optimizer must treat all weights alike, but AdamW does not: put Freeze.* got Chain",
    ),
    "Packed, frozen inside": (
        lambda: packing.Packed(optim.Accumulate(optim.Freeze(SGD, typo), 2)),
        r"^Packed: optimizer must treat all weights alike, but Freeze does not",
    ),
    "Packed, of Optax": (
        lambda: packing.Packed(optax.sgd(0.1)),
        r"^Packed: optimizer must be an optimizer of",
    ),
    "Packed, another's state": (
        lambda: packing.Packed(SGD).step(FLAT, SGD.init(FLAT), FLAT),
        r"^Packed: state must be what init returned, PackedState, got SGDState",
    ),
    "Packed, sharded": (
        lambda: packing.Packed(SGD).init(spread(FLAT)),
        r"^Packed: trainables\['w'\] expects to lie whole on each device, got NamedSharding.*without Packed",
    ),
    "Packed, sharded in the meantime": (
        lambda: packing.Packed(SGD).step(spread(FLAT), packing.Packed(SGD).init(FLAT), spread(FLAT)),
        r"^Packed: trainables\['w'\] expects to lie whole on each device",
    ),
    "Freeze, a typo": (
        lambda: optim.Freeze(SGD, typo).init(WEIGHTS),
        r"^Freeze: where must choose at least one weight",
    ),
    "Freeze, all": (
        lambda: optim.Freeze(SGD, "*").init(WEIGHTS),
        r"^Freeze: where must leave at least one weight to train, but chose all 3",
    ),
    "Freeze, nothing": (
        lambda: optim.Freeze(SGD, None),
        r"^Freeze: where must be a pattern of paths, .*, got None",
    ),
    "Freeze, another's state": (
        lambda: optim.Freeze(SGD, lambda path: "bias" in path).step(WEIGHTS, SGD.init(WEIGHTS), WEIGHTS),
        r"^Freeze: state must be what init returned, FreezeState, got SGDState",
    ),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=list(WRONG))
def test_wrong_uses(wrong, message):
    with pytest.raises(optim.OptimizerError, match=message):
        wrong()


@pytest.mark.parametrize(
    "make",
    [
        lambda where: optim.AdamW(0.1, weight_decay=0.5, where=where),
        lambda where: optim.Lion(0.1, weight_decay=0.5, where=where),
        lambda where: optim.Chain(optim.WeightDecay(0.5, where=where), SGD),
        lambda where: optim.Freeze(SGD, where),
    ],
    ids=["AdamW", "Lion", "WeightDecay", "Freeze"],
)
def test_patterns_choose_as_functions_do(make):
    weights = [{"kernel": jnp.ones(3), "bias": jnp.ones(2)}, {"kernel": jnp.ones(2)}]
    results = []
    for where in ("*['kernel']", lambda path: "kernel" in path, lambda path: "bias" in path):
        optimizer = make(where)
        updates, _ = optimizer.step(weights, optimizer.init(weights), weights)
        results.append(jax.tree.map(np.asarray, updates))
    jax.tree.map(np.testing.assert_array_equal, results[0], results[1])
    assert not (results[0][0]["bias"] == results[2][0]["bias"]).all()
