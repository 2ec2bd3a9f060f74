"""A mask that decides a shape."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks, inputs
from mlax_tutorial.checking.programs import fresh, under


def solution(x):
    positive = x > 0
    total = jnp.sum(jnp.where(positive, x, 0.0))
    return total / jnp.maximum(jnp.sum(positive), 1)


def check(mean_of_positive):
    recognise = [
        (
            lambda x: jnp.mean(jnp.where(x > 0, x, 0.0)),
            "This divides by the number of all elements. Only the positive ones count.",
        ),
        (
            lambda x: jnp.sum(jnp.where(x > 0, x, 0.0)) / jnp.maximum(jnp.sum(x >= 0), 1),
            "A zero is not positive: it must not be counted.",
        ),
        (
            lambda x: x[jnp.nonzero(x > 0, size=x.size)[0]].mean(),
            "The missing indices are filled up with 0, so that the first element counts again and again.",
        ),
        (lambda x: jnp.sum(jnp.where(x > 0, x, 0.0)), "This is the sum; the mean is asked for."),
    ]
    mixed, none, wild, large = jax.device_put(
        [
            np.float32(entries)
            for entries in (
                [1.0, -2.0, 4.0, 0.0, 1.0],
                [-1.0, 0.0, -3.0, -2.0, 0.0],
                [np.nan, 2.0, -np.inf, 5.0, 0.0],
                [np.inf, 1.0, -1.0, 2.0, 0.0],
            )
        ]
    )
    jitted = jax.jit(fresh(mean_of_positive))
    with under("`jax.jit`"):
        jitted(mixed)
    for x, advice in (
        (mixed, ""),
        (
            jax.device_put(np.float32([[1.0, -2.0], [4.0, 3.0]])),
            "This is right for a vector, but not for a table: the mean is over all axes.",
        ),
        (none, "This is right, but not where nothing is positive: there the mean is 0."),
        (
            wild,
            "This is right, but not beside an infinity or a NaN: one gets through here. (Times zero it is NaN, and the maximum "
            "of NaN and zero is NaN.) Choose by `jnp.where` instead.",
        ),
        (large, "This is right for finite numbers. But infinity is positive, and counts."),
    ):
        if advice:
            with checks.says(advice):
                checks.same(mean_of_positive(x), solution(x), input={"x": x})
        else:
            checks.values(mean_of_positive, solution, examples=[(x,)], recognise=recognise)
    with jax.disable_jit():  # XLA may make a choice of a product with a mask; nobody should rest on that
        with checks.says(
            "This is right only if the compiler is kind: written out, an infinity or a NaN times zero is NaN. Choose by "
            "`jnp.where` instead."
        ):
            checks.same(mean_of_positive(wild), solution(wild), input={"x": wild})
    values = inputs.arrays("n", sizes=(1, 3, 5), special=(np.nan, -np.inf))
    right = jax.jit(solution)
    checks.values(jitted, right, values, recognise=recognise)
    for x in (mixed, none, wild):
        checks.same(jitted(x), right(x), where="under `jax.jit`", input={"x": x})
    for x in (none, wild):
        checks.gradients(jitted, solution, x, finite_differences=False, jit=True)
    checks.works_under_vmap(jitted, jax.device_put(np.stack([mixed, none, -np.asarray(none)])))


exercise = Exercise(
    title="A mask that decides a shape",
    stars=2,
    minutes=10,
    why="Most masks in JAX are written so: choose with a neutral element, and count the mask.",
    hints=(
        "A sum over the positive elements is a sum over all, with 0 in place of the others.",
        "How many there are is the sum of the mask. What if that is 0?",
        "Divide by `jnp.maximum(count, 1)`.",
    ),
    solution=solution,
    check=check,
)
