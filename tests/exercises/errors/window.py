"""Answers to the exercise errors.window."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.errors.window import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("Array slice indices must have static")
def broken(x, start):
    return x[start : start + 3]


@answers.wrong("Every start makes a program of its own")
@functools.partial(jax.jit, static_argnums=1)
def static(x, start):
    return x[start : start + 3]


@answers.wrong("ConcretizationTypeError")
def python(x, start):
    start = int(start)
    return x[start : start + 3]


@answers.wrong("The shape is wrong: expected (3, 2), got (8, 2)")
def masked(x, start):
    rows = jnp.arange(len(x))[:, None]
    return jnp.where((rows >= start) & (rows < start + 3), x, 0.0)


@answers.wrong("got (2, 2)")
def of_two(x, start):
    return lax.dynamic_slice_in_dim(x, start, 2)


@answers.wrong("one row too late")
def late(x, start):
    return lax.dynamic_slice_in_dim(x, start + 1, 3)


@answers.wrong("the beginning of `x`")
def of_the_end(x, start):
    return x[:3]


@functools.lru_cache
def of(start):
    return jax.jit(lambda x: x[start : start + 3])


@answers.wrong("unhashable type")
def cached(x, start):
    return of(start)(x)


# Right ones of unusual style, and wrong ones that look right


answers.right(lambda x, start: x[start + jnp.arange(3)])
answers.right(lambda x, start: jnp.roll(x, -start, axis=0)[:3])
answers.right(lambda x, start: jnp.stack([x[start], x[start + 1], x[start + 2]]))
answers.right(jax.jit(lambda x, start: lax.dynamic_slice(x, (start, 0), (3, x.shape[1]))))
answers.right(lambda x, start: jnp.take(x, jnp.arange(3) + start, axis=0))


if hasattr(jax, "ds"):  # not in 0.7.2
    answers.right(lambda x, start: x[jax.ds(start, 3)])


answers.wrong()(lambda x, start: jnp.stack([x[start]] * 3))
answers.wrong()(lambda x, start: x[jnp.minimum(start + jnp.arange(3), len(x) - 2)])
