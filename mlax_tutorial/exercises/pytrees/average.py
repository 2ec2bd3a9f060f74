"""A moving average of a tree."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.exercises.pytrees._trees import Box, Point


def solution(old, params, decay):
    def one(old, new):
        if not jnp.issubdtype(old.dtype, jnp.floating):
            return new
        mean = decay * old + (1 - decay) * new.astype(old.dtype)
        return mean.astype(old.dtype)

    return jax.tree.map(one, old, params)


def average_with(one):
    """A moving average of which one leaf is computed by ``one``."""
    return lambda old, params, decay: jax.tree.map(lambda a, b: one(a, b, decay), old, params)


def floating(one):
    """As ``one`` where a leaf is floating, else the new leaf."""
    return lambda a, b, d: one(a, b, d) if jnp.issubdtype(a.dtype, jnp.floating) else b


def mean(a, b, d):
    return (d * a + (1 - d) * b.astype(a.dtype)).astype(a.dtype)


swapped = average_with(floating(lambda a, b, d: mean(b.astype(a.dtype), a, d)))


average_sum = average_with(floating(lambda a, b, d: (d * a + b.astype(a.dtype)).astype(a.dtype)))


average_all = average_with(lambda a, b, d: mean(a, b, d).astype(a.dtype))


rounded = average_with(floating(lambda a, b, d: (d * a + (1 - d) * b).astype(a.dtype)))


in_new = average_with(floating(lambda a, b, d: mean(a.astype(b.dtype), b, d)))


promoted = average_with(floating(lambda a, b, d: d * a + (1 - d) * b.astype(a.dtype)))


keeps_counts = average_with(lambda a, b, d: mean(a, b, d) if jnp.issubdtype(a.dtype, jnp.floating) else a)


def _array(values, dtype=np.float32):
    return jax.device_put(np.array(values, dtype))


def check(average):
    old = {"w": _array([1, 2, -4]), "b": _array(8)}
    params = {"w": _array([3, 6, 4]), "b": _array(0)}
    recognise = [
        (swapped, "The weights are the wrong way round: `decay` belongs to the old average."),
        (average_sum, "The new parameters get the weight `1 - decay`; here they are added whole."),
        (lambda old, params, decay: params, "You return the parameters themselves."),
        (lambda old, params, decay: old, "You return the old average as it is."),
        (
            lambda old, params, decay: jax.tree.leaves(solution(old, params, decay)),
            "These are the right leaves, but the tree is gone: `jax.tree.map` returns a tree.",
        ),
    ]
    checks.values(average, solution, examples=[(old, params, 0.75)], recognise=recognise)

    checks.pure(average, old, params, 0.5)
    checks.traces(average, (old, params, 0.9), (params, old, 0.5), (old, params, 0.0), exactly=1)

    nested_old = {
        "layers": [old, Point(_array([1, 1, 1]), None)],
        "extra": (),
        "head": (_array([[0, 0], [0, 0]]),),
    }
    nested_new = {
        "layers": [params, Point(_array([0, 0, 0]), None)],
        "extra": (),
        "head": (_array([[1, 1], [1, 1]]),),
    }
    advice = "Trees may be of any kind and depth: `jax.tree.map` takes both and goes through their leaves together."
    _advised(average, (nested_old, nested_new, 0.25), advice)
    for wrap in (
        lambda tree: [tree],
        Box,
        lambda tree: tree["w"],
    ):  # at the top no dict, or no container at all
        _advised(average, (wrap(old), wrap(params), 0.25), advice)

    half = {"w": _array([3.015625, 1.0078125, 0], jnp.bfloat16)}
    recognise = [
        (
            rounded,
            "A product of bfloat16 is rounded to bfloat16 before it is added: give the parameters the dtype of the "
            "average first.",
        ),
        (in_new, "The average is kept in float32, so that small steps are not lost: keep its dtype."),
        (lambda old, new, d: jax.tree.map(lambda a, b: mean(a.astype(b.dtype), b, d).astype(a.dtype), old, new),
         "The average goes through bfloat16 here, and loses digits: compute in the dtype of `old`."),
    ]  # fmt: skip
    fine = {"w": _array([2.501, -7.003, 0])}
    checks.values(average, solution, examples=[(fine, half, 0.25)], recognise=recognise)
    advice = "`decay` is rounded to bfloat16 here, where 0.999 is 1: give it the dtype of `old`, or leave it as it is."
    _advised(average, (fine, half, 0.3), advice)

    steps = {"w": _array([1, 1, 1]), "step": _array(3, np.int32), "seen": _array([True, False], bool)}
    more = {"w": _array([2, 2, 2]), "step": _array(4, np.int32), "seen": _array([True, True], bool)}
    recognise = [
        (average_all, "A counter of steps has no average: leaves that are not floating come from `params`."),
        (
            average_with(lambda a, b, d: d * a + (1 - d) * b),
            "A counter of steps has no average, and here it even becomes floating: take such leaves from `params`.",
        ),
        (keeps_counts, "Leaves that are not floating come from `params`, not from `old`."),
    ]
    checks.values(average, solution, examples=[(steps, more, 0.5)], recognise=recognise)

    integers = {"ids": _array([2, 6], jnp.uint8), "seen": _array([True, False], bool)}
    others = {"ids": _array([4, 4], jnp.uint8), "seen": _array([False, True], bool)}
    advice = "Integers of every size and booleans are not floating: ask `jnp.issubdtype(leaf.dtype, jnp.floating)`."
    _advised(average, (integers, others, 0.5), advice)
    float16 = {"w": _array([1.0, 2.0], jnp.float16)}, {"w": _array([2.0, 4.0], jnp.float16)}
    advice = "float16 is floating, too: ask `jnp.issubdtype(leaf.dtype, jnp.floating)`."
    _advised(average, (*float16, 0.5), advice)
    coarse = {"w": _array([1.0, 2.0], jnp.bfloat16)}, {"w": _array([2.0, 4.0], jnp.bfloat16)}
    recognise = [
        (
            promoted,
            "The average is in bfloat16, `decay` is a float32 array, and their product is float32: cast the "
            "result back to the dtype of `old`.",
        )
    ]
    examples = [(*coarse, _array(0.5))]
    checks.values(average, solution, examples=examples, recognise=recognise)

    _advised(average, (old, params, 0.0), "With `decay` 0 the average is the parameters.")
    _advised(average, (old, params, 1.0), "With `decay` 1 the average stays as it is.")
    checks.works_under_jit(average, old, params, 0.5)


def _advised(function, arguments, advice, reference=None):
    with checks.says(advice):
        checks.values(function, reference or solution, examples=[arguments])


exercise = Exercise(
    title="A moving average of a tree",
    stars=2,
    minutes=10,
    why="The function never names a layer: it works for any model, and that is what trees are for.",
    hints=(
        "`jax.tree.map(one, old, params)` calls `one` with the two leaves that stand at the same place.",
        "Inside, `jnp.issubdtype(leaf.dtype, jnp.floating)` may ask about the dtype: it is known while tracing.",
        "Give the new leaf the dtype of the old one before you multiply it, and cast the result once more.",
    ),
    solution=solution,
    check=check,
)  # fmt: skip
