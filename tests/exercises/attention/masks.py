"""Answers to the exercise attention.masks."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.attention.masks import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def real(lengths, size):
    return jnp.arange(size) < lengths[:, None]


@answers.wrong("queries of padding see nothing")
def keys_only(lengths, size):
    return jnp.tri(size, dtype=bool) & real(lengths, size)[:, None, :]


@answers.wrong("the causal mask is missing")
def not_causal(lengths, size):
    return real(lengths, size)[:, None, :] & real(lengths, size)[:, :, None]


@answers.wrong("the causal mask is transposed")
def transposed(lengths, size):
    both = real(lengths, size)[:, None, :] & real(lengths, size)[:, :, None]
    return jnp.tri(size, dtype=bool).T & both


@answers.wrong("see itself, too")
def strictly(lengths, size):
    place = jnp.arange(size)
    return (place[:, None] > place) & real(lengths, size)[:, None, :] & real(lengths, size)[:, :, None]


@answers.wrong("should be Boolean")
def floats(lengths, size):
    r = real(lengths, size).astype(float)
    return jnp.tri(size) * r[:, None, :] * r[:, :, None]


@answers.wrong("The shape of the mask is wrong")
def with_heads(lengths, size):
    return exercise.answer(lengths, size)[:, None]


@answers.wrong("One token of padding")
def one_too_many(lengths, size):
    r = jnp.arange(size) <= lengths[:, None]
    return jnp.tri(size, dtype=bool) & r[:, None, :] & r[:, :, None]


@answers.wrong("This is the opposite")
def forbidden(lengths, size):
    return ~exercise.answer(lengths, size)


@answers.wrong()
def python_numbers(lengths, size):
    return jnp.stack([jnp.tri(size, dtype=bool) & (jnp.arange(size) < int(n)) for n in lengths])


@answers.wrong("A padded query sees itself")
def sees_itself(lengths, size):
    return exercise.answer(lengths, size) | jnp.eye(size, dtype=bool)


@answers.wrong("padding in front")
def in_front(lengths, size):
    return jnp.tri(size, dtype=bool) & (jnp.arange(size) >= size - lengths[:, None])[:, None, :]


@answers.wrong("the mask of the first one")
def first_sentence(lengths, size):
    return jnp.broadcast_to(exercise.answer(lengths[:1], size), (len(lengths), size, size))


@answers.wrong("no real token at all")
def one_at_least(lengths, size):
    return exercise.answer(jnp.maximum(lengths, 1), size)


@answers.right
def by_vmap(lengths, size):
    def one(length):
        here = jnp.arange(size) < length
        return jnp.tri(size, dtype=bool) & jnp.outer(here, here)

    return jax.vmap(one)(lengths)


@answers.right
def by_the_last(lengths, size):
    """A query that is real and sees no later key sees real keys alone."""
    place = jnp.arange(size)
    return (place[:, None] >= place)[None] & (place[None, :, None] < lengths[:, None, None])


@answers.right
def by_products(lengths, size):
    r = (jnp.arange(size) < lengths[:, None]).astype(jnp.int32)
    return jnp.tril(jnp.einsum("bq,bk->bqk", r, r)) > 0
