"""Answers to the exercise arrays.heat_step."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.arrays.heat_step import (
    ends_before,
    ends_first,
    exercise,
    heat_step_set,
    no_ends,
    one_by_one,
    sets_change,
    solution,
)
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("immutable")
def in_place(u, source):
    u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    u[source] += 1.0
    u[0] = 0.0
    u[-1] = 0.0
    return u


@answers.wrong("comes back as it was")
def dropped(u, source):
    u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    u.at[source].add(1.0)
    u.at[0].set(0.0)
    u.at[-1].set(0.0)
    return u


answers.wrong("has already been changed")(one_by_one)
answers.wrong("it must add 1")(heat_step_set)
answers.wrong("set to the change alone")(sets_change)
answers.wrong("the order matters")(ends_first)
answers.wrong("two ends are not 0")(no_ends)


@answers.wrong("a traced array was given to NumPy")
def copy(u, source):
    return jnp.asarray(in_place(np.array(u), source))


answers.wrong("before the heat spreads: their neighbors")(ends_before)


@answers.wrong("adds 1 to the temperature from before")
def one_chain(u, source):
    inner = u[1:-1] + 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return u.at[1:-1].set(inner).at[source].set(u[source] + 1.0).at[0].set(0.0).at[-1].set(0.0)


@answers.wrong("The source adds no heat")
def no_source(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[0].set(0.0).at[-1].set(0.0)


@answers.wrong("The source is added before")
def source_first(u, source):
    u = u.at[source].add(1.0)
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[0].set(0.0).at[-1].set(0.0)


@answers.wrong("The last point is not 0")
def beyond(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[source].add(1.0).at[0].set(0.0).at[len(u)].set(0.0)


@answers.wrong("`.at[…]` is no place to assign to")
def assigns(u, source):
    u.at[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    u.at[source] += 1.0
    return u


@answers.wrong("`.at[…]` is no place to assign to")
def assigns_ends(u, source):
    u.at[0] = 0.0
    return u


@answers.wrong("asks for the value of a traced array")
def asks(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    if 0 < source < len(u) - 1:
        u = u.at[source].add(1.0)
    return u.at[0].set(0.0).at[-1].set(0.0)


@answers.wrong("declared static")
@functools.partial(jax.jit, static_argnums=1)
def static(u, source):
    return solution(u, source)


@answers.wrong("is a `return` missing")
def nothing(u, source):
    u = solution(u, source)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def put_together(u, source):
    inner = u[1:-1] + 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    inner = inner + (jnp.arange(1, len(u) - 1) == source)
    return jnp.concatenate([jnp.zeros(1), inner, jnp.zeros(1)])


@answers.right
def chosen(u, source):
    i, v = jnp.arange(u.size), jnp.pad(u, 1)
    warmer = u + 0.25 * (v[:-2] - 2 * u + v[2:]) + jnp.where(i == source, 1.0, 0.0)
    return jnp.where((i == 0) | (i == u.size - 1), 0.0, warmer)


@answers.right
def convolved(u, source):
    spread = jnp.convolve(u, jnp.array([0.25, 0.5, 0.25]), mode="same")
    return spread.at[source].add(1).at[np.array([0, -1])].multiply(0)


@answers.right
def as_a_product(u, source):
    n = len(u)
    spread = 0.5 * jnp.eye(n) + 0.25 * (jnp.eye(n, k=1) + jnp.eye(n, k=-1))
    return (jnp.dot(spread, u) + jax.nn.one_hot(source, n)) * jnp.ones(n).at[0].set(0).at[-1].set(0)
