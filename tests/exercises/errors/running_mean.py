"""Answers to the exercise errors.running_mean."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.errors.running_mean import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("carry input and carry output must have equal types")
def broken(x):
    def step(carry, row):
        total, count = carry
        total, count = total + row, count + 1
        return (total, count), total / count

    return lax.scan(step, (jnp.zeros(()), 0), x)[1]


@answers.wrong("not for float16")
def float32(x):
    def step(carry, row):
        total, count = carry
        total, count = total + row, count + 1
        return (total, count), total / count

    return lax.scan(step, (jnp.zeros(x.shape[1]), 0), x)[1]


@answers.wrong("grows with the number of rows")
def unrolled(x):
    total, means = jnp.zeros_like(x[0]), []
    for i in range(len(x)):
        total = total + x[i]
        means.append(total / (i + 1))
    return jnp.stack(means)


@answers.wrong("divided by the number of all rows")
def of_all(x):
    return jnp.cumsum(x, axis=0) / len(x)


@answers.wrong("one too large")
def counts_from_one(x):
    def step(carry, row):
        total, count = carry
        total, count = total + row, count + 1
        return (total, count), total / count

    return lax.scan(step, (jnp.zeros_like(x[0]), 1), x)[1]


@answers.wrong("The total is not handed on")
def forgets(x):
    def step(carry, row):
        total, count = carry
        count = count + 1
        return (total, count), (total + row) / count

    return lax.scan(step, (jnp.zeros_like(x[0]), 0), x)[1]


@answers.wrong("NumPy's functions compute")
def numpy(x):
    return np.add.accumulate(x) / np.arange(1, len(x) + 1, dtype=np.float32)[:, None]


@answers.wrong("The shape is wrong")
def last(x):
    return x.mean(axis=0)


answers.wrong("These are the sums")(lambda x: jnp.cumsum(x, axis=0))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def sums_and_counts(x):
    return jnp.cumsum(x, axis=0) / jnp.arange(1, len(x) + 1, dtype=x.dtype)[:, None]


@answers.right
def numpy_hands_over_to_jax(x):
    return np.cumsum(x, axis=0) / jnp.arange(1, len(x) + 1)[:, None].astype(x.dtype)


@answers.right
def count_from_outside(x):
    def step(total, pair):
        row, count = pair
        total = total + row
        return total, total / count

    return lax.scan(step, jnp.zeros_like(x[0]), (x, jnp.arange(1, len(x) + 1)))[1]


@answers.right
@jax.jit
def by_a_tree(x):
    total, count = lax.associative_scan(
        lambda a, b: (a[0] + b[0], a[1] + b[1]), (x, jnp.ones((len(x), 1), x.dtype))
    )
    return total / count


@answers.wrong("not for float16")
def always_float32(x):
    return jnp.cumsum(x.astype(jnp.float32), axis=0) / jnp.arange(1, len(x) + 1)[:, None]


@answers.wrong()
def written_out_in_slices(x):
    return jnp.stack([x[: i + 1].mean(axis=0) for i in range(len(x))])
