"""Answers to the exercise mlp.sign_test."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, erfc, gammaln

from mlax_tutorial.exercises.mlp.sign_test import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


def counts(a, b):
    return jnp.sum(a & ~b), jnp.sum(b & ~a)


def tail(n, k):
    return betainc(1.0 * (n - k), k + 1.0, 0.5)


@answers.wrong("the probability of one side")
def one_side(right_a, right_b):
    x, y = counts(right_a, right_b)
    return tail(x + y, jnp.minimum(x, y))


@answers.wrong("the larger tail")
def the_winner(right_a, right_b):
    x, y = counts(right_a, right_b)
    return 2 * tail(x + y, jnp.maximum(x, y))


@answers.wrong("of *fewer* than")
def fewer(right_a, right_b):
    x, y = counts(right_a, right_b)
    return 2 * tail(x + y, jnp.minimum(x, y) - 1)


@answers.wrong("came from different images")
def unpaired(right_a, right_b):
    p, q = right_a.mean(), right_b.mean()
    m = (p + q) / 2
    return erfc(abs(p - q) / jnp.sqrt(4 * m * (1 - m) / len(right_a)))


@answers.wrong("the others say nothing")
def all_images(right_a, right_b):
    x, y = counts(right_a, right_b)
    return jnp.minimum(1, 2 * tail(len(right_a), jnp.minimum(x, y)))


@answers.wrong("nobody wins them")
def with_both_wrong(right_a, right_b):
    x, y = counts(right_a, right_b)
    return 2 * tail(x + y + jnp.sum(~right_a & ~right_b), jnp.minimum(x, y))


@answers.wrong("normal approximation")
def chi_square(right_a, right_b):
    x, y = counts(right_a, right_b)
    return erfc(jnp.sqrt((x - y) ** 2 / (x + y) / 2))


@answers.wrong("comes out above 1")
def above_one(right_a, right_b):
    x, y = counts(right_a, right_b)
    return 2 * tail(x + y, jnp.minimum(x, y))


@answers.wrong("there is no toss at all")
def no_tosses(right_a, right_b):
    x, y = counts(right_a, right_b)
    n = x + y
    return jnp.where(n == 0, 0.0, jnp.minimum(1, 2 * tail(jnp.maximum(n, 1), jnp.minimum(x, y))))


@answers.wrong("`return` missing")
def nothing(right_a, right_b):
    solution(right_a, right_b)


@answers.wrong()
def as_float(right_a, right_b):
    return float(solution(right_a, right_b))


# Right ones of unusual style


@answers.right
def by_sum(right_a, right_b):
    x, y = counts(right_a, right_b)
    n, k = x + y, jnp.minimum(x, y)
    i = jnp.arange(len(right_a) + 1)
    logs = gammaln(n + 1.0) - gammaln(i + 1.0) - gammaln(jnp.maximum(n - i, 0) + 1.0) - n * jnp.log(2.0)
    return jnp.minimum(1.0, 2 * jnp.sum(jnp.where(i <= k, jnp.exp(logs), 0.0)))


@answers.right
@jax.jit
def by_difference(right_a, right_b):
    difference = right_a.astype(int) - right_b
    n, k = jnp.sum(difference != 0), jnp.minimum(jnp.sum(difference > 0), jnp.sum(difference < 0))
    # P(X <= k) = 1 - I_{1/2}(k + 1, n - k)
    p = 2 * (1 - betainc(k + 1.0, jnp.maximum(n - k, 1) * 1.0, 0.5))
    return jnp.where(n > 0, jnp.clip(p, 0, 1), 1.0) if np.ndim(n) == 0 else p


answers.equivalent(
    "n == 0 -> n == -1",
    "n == 0 -> n == 1",
    because="betainc(0, 1, 0.5) happens to be 1 in JAX, and one toss gives 1 as well",
)
