"""Answers to the exercise compiling.compact."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.compiling.compact import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("is a `return` missing")
def nothing(x, size):
    jnp.flatnonzero(x > 0, size=size)


@answers.wrong("Return a pair")
def values_only(x, size):
    return solution(x, size)[0]


@answers.wrong("gives the last element")
def last_element(x, size):
    places = jnp.flatnonzero(x > 0, size=size, fill_value=-1)
    return x[places], jnp.sum(x > 0)


@answers.wrong("is taken for positive")
def zeros_too(x, size):
    places = jnp.flatnonzero(x >= 0, size=size, fill_value=len(x))
    return jnp.pad(x, (0, 1))[places], jnp.sum(x >= 0)


@answers.wrong()
def another_element(x, size):
    values, count = solution(x, size)
    return values.at[0].add(1), count


@answers.wrong("another order")
def in_order_of_size(x, size):
    values, count = solution(x, size)
    return jnp.sort(values)[::-1], count


@answers.wrong("those that are dropped, too")
def clipped_count(x, size):
    values, count = solution(x, size)
    return values, jnp.minimum(count, size)


@answers.wrong("The shape is wrong")
def in_place(x, size):
    return jnp.where(x > 0, x, 0), jnp.sum(x > 0)


@answers.wrong("should be an integer array")
def float_count(x, size):
    return solution(x, size)[0], jnp.sum(jnp.where(x > 0, 1.0, 0.0))


@answers.wrong()
def by_a_boolean(x, size):  # not under jit
    found = x[x > 0][:size]
    return jnp.zeros(size, x.dtype).at[: len(found)].set(found), jnp.sum(x > 0)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_a_scatter(x, size):
    places = jnp.cumsum(x > 0) - 1
    places = jnp.where(x > 0, places, size)  # beyond the end: dropped
    return jnp.zeros(size, x.dtype).at[places].set(x, mode="drop"), jnp.count_nonzero(x > 0)


@answers.right
def by_filling(x, size):
    places = jnp.nonzero(x > 0, size=size, fill_value=len(x))[0]
    return x.at[places].get(mode="fill", fill_value=0), (x > 0).sum()


@answers.right
def by_sorting(x, size):
    order = jnp.argsort(jnp.where(x > 0, 0, 1), stable=True)
    padded = jnp.pad(jnp.where(x > 0, x, 0)[order], (0, size))
    return padded[:size], jax.lax.convert_element_type(x > 0, "int32").sum()


@answers.wrong()
def always_float32(x, size):
    values, count = solution(x, size)
    return values.astype(jnp.float32), count


@answers.wrong()
def not_zero(x, size):
    return solution(jnp.abs(x), size)
