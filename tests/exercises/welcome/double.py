"""Answers to the exercise welcome.double."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.welcome.double import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("is a `return` missing?")
def prints_only(x):
    print(2 * x)


@answers.wrong("squares each element")
def squares(x):
    return x**2


@answers.wrong("adds two")
def adds_two(x):
    return x + 2


@answers.wrong("repeats the array")
def repeats(x):
    return jnp.concatenate([x, x])


@answers.wrong("The shape is wrong: expected (4,)")
def learned_by_heart(x):
    return jnp.array([2.0, 4.0, 6.0])


@answers.wrong("The shape is wrong: expected (4,)")
def three_elements(x):
    return jnp.array([2 * x[0], 2 * x[1], 2 * x[2]])


@answers.wrong("at [1]: expected -2., got 2.")
def only_upwards(x):
    return jnp.abs(2 * x)


@answers.wrong("Under `jax.jit`")
def asks_for_numbers(x):
    return jnp.array([2 * element.item() for element in x])


@answers.wrong("returned a tuple")
def double_tuple(x):
    return (2 * x,)


@answers.wrong("returned a list")
def double_list(x):
    return [2 * element for element in x]


@answers.wrong("changed its input")
def in_place(x):
    for i in range(len(x)):
        x[i] = 2 * x[i]
    return x


@answers.wrong("NumPy array")
def numpy(x):
    return np.multiply(2, x)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def adds(x):
    return x + x


@answers.right
def writes_into_copies(x):
    for i in range(len(x)):
        x = x.at[i].multiply(2)  # NumPy arrays have no `at`
    return x


@answers.right
def stacks(x):
    return jnp.stack([x, x]).sum(0)


answers.right(jax.jit(lambda x: 2 * x))
answers.right(functools.wraps(adds)(functools.partial(jnp.multiply, 2)))


@answers.wrong()
def flattens(x):
    return 2 * jnp.ravel(x)
