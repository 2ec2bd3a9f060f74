"""Answers to the exercise transformations.clean."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.transformations.clean import decay, exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("a quotient of whole numbers is float32")(decay)


@answers.wrong("a quotient of whole numbers is float32")
def ages_cast(x):
    n, d = x.shape
    ages = (jnp.arange(n) / n).astype(x.dtype)
    scaled = x * jnp.exp(-ages)[:, None] / math.sqrt(d)
    return jnp.where(scaled > 0, scaled, jnp.zeros_like(x))


@answers.wrong("`x` itself is made float32")
def wide(x):
    return decay(x.astype(jnp.float32)).astype(x.dtype)


@answers.wrong("is strongly typed")
def root_left(x):
    n, d = x.shape
    weights = jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)
    scaled = (x * weights[:, None] / np.sqrt(d)).astype(x.dtype)
    return jnp.where(scaled > 0, scaled, jnp.zeros_like(x))


@answers.wrong("unless it is told a dtype")
def zeros_left(x):
    n, d = x.shape
    weights = jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)
    scaled = x * weights[:, None] / math.sqrt(d)
    return jnp.where(scaled > 0, scaled, jnp.zeros((n, d)).astype(x.dtype))


@answers.wrong("The result is bfloat16, and the input is float32")
def hard_coded(x):
    n, d = x.shape
    weights = jnp.asarray(np.exp(-np.arange(n) / n), jnp.bfloat16)
    return jax.nn.relu(x.astype(jnp.bfloat16) * weights[:, None] / math.sqrt(d))


@answers.wrong("The weights are missing")
def without_weights(x):
    return jax.nn.relu(x / math.sqrt(x.shape[1]))


@answers.wrong("without the division by the root of d")
def without_root(x):
    n, _ = x.shape
    return jax.nn.relu(x * jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)[:, None])


@answers.wrong("without the division by the root of d")
def root_of_whole_numbers(x):  # 1, for a d of 3
    n, d = x.shape
    weights = jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)
    return jax.nn.relu(x * weights[:, None] / math.isqrt(d))


@answers.wrong("What is not above zero becomes zero")
def not_clipped(x):
    n, d = x.shape
    return x * jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)[:, None] / math.sqrt(d)


@answers.wrong("The weights grow")
def growing(x):
    n, d = x.shape
    return jax.nn.relu(x * jnp.asarray(np.exp(np.arange(n) / n), x.dtype)[:, None] / math.sqrt(d))


@answers.wrong("through a callback")
def calls_back(x):
    return jax.pure_callback(lambda x: np.asarray(decay(x)), jax.typeof(x), x)


@answers.wrong("`return` missing")
def no_return(x):
    solution(x)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def all_of_x(x):
    n, d = x.shape
    ages = jnp.arange(n, dtype=x.dtype) / n
    return jnp.maximum(x * jnp.exp(-ages)[:, None] * d**-0.5, 0)


@answers.right
@jax.jit
def by_vmap(x):
    n, d = x.shape
    weights = jnp.array([math.exp(-i / n) / math.sqrt(d) for i in range(n)], x.dtype)
    return jax.vmap(lambda row, weight: jax.nn.relu(row * weight))(x, weights)


@answers.wrong()
def in_float32_behind_a_jit(x):
    return jax.jit(lambda x: decay(x))(x)


@answers.wrong()
def in_float32_row_by_row(x):
    n, d = x.shape
    rows = [jnp.float32(math.exp(-i / n) / math.sqrt(d)) * x[i] for i in range(n)]
    return jax.nn.relu(jnp.stack(rows)).astype(x.dtype)


@answers.wrong("n and d are the sizes")
def of_four_rows(x):
    weights = jnp.asarray(np.exp(-np.arange(4) / 4), x.dtype)[: len(x), None]
    return jax.nn.relu(x * weights / math.sqrt(x.shape[1]))


@answers.wrong("n and d are the sizes")
def of_three_columns(x):
    n = len(x)
    return jax.nn.relu(x * jnp.asarray(np.exp(-np.arange(n) / n) / math.sqrt(3), x.dtype)[:, None])


answers.equivalent(
    "scaled > 0 -> scaled >= 0",
    because="0 is replaced by 0",
)
