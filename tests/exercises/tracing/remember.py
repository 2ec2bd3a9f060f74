"""Answers to the exercise tracing.remember."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.tracing.remember import _remember, exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


kept = []


@answers.wrong("Return a tuple of two")
@jax.jit
def leaks(x):
    y = jnp.sin(x)
    kept.append(y)
    return 2 * y


@answers.wrong("A tracer leaks")
@jax.jit
def leaks_and_returns(x):
    y = jnp.sin(x)
    kept.append(y)
    return 2 * y, y


answers.wrong("not jitted")(_remember)


@answers.wrong("first the result")
@jax.jit
def swapped(x):
    y = jnp.sin(x)
    return y, 2 * y


@answers.wrong("both in a list")
@jax.jit
def remember_list(x):
    y = jnp.sin(x)
    return [2 * y, y]


@answers.wrong("both in one array")
@jax.jit
def stacked(x):
    y = jnp.sin(x)
    return jnp.stack([2 * y, y])


@answers.wrong("both in a dict")
@jax.jit
def remember_dict(x):
    y = jnp.sin(x)
    return {"result": 2 * y, "y": y}


@answers.wrong("not twice x")
@jax.jit
def doubled_input(x):
    y = jnp.sin(x)
    return 2 * x, y


@answers.wrong("before it is doubled")
@jax.jit
def doubled_twice(x):
    y = 2 * jnp.sin(x)
    return y, y


@answers.wrong("The sine is missing")
@jax.jit
def without_sine(x):
    return 2 * x, x


@answers.wrong("given to NumPy")
@jax.jit
def numpy(x):
    y = np.sin(x)
    return 2 * y, y


# Right ones of unusual style, and wrong ones that look right


@answers.right
@functools.partial(jax.jit, inline=True)
def with_options(x):
    y = lax.sin(x)
    return y * 2, y


@answers.right
@jax.jit
def in_a_list_of_its_own(x):
    kept = []
    y = jnp.sin(x)
    kept.append(y)
    return 2 * y, kept[0]


@answers.right
@jax.jit
def with_a_note_that_is_no_tracer(x):
    y = jnp.sin(x)
    NOTES.append(y.shape)
    return 2 * y, y


NOTES = []
