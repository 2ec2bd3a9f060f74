"""Groups, averages that are corrected or scheduled, schedules of Optax, what decays: values against others, and wrong uses."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim, packing
from mlax_tutorial.nn.paths import flatten
from tests.laws.rows import LAYERS

RNG = np.random.default_rng(0)
WEIGHTS = {"body": {"kernel": jnp.ones((3, 2)), "bias": jnp.ones(2)}, "head": {"kernel": jnp.ones((2, 2))}}
GRADIENTS = [
    jax.tree.map(lambda w: jnp.asarray(RNG.normal(size=w.shape), w.dtype), WEIGHTS) for _ in range(9)
]
SGD = optim.SGD(0.1)


def history(optimizer):
    """The weights and the states after each step."""
    weights, state, found = WEIGHTS, optimizer.init(WEIGHTS), []
    step = jax.jit(optimizer.step)
    for gradients in GRADIENTS:
        updates, state = step(gradients, state, weights)
        weights = optim.apply_updates(weights, updates)
        found.append((weights, state))
    return found


def assert_close(first, second):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), first, second)


def test_each_group_is_trained_by_its_own_optimizer_alone():
    clipped = optim.Chain(optim.ClipByGlobalNorm(0.1), optim.Adam(optim.LinearDecay(0.5, 9)))
    groups = optim.Groups({"['head']*": clipped, lambda path: "body" in path: optim.SGD(0.1, momentum=0.9)})
    weights, state = history(groups)[-1]
    for name, alone, inner in (
        ("head", clipped, state.inner[0]),
        ("body", groups.optimizers[1], state.inner[1]),
    ):
        part, its_state = WEIGHTS[name], alone.init(WEIGHTS[name])
        for gradients in GRADIENTS:
            updates, its_state = alone.step(gradients[name], its_state, part)
            part = optim.apply_updates(part, updates)
        assert_close(weights[name], part)
        assert_close(jax.tree.leaves(inner), jax.tree.leaves(its_state))
    assert state.inner[1].velocity["head"]["kernel"] == ()


def test_groups_nest_and_freeze():
    groups = optim.Groups({"*['kernel']": optim.SGD(1.0), "*['bias']": optim.SGD(0.5)})
    updates, _ = (frozen := optim.Freeze(groups, "['head']*")).step(WEIGHTS, frozen.init(WEIGHTS), WEIGHTS)
    assert (updates["head"]["kernel"] == 0).all() and (updates["body"]["bias"] == -0.5).all()
    assert (updates["body"]["kernel"] == -1).all()
    used = frozen.used(WEIGHTS)
    assert sum(leaf.size for leaf in jax.tree.leaves(used)) == 8


def test_a_corrected_average_equals_optax():
    average = optax.ema(0.7, debias=True)
    expected, ema = average.init(WEIGHTS), None
    for weights, state in history(optim.ExponentialMovingAverage(SGD, decay=0.7, bias_correction=True)):
        with jax.numpy_dtype_promotion("standard"):
            ema, expected = average.update(weights, expected)
        assert_close(state.average, ema)
    first_weights, first = history(optim.ExponentialMovingAverage(SGD, decay=0.999, bias_correction=True))[0]
    assert_close(first.average, first_weights)


@pytest.mark.parametrize("ours", [False, True], ids=["a function", "a schedule"])
def test_a_scheduled_decay(ours):
    schedule = (
        optim.LinearDecay(0.8, 4) if ours else lambda count: jnp.minimum(0.9, (1 + count) / (10 + count))
    )
    average = WEIGHTS
    for count, (weights, state) in enumerate(history(optim.ExponentialMovingAverage(SGD, decay=schedule))):
        kept = float(schedule(jnp.int32(count)))
        average = jax.tree.map(lambda a, w, kept=kept: kept * a + (1 - kept) * w, average, weights)
        assert_close(state.average, average)


def test_a_function_of_the_count_is_a_learning_rate():
    schedule, traces = optax.warmup_cosine_decay_schedule(0.0, 0.5, 3, 9), []
    theirs, weights = optax.sgd(schedule), WEIGHTS
    state = theirs.init(weights)
    for gradients, (ours, _) in zip(GRADIENTS, history(optim.SGD(schedule))):
        with jax.numpy_dtype_promotion("standard"):  # Optax is not written for strict promotion
            updates, state = theirs.update(gradients, state, weights)
            weights = optax.apply_updates(weights, updates)
        assert_close(ours, weights)

    @jax.jit
    def step(optimizer, state):
        traces.append(1)
        return optimizer.step(WEIGHTS, state, WEIGHTS)

    for momentum in (0.1, 0.2):
        optimizer = optim.SGD(schedule, momentum=momentum)
        step(optimizer, optimizer.init(WEIGHTS))
    assert len(traces) == 1


# All weights that enter a product; a new layer's join this list, or do not decay.
PRODUCTS = {
    "kernel",
    "input_kernel",
    "recurrent_kernel",
    "query_kernel",
    "key_kernel",
    "value_kernel",
    "out_kernel",
}


def test_which_weights_of_all_layers_are_kernels():
    names = {True: set(), False: set()}
    for row in LAYERS:
        dtype = jnp.float32 if row.ids is None else jnp.int32
        x = jax.ShapeDtypeStruct((2, *row.shape), dtype)
        trainables, _ = jax.eval_shape(row.layer.init, jax.random.key(0), x)
        for path, leaf in zip(*flatten(trainables)[:2]):
            chosen = optim.kernels(path)
            names[chosen].add(re.findall(r"'(\w+)'\]$", path)[-1])
            assert not chosen or leaf.ndim > 1
    assert names[True] == PRODUCTS and not names[False] & PRODUCTS
    assert {"bias", "scale", "embed", "recurrent_bias"} <= names[False]


def test_kernels_decay_and_the_rest_does_not():
    model, ids = (
        nn.Series(nn.Embed(5, 4), nn.MultiHeadAttention(2, use_bias=True), nn.LayerNorm()),
        jnp.arange(3),
    )
    trainables, _ = model.init(jax.random.key(0), ids)
    optimizer = optim.AdamW(0.1, weight_decay=0.5, where=optim.kernels)
    nothing = jax.tree.map(jnp.zeros_like, trainables)
    updates, _ = optimizer.step(nothing, optimizer.init(trainables), trainables)
    for path, update, weight in zip(*flatten(updates)[:2], jax.tree.leaves(trainables)):
        decays = path.startswith("[1]") and "bias" not in path
        wanted = -0.05 * weight if decays else 0 * weight
        np.testing.assert_allclose(update, wanted, rtol=1e-6, err_msg=path)


def test_parts_of_a_chain_and_groups_can_be_replaced():
    clip = optim.ClipByGlobalNorm(1.0)
    chain = dataclasses.replace(optim.Chain(clip, SGD), parts=(clip, optim.Adam(0.1)))
    assert repr(chain) == "Chain(ClipByGlobalNorm(1.0), Adam(0.1))"
    groups = optim.Groups({"['body']*": SGD, "['head']*": SGD})
    other = dataclasses.replace(groups, optimizers=(SGD, optim.SGD(0.3)))
    assert jax.tree.structure(other) == jax.tree.structure(groups) and other.optimizers[
        1
    ].learning_rate == np.float32(0.3)
    assert repr(other) == "Groups({\"['body']*\": SGD(0.1), \"['head']*\": SGD(0.3)})"


def test_what_comes_after_accumulation_in_a_chain_waits_as_it_does():
    halved, ones = optim.StepDecay(1.0, every=1, factor=0.5), {"w": jnp.ones(())}
    collected = optim.Accumulate(SGD, 2)
    for optimizer in (
        optim.Chain(collected, optim.Scale(halved)),
        optim.Chain(collected, optim.ScaleByTrustRatio(), optim.Scale(halved)),
    ):
        state, moved = optimizer.init(ones), []
        for _ in range(4):
            updates, state = optimizer.step(ones, state, ones)
            moved.append(float(updates["w"]))
        assert moved[0] == moved[2] == 0 and moved[3] == moved[1] / 2 != 0


def test_a_decay_of_zero_has_a_derivative():
    """One step of Adam does not depend on its decays: m / (1 - b) is g."""
    weights, gradients = {"w": jnp.ones(())}, {"w": jnp.float32(3.0)}

    def update(optimizer):
        return optimizer.step(gradients, optimizer.init(weights), weights)[0]["w"]

    for decay in (0.0, 0.5):
        slopes = jax.grad(update)(optim.Adam(0.1, first_decay=decay, second_decay=decay))
        np.testing.assert_allclose([slopes.first_decay, slopes.second_decay], 0, atol=1e-6)


WRONG = {
    "groups in a list": (lambda: optim.Groups([SGD]), r"^Groups: groups must be a dict from patterns to optimizers, got \["),
    "a scale after copies of the weights": (
        lambda: optim.Chain(optim.MasterWeights(SGD), optim.Scale(0.1)),
        r"^Chain: parts MasterWeights holds what the weights will be, and Scale.* would change its updates: put MasterWeights around",
    ),
    "a scale after an average, inside": (
        lambda: optim.Chain(optim.Accumulate(optim.ExponentialMovingAverage(SGD), 2), optim.Scale(0.1)),
        r"ExponentialMovingAverage holds what the weights will be",
    ),
    "no groups": (lambda: optim.Groups({}), r"^Groups: groups must be a dict from patterns to optimizers, got \{\}"),
    "a group of Optax": (
        lambda: optim.Groups({"*": optax.sgd(0.1)}),
        r"^Groups: optimizers must be an optimizer of mlax_tutorial.optim",
    ),
    "a number for a pattern": (lambda: optim.Groups({3: SGD}), r"^Groups: patterns must be a pattern of paths"),
    "a weight in no group": (
        lambda: optim.Groups({"['body']*": SGD}).init(WEIGHTS),
        r"^Groups: trainables\['head'\]\['kernel'\] must be chosen by exactly one pattern, but 0 of .* choose it",
    ),
    "a weight in two groups": (
        lambda: optim.Groups({"*": SGD, "['head']*": SGD}).init(WEIGHTS),
        r"^Groups: trainables\['head'\]\['kernel'\] must be chosen by exactly one pattern, but 2 of .* choose it",
    ),
    "an index that counts in layers of different kinds": (
        lambda: optim.AdamW(0.1, where="*[1]['kernel']").init([WEIGHTS["body"], {"kernel": jnp.ones(2), "mlp": [WEIGHTS["head"]] * 2}]),
        r"^AdamW: where, \"\*\[1\]\['kernel'\]\", fits layers of different kinds, \[1\]\['kernel'\] and \[1\]\['mlp'\]\[1\]\['kernel'\]: "
        r"write \[1\]\['kernel'\] or \[\*\]\['mlp'\]\[1\]\['kernel'\]\.$",
    ),
    "a group of nothing": (
        lambda: optim.Groups({"*": SGD, "['tail']*": SGD}).init(WEIGHTS),
        r"^Groups: where must choose at least one weight, but chose none of 3",
    ),
    "packed groups": (
        lambda: packing.Packed(optim.Groups({"*": SGD})),
        r"^Packed: optimizer must treat all weights alike, but Groups does not",
    ),
    "a corrected schedule": (
        lambda: optim.ExponentialMovingAverage(SGD, decay=optim.StepDecay(0.9, 3), bias_correction=True),
        r"^ExponentialMovingAverage: bias_correction is for a constant decay, got a schedule",
    ),
    "a switch that is a number": (
        lambda: optim.ExponentialMovingAverage(SGD, decay=0.9, bias_correction=1),
        r"^ExponentialMovingAverage: bias_correction must be True or False, got 1",
    ),
    "a chain by name and without an optimizer": (
        lambda: dataclasses.replace(optim.Chain(SGD), parts=()),
        r"^Chain: parts must hold exactly one optimizer",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_wrong_uses(wrong, message):
    with pytest.raises(optim.OptimizerError, match=message):
        wrong()
