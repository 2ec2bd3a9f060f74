"""Attention rollout: how much of each input stands in each output."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(weights):
    length = weights.shape[-1]
    total = jnp.eye(length)
    for layer in weights.mean(axis=1):
        total = (layer + jnp.eye(length)) / 2 @ total
    return total


def _by_hand(weights, *, around=True, order=1, last=False, maximum=False):
    mean = weights.max(axis=1) if maximum else weights.mean(axis=1)
    eye = np.eye(weights.shape[-1], dtype=weights.dtype)
    total = eye
    for layer in mean[::order]:
        total = ((layer + eye) / 2 if around else layer) @ total
    return total


def check(rollout):
    random = np.random.default_rng(0)
    raw = random.random((3, 2, 5, 5)).astype(np.float32) ** 3
    weights = raw / raw.sum(axis=-1, keepdims=True)
    expected = _by_hand(weights)
    got = rollout(jnp.asarray(weights))
    mean, eye = weights.mean(axis=1), np.eye(5, dtype=np.float32)
    doubled = eye
    for layer in mean:
        doubled = (layer + eye) @ doubled
    shown = {
        "input": {"weights": "(3, 2, 5, 5): three layers of two heads"},
        "expected": expected,
        "got": got,
    }
    for wrong, said in [
        (_by_hand(weights, around=False), "The way around attention is missing: half of each output is the input itself, so add the identity and halve."),
        (doubled, "The rows do not sum to 1: the identity and the weights count one half each."),
        (_by_hand(weights, order=-1), "The order is reversed: the last layer stands on the left of the product, since it acts last."),
        (_by_hand(weights, maximum=True), "This takes the largest weight of the heads: the mean is asked for."),
        (_by_hand(weights).T, "This is transposed: rows are outputs, columns inputs."),
        ((mean[-1] + eye) / 2, "This is the last layer alone."),
        (((mean + eye) / 2).mean(axis=0), "This is the mean of the layers: multiply them, each works on what the one before gave."),
        (_by_hand(weights.transpose(1, 0, 2, 3)), "The mean is over layers, and the product over heads: the first axis is the layers."),
    ]:  # fmt: skip
        if np.shape(got) == wrong.shape and np.allclose(got, wrong, atol=1e-5):
            raise Failed(said, **shown)
    if np.shape(got) == (2, 5, 5):
        raise Failed(
            "One matrix is asked for, of shape (length, length): take the mean over the heads first.", **shown
        )
    checks.same(got, jnp.asarray(expected), input={"weights": "(3, 2, 5, 5)"}, rtol=1e-4, atol=1e-5)
    checks.works_under_jit(rollout, jnp.asarray(weights[:1, :, :4, :4]))  # another length
    sums = np.asarray(jax.jit(rollout)(jnp.asarray(weights))).sum(axis=-1)
    if not np.allclose(sums, 1, atol=1e-4):
        raise Failed("Under `jax.jit` the rows do not sum to 1.", got=sums)


exercise = Exercise(
    title="Attention rollout",
    stars=2,
    minutes=10,
    why="A map of one layer says where it looked; the product says how much of each input may have arrived.",
    hints=(
        "First the mean over the heads, axis 1. Then each layer is a matrix: half itself, half the identity.",
        "Start from `jnp.eye(length)` and go through the layers in order: `total = (layer + eye) / 2 @ total`.",
    ),
    solution=solution,
    check=check,
)
