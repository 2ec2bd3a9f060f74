"""Answers to the exercise names_and_text.recurrence."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.names_and_text.recurrence import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("The gradient is wrong")
def no_gradient(a, b, start):
    def combine(first, second):
        return jax.lax.stop_gradient((second[0] * first[0], second[0] * first[1] + second[1]))

    factors, sums = jax.lax.associative_scan(combine, (a, b))
    return factors * start + sums


def combine(first, second):
    return first[0] * second[0], second[0] * first[1] + second[1]


@answers.wrong("the *second* step multiplies")
def swapped(a, b, start):
    factors, sums = jax.lax.associative_scan(lambda x, y: (x[0] * y[0], x[0] * y[1] + x[1]), (a, b))
    return factors * start + sums


@answers.wrong("The start has no effect")
def from_zero(a, b, start):
    return jax.lax.associative_scan(combine, (a, b))[1]


@answers.wrong("The start is added unchanged")
def adds_the_start(a, b, start):
    return jax.lax.associative_scan(combine, (a, b))[1] + start


@answers.wrong("make the states of them")
def the_pairs(a, b, start):
    return jax.lax.associative_scan(combine, (a, b))


@answers.wrong("runs from the end")
def from_the_end(a, b, start):
    factors, sums = jax.lax.associative_scan(combine, (a, b), reverse=True)
    return factors * start + sums


@answers.wrong("holds `scan`, which it should do without")
def by_scan(a, b, start):
    def step(h, each):
        h = each[0] * h + each[1]
        return h, h

    return jax.lax.scan(step, start, (a, b))[1]


@answers.wrong("a Python loop is unrolled")
def by_loop(a, b, start):
    h, states = start, []
    for i in range(len(a)):
        h = a[i] * h + b[i]
        states.append(h)
    return jnp.stack(states)


@answers.wrong()
def by_products(a, b, start):
    factors = jnp.cumprod(a, axis=0)  # breaks down where a factor is 0
    return factors * (start + jnp.cumsum(b / factors, axis=0))


# Right ones of unusual style


@answers.right
def start_as_a_step(a, b, start):
    a = jnp.concatenate([jnp.zeros_like(a[:1]), a])
    b = jnp.concatenate([start[None], b])
    return jax.lax.associative_scan(combine, (a, b))[1][1:]


@answers.right
def start_in_the_first(a, b, start):
    return jax.lax.associative_scan(combine, (a, b.at[0].add(a[0] * start)))[1]
