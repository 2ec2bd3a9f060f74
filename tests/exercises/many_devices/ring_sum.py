"""Answers to the exercise many_devices.ring_sum."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.many_devices.ring_sum import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def pairs(axis_name):
    size = jax.lax.axis_size(axis_name)
    return [(i, (i + 1) % size) for i in range(size)]


@answers.wrong("it is made by an all-reduce")
def psum(x, axis_name):
    return jax.lax.psum(x, axis_name)


@answers.wrong("added its own part twice")
def once_more(x, axis_name):
    total = x
    for _ in range(jax.lax.axis_size(axis_name)):
        x = jax.lax.ppermute(x, axis_name, pairs(axis_name))
        total = total + x
    return total


@answers.wrong("is not the sum of their parts")
def passes_the_total_on(x, axis_name):
    total = x
    for _ in range(jax.lax.axis_size(axis_name) - 1):
        total = total + jax.lax.ppermute(total, axis_name, pairs(axis_name))
    return total


@answers.wrong("has the shape of `x`")
def listed(x, axis_name):
    parts = [x]
    for _ in range(jax.lax.axis_size(axis_name) - 1):
        parts.append(jax.lax.ppermute(parts[-1], axis_name, pairs(axis_name)))
    return jnp.stack(parts)


@answers.wrong("steps of 12 bytes do")
def both_ways(x, axis_name):
    total, forth, back = 2 * x, x, x
    for _ in range(jax.lax.axis_size(axis_name) - 1):
        forth = jax.lax.ppermute(forth, axis_name, pairs(axis_name))
        back = jax.lax.ppermute(back, axis_name, [(j, i) for i, j in pairs(axis_name)])
        total = total + forth + back
    return total / 2


@answers.wrong("is not the sum of their parts")
def by_doubling(x, axis_name):
    size, distance = jax.lax.axis_size(axis_name), 1
    while distance < size:
        x = x + jax.lax.ppermute(x, axis_name, [(i, (i + distance) % size) for i in range(size)])
        distance *= 2
    return x


@answers.wrong("is made of integers")
def from_zeros(x, axis_name):
    total = jnp.zeros(x.shape) + x
    for _ in range(jax.lax.axis_size(axis_name) - 1):
        x = jax.lax.ppermute(x, axis_name, pairs(axis_name))
        total += x
    return total


@answers.wrong()
def named(x, axis_name):
    total = x
    for _ in range(jax.lax.axis_size(axis_name) - 1):
        x = jax.lax.ppermute(x, "devices", pairs(axis_name))
        total += x
    return total


@answers.wrong()
def no_loop(x, axis_name):
    return x + jax.lax.ppermute(x, axis_name, pairs(axis_name))


@answers.right
def by_distance(x, axis_name):
    size = jax.lax.axis_size(axis_name)
    shifts = ([(i, (i + d) % size) for i in range(size)] for d in range(1, size))
    return sum((jax.lax.ppermute(x, axis_name, shift) for shift in shifts), start=x)


@answers.right
def totals_go_round(x, axis_name):
    total = x
    for _ in range(jax.lax.axis_size(axis_name) - 1):
        total = x + jax.lax.ppermute(total, axis_name, pairs(axis_name))
    return total


@answers.right
def as_a_scan(x, axis_name):
    def step(carry, _):
        part, total = carry
        part = jax.lax.ppermute(part, axis_name, pairs(axis_name))
        return (part, total + part), None

    return jax.lax.scan(step, (x, x), length=jax.lax.axis_size(axis_name) - 1)[0][1]


@answers.right
def in_two_rounds(x, axis_name):
    """A reduce-scatter and an all-gather: more steps, fewer bytes."""
    size, me = jax.lax.axis_size(axis_name), jax.lax.axis_index(axis_name)
    pieces = jnp.pad(x, (0, -len(x) % size)).reshape(size, -1)
    piece = pieces[me]
    for i in range(1, size):
        piece = jax.lax.ppermute(piece, axis_name, pairs(axis_name)) + pieces[(me - i) % size]
    total, place = 0 * pieces, (me + 1) % size
    for i in range(size):
        total = total.at[(place - i) % size].set(piece)
        if i < size - 1:
            piece = jax.lax.ppermute(piece, axis_name, pairs(axis_name))
    return total.ravel()[: len(x)]


answers.equivalent("i + 1 -> i - 1", because="that is the ring the other way round")
