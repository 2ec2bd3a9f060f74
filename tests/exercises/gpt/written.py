"""Answers to the exercise gpt.written."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.gpt.written import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("steps draw with the same key")
def one_key(key, next_logits, token, length):
    def step(token, _):
        token = jax.random.categorical(key, next_logits(token))
        return token, token

    return jax.lax.scan(step, token, None, length)[1]


@answers.wrong("steps draw with the same key")
def a_key_for_each_token(key, next_logits, token, length):
    def step(token, _):
        token = jax.random.categorical(jax.random.fold_in(key, token), next_logits(token))
        return token, token

    return jax.lax.scan(step, jnp.int32(token), None, length)[1]


@answers.wrong("always takes the most probable")
def greedy(key, next_logits, token, length):
    def step(token, key):
        token = jnp.argmax(next_logits(token))
        return token.astype(jnp.int32), token

    return jax.lax.scan(step, token, jax.random.split(key, length))[1]


@answers.wrong("as if the one before were the first")
def not_handed_on(key, next_logits, token, length):
    def step(token, key):
        return token, jax.random.categorical(key, next_logits(token))

    return jax.lax.scan(step, token, jax.random.split(key, length))[1]


@answers.wrong("random key is used twice")
def uses_the_parent(key, next_logits, token, length):
    def step(carry, _):
        token, key = carry
        token = jax.random.categorical(key, next_logits(token))
        return (token, jax.random.split(key)[0]), token

    return jax.lax.scan(step, (token, key), None, length)[1]


@answers.wrong("a Python loop is unrolled")
def by_loop(key, next_logits, token, length):
    tokens = []
    for each in jax.random.split(key, length):
        token = jax.random.categorical(each, next_logits(token))
        tokens.append(token)
    return jnp.stack(tokens)


@answers.wrong("without the first one, which was given")
def with_the_first(key, next_logits, token, length):
    return jnp.append(token, solution(key, next_logits, token, length))


@answers.wrong("The first token is drawn after")
def one_late(key, next_logits, token, length):
    return solution(key, next_logits, token, length + 1)[1:]


@answers.wrong("The first token is drawn after")
def collects_the_carry(key, next_logits, token, length):
    def step(token, key):
        return jax.random.categorical(key, next_logits(token)), token

    return jax.lax.scan(step, token, jax.random.split(key, length))[1]


@answers.wrong("The first token is drawn after")
def backwards(key, next_logits, token, length):
    return solution(key, next_logits, token, length)[::-1]


@answers.wrong("returns two things")
def with_the_carry(key, next_logits, token, length):
    def step(token, key):
        token = jax.random.categorical(key, next_logits(token))
        return token, token

    return jax.lax.scan(step, token, jax.random.split(key, length))


@answers.wrong("Every key writes the same text")
def own_key(key, next_logits, token, length):
    return solution(jax.random.key(3), next_logits, token, length)


@answers.wrong("`return` missing")
def nothing(key, next_logits, token, length):
    solution(key, next_logits, token, length)


@answers.right
def splits_on_the_way(key, next_logits, token, length):
    def step(carry, _):
        token, key = carry
        key, own = jax.random.split(key)
        token = jax.random.categorical(own, next_logits(token)).astype(jnp.int32)
        return (token, key), token

    return jax.lax.scan(step, (token, key), None, length)[1]


@answers.right
def by_gumbel(key, next_logits, token, length):
    def step(token, key):
        logits = next_logits(token)
        token = jnp.argmax(logits + jax.random.gumbel(key, logits.shape)).astype(jnp.int32)
        return token, token

    return jax.lax.scan(step, jnp.int32(token), jax.random.split(key, length))[1]
