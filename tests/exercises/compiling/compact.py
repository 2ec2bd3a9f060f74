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


@answers.wrong("do not multiply by a mask")
def by_a_product(x, size):  # infinity times 0 is NaN, though under jit XLA makes a choice of this product
    count = jnp.sum(x > 0)
    mask = (jnp.arange(size) < count).astype(x.dtype)
    return x[jnp.flatnonzero(x > 0, size=size)] * mask, count


@answers.wrong("do not multiply by a mask")
def by_a_product_of_numbers(x, size):
    count = jnp.sum(x > 0)
    mask = jnp.where(jnp.arange(size) < count, 1, 0).astype(x.dtype)
    return x[jnp.flatnonzero(x > 0, size=size)] * mask, count


@answers.wrong("do not multiply by a mask")
def sorted_products(x, size):
    order = jnp.argsort(~(x > 0), stable=True)
    mask = (x > 0).astype(x.dtype)
    return jnp.pad((x * mask)[order], (0, size))[:size], jnp.sum(x > 0)


@answers.wrong("do not multiply by a mask")
def by_a_matrix(x, size):
    places = jnp.cumsum(x > 0) - 1
    chosen = (places == jnp.arange(size)[:, None]) & (x > 0)
    return (chosen.astype(x.dtype) @ x).astype(x.dtype), jnp.sum(x > 0)


@answers.wrong("NaN is no positive number")
def not_negative(x, size):
    places = jnp.flatnonzero(~(x <= 0), size=size, fill_value=len(x))
    return x.at[places].get(mode="fill", fill_value=0), jnp.sum(~(x <= 0))


@answers.wrong("Infinity is positive")
def finite_ones(x, size):
    found = (x > 0) & jnp.isfinite(x)
    places = jnp.flatnonzero(found, size=size, fill_value=len(x))
    return x.at[places].get(mode="fill", fill_value=0), jnp.sum(found)


@answers.wrong()
def without_nan(x, size):
    values, count = solution(x, size)
    return jnp.nan_to_num(values), count


@answers.wrong("those that are dropped, too")
def clipped_without_jit(x, size):
    values, count = solution(x, size)
    if not isinstance(count, jax.core.Tracer) and count > size:
        count = jnp.int32(size)
    return values, count


@answers.wrong("The shape is wrong")
def by_a_boolean_without_jit(x, size):
    try:
        found = x[x > 0]
    except jax.errors.NonConcreteBooleanIndexError:
        return solution(x, size)
    return jnp.pad(found, (0, max(0, size - len(found)))), jnp.sum(x > 0)


@answers.right
def by_a_matrix_of_choices(x, size):
    places = jnp.cumsum(x > 0) - 1
    chosen = (places == jnp.arange(size)[:, None]) & (x > 0)
    return jnp.where(chosen, x, 0).sum(axis=1).astype(x.dtype), jnp.sum(x > 0)


@answers.right
def by_a_scatter_of_sums(x, size):
    places = jnp.where(x > 0, jnp.cumsum(x > 0) - 1, size)
    return jnp.zeros(size, x.dtype).at[places].add(x, mode="drop"), jnp.sum(x > 0)


@answers.right
def by_a_scan(x, size):
    def step(carry, value):
        values, count = carry
        put = values.at[count].set(value, mode="drop")
        return (jnp.where(value > 0, put, values), count + (value > 0)), None

    return jax.lax.scan(step, (jnp.zeros(size, x.dtype), jnp.int32(0)), x)[0]
