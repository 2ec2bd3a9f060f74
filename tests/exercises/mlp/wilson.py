"""Answers to the exercise mlp.wilson."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import metrics
from mlax_tutorial.exercises.mlp.wilson import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("and then its width is 0")
def wald(right, count, z=1.96):
    p = right / count
    reach = z * jnp.sqrt(p * (1 - p) / count)
    return p - reach, p + reach


@answers.wrong("The two bounds are swapped")
def swapped(right, count, z=1.96):
    return solution(right, count, z)[::-1]


@answers.wrong("is missing")
def undivided(right, count, z=1.96):
    low, high = solution(right, count, z)
    return low * (1 + z**2 / count), high * (1 + z**2 / count)


@answers.wrong("`z` has no effect: with 2.576")
def always_95(right, count, z=1.96):
    return solution(right, count, 1.96)


@answers.wrong("Return a pair")
def center_alone(right, count, z=1.96):
    return right / count


@answers.wrong("`return` missing")
def nothing(right, count, z=1.96):
    solution(right, count, z)


@answers.wrong("Under `jax.jit`")
def in_python(right, count, z=1.96):
    if jnp.ndim(right) == 0:
        right = jnp.float32(float(right))
    return solution(right, count, z)


@answers.wrong()
def clipped(right, count, z=1.96):
    low, high = wald(right, count, z)
    return jnp.clip(low, 0), jnp.clip(high, None, 1)


# Right ones of unusual style


@answers.right
def by_roots(right, count, z=1.96):
    p = right / count
    a, b, c = 1 + z**2 / count, -(2 * p + z**2 / count), p**2
    root = jnp.sqrt(jnp.maximum(b**2 - 4 * a * c, 0))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


@answers.right
@jax.jit
def in_counts(right, count, z=1.96):
    wrong = count - right
    reach = z * jnp.sqrt(right * wrong / count + z**2 / 4)
    return (right + z**2 / 2 - reach) / (count + z**2), (right + z**2 / 2 + reach) / (count + z**2)


answers.right(metrics.wilson)
answers.wrong()(lambda right, count, z=1.96: tuple(np.asarray(b) for b in solution(right, count, z)))


answers.equivalent(
    "right, count, z=1.96 -> right, count, z=0.0",
    "right, count, z=1.96 -> right, count, z=3.92",
    because="the task names three arguments, and the check gives all of them",
)
