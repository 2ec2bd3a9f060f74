"""Answers to the exercise names_and_text.one_mask."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.names_and_text.one_mask import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("The mask changes from step to step")
def ordinary(key, x, rate):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


@answers.wrong("All sequences of the batch have the same mask")
def one_for_all(key, x, rate):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape[2:]), x / (1 - rate), 0)


@answers.wrong("All features of a sequence are dropped together")
def whole_sequences(key, x, rate):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, (len(x), 1, 1)), x / (1 - rate), 0)


@answers.wrong("is True with the probability `p`")
def keeps_the_rate(key, x, rate):
    kept = jax.random.bernoulli(key, rate, (len(x), 1, x.shape[2]))
    return jnp.where(kept, x / (1 - rate), 0)


@answers.wrong("is not divided by `1 - rate`")
def unscaled(key, x, rate):
    kept = jax.random.bernoulli(key, 1 - rate, (len(x), 1, x.shape[2]))
    return jnp.where(kept, x, 0)


@answers.wrong("zero times infinity")
def multiplies(key, x, rate):
    return x * jax.random.bernoulli(key, 1 - rate, (len(x), 1, x.shape[2])) / (1 - rate)


@answers.wrong("should be bfloat16")
def widens(key, x, rate):
    kept = jax.random.bernoulli(key, 1 - rate, (len(x), 1, x.shape[2]))
    return jnp.where(kept, x.astype(jnp.float32) / (1 - rate), 0)


@answers.wrong()
def fixed_key(key, x, rate):
    return solution(jax.random.key(0), x, rate)


# Right ones of unusual style


@answers.right
def by_vmap(key, x, rate):
    def one(key, x):
        kept = jax.random.uniform(key, x.shape[-1:]) >= rate
        return jnp.where(kept, x / (1 - rate), 0).astype(x.dtype)

    return jax.vmap(one)(jax.random.split(key, len(x)), x)


@answers.right
def by_broadcast(key, x, rate):
    kept = jax.random.bernoulli(key, 1 - rate, (x.shape[0], x.shape[2]))
    return jax.lax.select(jnp.broadcast_to(kept[:, None], x.shape), x / (1 - rate), jnp.zeros_like(x))
