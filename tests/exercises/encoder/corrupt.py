"""Answers to the exercise encoder.corrupt."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.encoder.corrupt import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("never takes another's place")
def never_the_first(key, ids, real, vocabulary, hidden):
    chosen_key, how_key, other_key = jax.random.split(key, 3)
    chosen = jax.random.bernoulli(chosen_key, 0.15, ids.shape) & real
    how = jax.random.uniform(how_key, ids.shape)
    other = jax.random.randint(other_key, ids.shape, 1, vocabulary, ids.dtype)
    return jnp.where(chosen, jnp.where(how < 0.8, hidden, jnp.where(how < 0.9, other, ids)), ids), chosen


def built(key, ids, real, vocabulary, hidden, *, rate=0.15, limits=(0.8, 0.9), low=0, high=0):
    one, two, three = jax.random.split(key, 3)
    chosen = jax.random.bernoulli(one, rate, ids.shape) & real
    how = jax.random.uniform(two, ids.shape)
    other = jax.random.randint(three, ids.shape, low, vocabulary + high, ids.dtype)
    replaced = jnp.where(how < limits[0], hidden, jnp.where(how < limits[1], other, ids))
    return jnp.where(chosen, replaced, ids), chosen


def with_chosen(chosen, key, ids, vocabulary, hidden, other=None):
    one, two = jax.random.split(key)
    how = jax.random.uniform(one, ids.shape)
    drawn = other(two) if other else jax.random.randint(two, ids.shape, 0, vocabulary)
    replaced = jnp.where(how < 0.8, hidden, jnp.where(how < 0.9, drawn, ids)).astype(ids.dtype)
    return jnp.where(chosen, replaced, ids), chosen


@answers.wrong("All rows have about the same share")
def fifteen_of_a_hundred(key, ids, real, vocabulary, hidden):
    one, key = jax.random.split(key)
    places = jnp.argsort(
        jnp.argsort(jnp.where(real, jax.random.uniform(one, ids.shape), 2), axis=-1), axis=-1
    )
    chosen = (places < jnp.round(0.15 * real.sum(axis=-1, keepdims=True))) & real
    return with_chosen(chosen, key, ids, vocabulary, hidden)


@answers.wrong("far more of their tokens chosen")
def whole_rows(key, ids, real, vocabulary, hidden):
    one, key = jax.random.split(key)
    chosen = jax.random.bernoulli(one, 0.15, (len(ids), 1)) & real
    return with_chosen(chosen, key, ids, vocabulary, hidden)


@answers.wrong("With every key")
def always_as_many(key, ids, real, vocabulary, hidden):
    one, key = jax.random.split(key)
    draw = jnp.where(real, jax.random.uniform(one, ids.shape), 2).ravel()
    places = jnp.argsort(jnp.argsort(draw)).reshape(ids.shape)
    return with_chosen((places < 0.15 * real.sum()) & real, key, ids, vocabulary, hidden)


@answers.wrong("may be the old one")
def never_the_old_one(key, ids, real, vocabulary, hidden):
    one, key = jax.random.split(key)
    chosen = jax.random.bernoulli(one, 0.15, ids.shape) & real
    return with_chosen(
        chosen, key, ids, vocabulary, hidden,
        lambda key: (ids + jax.random.randint(key, ids.shape, 1, vocabulary)) % vocabulary,
    )  # fmt: skip


@answers.wrong("may be the old one")
def from_the_batch(key, ids, real, vocabulary, hidden):
    one, key = jax.random.split(key)
    chosen = jax.random.bernoulli(one, 0.15, ids.shape) & real
    return with_chosen(
        chosen, key, ids, vocabulary, hidden,
        lambda key: jax.random.permutation(key, ids.ravel()).reshape(ids.shape),
    )  # fmt: skip


@answers.wrong("Padding is chosen")
def padding_too(key, ids, real, vocabulary, hidden):
    return built(key, ids, jnp.ones_like(real), vocabulary, hidden)


@answers.wrong("If you drew for both with one key")
def all_hidden(key, ids, real, vocabulary, hidden):
    draw = jax.random.uniform(key, ids.shape)
    chosen = (draw < 0.15) & real
    return jnp.where(chosen & (draw < 0.8), hidden, ids), chosen


@answers.wrong("and 15 % are asked for")
def too_many(key, ids, real, vocabulary, hidden):
    return built(key, ids, real, vocabulary, hidden, rate=0.85)


@answers.wrong("are not divided into 80, 10 and 10 %")
def never_kept(key, ids, real, vocabulary, hidden):
    return built(key, ids, real, vocabulary, hidden, limits=(0.8, 1.0))


@answers.wrong("that `chosen` does not name")
def chosen_are_the_hidden(key, ids, real, vocabulary, hidden):
    inputs, chosen = solution(key, ids, real, vocabulary, hidden)
    return inputs, inputs == hidden


@answers.wrong("draw one for each place")
def one_token(key, ids, real, vocabulary, hidden):
    one, two, three = jax.random.split(key, 3)
    chosen = jax.random.bernoulli(one, 0.15, ids.shape) & real
    how = jax.random.uniform(two, ids.shape)
    other = jax.random.randint(three, (), 0, vocabulary, ids.dtype)
    return jnp.where(chosen, jnp.where(how < 0.8, hidden, jnp.where(how < 0.9, other, ids)), ids), chosen


@answers.wrong("All rows have the same tokens chosen")
def one_row(key, ids, real, vocabulary, hidden):
    one, two = jax.random.split(key)
    chosen = jax.random.bernoulli(one, 0.15, ids.shape[-1:]) & real
    how = jax.random.uniform(two, ids.shape)
    return jnp.where(chosen & (how < 0.8), hidden, ids), chosen


@answers.wrong("andom key is used twice")
def one_key_for_two(key, ids, real, vocabulary, hidden):
    one, two = jax.random.split(key)
    chosen = jax.random.bernoulli(one, 0.15, ids.shape) & real
    how = jax.random.uniform(two, ids.shape)
    other = jax.random.randint(one, ids.shape, 0, vocabulary, ids.dtype)
    return jnp.where(chosen, jnp.where(how < 0.8, hidden, jnp.where(how < 0.9, other, ids)), ids), chosen


@answers.wrong("`chosen` should be Booleans")
def as_weights(key, ids, real, vocabulary, hidden):
    inputs, chosen = solution(key, ids, real, vocabulary, hidden)
    return inputs, chosen.astype(jnp.float32)


@answers.wrong("Return a pair")
def inputs_alone(key, ids, real, vocabulary, hidden):
    return solution(key, ids, real, vocabulary, hidden)[0]


# Right ones of unusual style


@answers.right
def by_one_uniform(key, ids, real, vocabulary, hidden):
    """One draw decides all: its first 15 % are divided again."""
    one, two = jax.random.split(key)
    draw = jnp.where(real, jax.random.uniform(one, ids.shape), 1.0)
    other = jax.random.randint(two, ids.shape, 0, vocabulary, ids.dtype)
    inputs = jnp.select([draw < 0.12, draw < 0.135], [jnp.full_like(ids, hidden), other], ids)
    return inputs, draw < 0.15


@answers.right
def by_choice(key, ids, real, vocabulary, hidden):
    keys = jax.random.split(key, 3)
    how = jax.random.choice(keys[0], jnp.arange(3), ids.shape, p=jnp.array([0.8, 0.1, 0.1]))
    chosen = jnp.logical_and(real, jax.random.uniform(keys[1], ids.shape) < 0.15)
    other = jax.random.randint(keys[2], ids.shape, 0, vocabulary, ids.dtype)
    replaced = jnp.choose(how, [jnp.full_like(ids, hidden), other, ids], mode="clip")
    return jnp.where(chosen, replaced, ids), chosen


@answers.wrong("should be int16, too")
def always_int32(key, ids, real, vocabulary, hidden):
    inputs, chosen = solution(key, ids, real, vocabulary, hidden)
    return inputs.astype(jnp.int32), chosen


@answers.wrong("outside the vocabulary")
def one_too_many(key, ids, real, vocabulary, hidden):
    return solution(key, ids, real, vocabulary + 1, hidden)


answers.equivalent(
    "how < 0.8 -> how <= 0.8",
    "how < 0.9 -> how <= 0.9",
    because="a number drawn is exactly 0.8 once in millions of times",
)
