"""Answers to the exercise arrays.push."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.arrays.push import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("The buffer is not donated")
@jax.jit
def keeps(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


@answers.wrong("is not jitted")
def eager(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


@answers.wrong("Once the buffer is full, nothing")
@functools.partial(jax.jit, donate_argnums=0)
def dropped(buffer, count, row):
    return buffer.at[count].set(row)


@answers.wrong("lands in the last place")
@functools.partial(jax.jit, donate_argnums=0)
def clamped(buffer, count, row):
    return jax.lax.dynamic_update_index_in_dim(buffer, row, count, 0)


@answers.wrong("All rows move up")
@functools.partial(jax.jit, donate_argnums=0)
def rolls(buffer, count, row):
    return jnp.roll(buffer, -1, axis=0).at[-1].set(row)


@answers.wrong("still goes over all of it")
@functools.partial(jax.jit, donate_argnums=0)
def where(buffer, count, row):
    here = jnp.arange(len(buffer)) == count % len(buffer)
    return jnp.where(here[:, None], row, buffer)


@answers.wrong("You donate more than the buffer")
@functools.partial(jax.jit, donate_argnums=(0, 2))
def donates_row(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


@answers.wrong("ask the buffer for its length")
@functools.partial(jax.jit, donate_argnums=0)
def three(buffer, count, row):
    return buffer.at[count % 3].set(row)


@answers.wrong("TracerBoolConversionError")
@functools.partial(jax.jit, donate_argnums=0)
def push_if(buffer, count, row):
    if count >= len(buffer):
        count = count - len(buffer)
    return buffer.at[count].set(row)


@answers.wrong("each time that it is full")
@functools.partial(jax.jit, donate_argnums=0)
def once_again(buffer, count, row):
    return buffer.at[jnp.where(count >= len(buffer), count - len(buffer), count)].set(row)


@answers.wrong("The buffer comes back as it was")
@functools.partial(jax.jit, donate_argnums=0)
def loses(buffer, count, row):
    buffer.at[count % len(buffer)].set(row)
    return buffer


@answers.wrong("The row is added")
@functools.partial(jax.jit, donate_argnums=0)
def adds(buffer, count, row):
    return buffer.at[count % len(buffer)].add(row)


@answers.wrong("one place too far")
@functools.partial(jax.jit, donate_argnums=0)
def off_by_one(buffer, count, row):
    return buffer.at[(count + 1) % len(buffer)].set(row)


@answers.wrong("there are 3 rows")
@functools.partial(jax.jit, donate_argnums=0)
def columns(buffer, count, row):
    return buffer.at[count % buffer.shape[1]].set(row)


@answers.wrong("declared static")
@functools.partial(jax.jit, donate_argnums=0, static_argnums=1)
def static(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


@answers.wrong("is not jitted")
def jits_each_time(buffer, count, row):
    return jax.jit(eager, donate_argnums=0)(buffer, count, row)


@answers.wrong("is not jitted")
def deletes(buffer, count, row):
    new = keeps(buffer, count, row)
    buffer.delete()
    return new


@answers.wrong("immutable")
@functools.partial(jax.jit, donate_argnums=0)
def in_place(buffer, count, row):
    buffer[count % len(buffer)] = row
    return buffer


# Right ones of unusual style, and wrong ones that look right


@answers.right
@functools.partial(jax.jit, donate_argnames="buffer")
def update_slice(buffer, count, row):
    return lax.dynamic_update_slice(buffer, row[None], (count % len(buffer), 0))


@answers.right
@functools.partial(jax.jit, donate_argnums=(0,), inline=True)
def update_index(buffer, count, row):
    return lax.dynamic_update_index_in_dim(buffer, row, count % buffer.shape[0], 0)


@answers.right
@functools.partial(jax.jit, donate_argnums=0)
def with_a_print(buffer, count, row):
    print("traced with", count)
    return buffer.at[jnp.remainder(count, len(buffer)), :].set(row, mode="promise_in_bounds")


answers.right(jax.jit(lambda b, i, r: b.at[i % len(b)].set(r), donate_argnums=0))
