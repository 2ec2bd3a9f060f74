"""Answers to the exercise attention.relative."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.attention.relative import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def distances(queries, keys):
    return jnp.arange(keys) - jnp.arange(queries)[:, None]


@answers.wrong("The sign of the distance")
def opposite(table, queries, keys):
    span = table.shape[1] // 2
    return table[:, jnp.clip(-distances(queries, keys), -span, span) + span]


@answers.wrong("`span` must be added")
def not_shifted(table, queries, keys):
    span = table.shape[1] // 2
    return table[:, jnp.clip(distances(queries, keys), -span, span)]


@answers.wrong("Only one end is clipped")
def not_clipped(table, queries, keys):
    return table[:, distances(queries, keys) + table.shape[1] // 2]


@answers.wrong("the distance has a sign")
def symmetric(table, queries, keys):
    span = table.shape[1] // 2
    return table[:, jnp.minimum(jnp.abs(distances(queries, keys)), span) + span]


@answers.wrong("not zeros")
def zeros_beyond(table, queries, keys):
    distance, span = distances(queries, keys), table.shape[1] // 2
    return jnp.where(abs(distance) <= span, table[:, jnp.clip(distance, -span, span) + span], 0)


@answers.wrong("the first axis")
def heads_last(table, queries, keys):
    span = table.shape[1] // 2
    return table.T[jnp.clip(distances(queries, keys), -span, span) + span]


@answers.wrong("The shape of the bias is wrong")
def transposed(table, queries, keys):
    return exercise.answer(table, queries, keys).swapaxes(1, 2)


@answers.wrong("take the span from the number of columns")
def span_by_rows(table, queries, keys):
    span = table.shape[0]
    return table[:, jnp.clip(distances(queries, keys), -span, span) + span]


@answers.wrong("take the span from the number of columns")
def span_of_two(table, queries, keys):
    return table[:, jnp.clip(distances(queries, keys), -2, 2) + 2]


@answers.wrong()
def without_later_queries(table, queries, keys):
    """Right where there are as many keys as queries, or more."""
    span = table.shape[1] // 2
    distance = jnp.arange(keys) - jnp.minimum(jnp.arange(queries), keys - 1)[:, None]
    return table[:, jnp.clip(distance, -span, span) + span]


@answers.wrong()
def without_gradient(table, queries, keys):
    return exercise.answer(jax.lax.stop_gradient(table), queries, keys)


@answers.wrong()
def on_the_host(table, queries, keys):
    return jnp.asarray(exercise.answer(np.asarray(table), queries, keys))


@answers.right
def by_take(table, queries, keys):
    span = (table.shape[1] - 1) // 2
    return jnp.take(table, jnp.clip(distances(queries, keys) + span, 0, 2 * span), axis=1)


@answers.right
def by_one_hot(table, queries, keys):
    span = table.shape[1] // 2
    index = jnp.clip(distances(queries, keys), -span, span) + span
    return jnp.einsum("qkd,hd->hqk", jax.nn.one_hot(index, table.shape[1]), table)


@answers.right
def head_by_head(table, queries, keys):
    span = table.shape[1] // 2
    index = jnp.clip(distances(queries, keys), -span, span) + span
    return jax.vmap(lambda row: row[index])(table)
