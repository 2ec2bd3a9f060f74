"""Answers to the exercise encoder.visible."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.encoder.visible import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("Padding looks at padding")
def padding_too(segments):
    return segments[..., :, None] == segments[..., None, :]


@answers.wrong("look at each other")
def real_alone(segments):
    real = segments > 0
    return real[..., :, None] & real[..., None, :]


@answers.wrong("This is the opposite")
def opposite(segments):
    return ~solution(segments)


@answers.wrong("Padding sees itself here")
def sees_itself(segments):
    return solution(segments) | jnp.eye(segments.shape[-1], dtype=bool)


@answers.wrong("This mask is causal")
def causal(segments):
    return solution(segments) & jnp.tri(segments.shape[-1], dtype=bool)


@answers.wrong("The mask should be Boolean")
def numbers(segments):
    return solution(segments).astype(jnp.float32)


@answers.wrong("A mask says it of each pair")
def of_tokens(segments):
    return segments > 0


@answers.wrong("There is an axis too many")
def with_heads(segments):
    return solution(segments)[:, None]


@answers.wrong("A single row, without an axis for the batch")
def batch_alone(segments):
    segments = segments.reshape(-1, segments.shape[-1])
    return solution(segments)


@answers.wrong("`return` missing")
def nothing(segments):
    solution(segments)


# Right ones of unusual style


@answers.right
def by_products(segments):
    real = (segments > 0).astype(jnp.int32)
    pairs = real[..., :, None] * real[..., None, :]
    return (jnp.expand_dims(segments, -1) - jnp.expand_dims(segments, -2) == 0) & (pairs == 1)


@answers.right
def by_vmap(segments):
    flat = segments.reshape(-1, segments.shape[-1])

    def one(row):
        return jax.vmap(lambda query: (row == query) & (query != 0))(row)

    return jax.vmap(one)(flat).reshape(*segments.shape, segments.shape[-1])
