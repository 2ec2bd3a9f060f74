"""Answers to the exercise mlp.ridge."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.mlp.ridge import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)
I = jnp.eye  # noqa: E741


@answers.wrong("The bias is penalized")
def with_ones(features, targets, strength):
    f = jnp.concatenate([features, jnp.ones((len(features), 1))], axis=1)
    both = jnp.linalg.solve(f.T @ f + strength * I(f.shape[1]), f.T @ targets)
    return both[:-1], both[-1]


@answers.wrong("There is no bias")
def without_bias(features, targets, strength):
    kernel = jnp.linalg.solve(features.T @ features + strength * I(features.shape[1]), features.T @ targets)
    return kernel, jnp.zeros(targets.shape[1])


@answers.wrong("the mean of the targets only")
def mean_as_bias(features, targets, strength):
    return solution(features, targets, strength)[0], targets.mean(axis=0)


@answers.wrong("the bias is missing")
def zero_bias(features, targets, strength):
    return solution(features, targets, strength)[0], jnp.zeros(targets.shape[1])


@answers.wrong("too strong by the number")
def of_means(features, targets, strength):
    return solution(features, targets, strength * len(features))


@answers.wrong("too weak by the number")
def of_sums(features, targets, strength):
    return solution(features, targets, strength / len(features))


@answers.wrong("that is least squares")
def least_squares(features, targets, strength):
    return solution(features, targets, 0.0)


@answers.wrong("The strength is squared")
def squared(features, targets, strength):
    return solution(features, targets, strength**2)


@answers.wrong("The two are swapped")
def swapped(features, targets, strength):
    return solution(features, targets, strength)[::-1]


@answers.wrong("Return a pair")
def kernel_alone(features, targets, strength):
    return solution(features, targets, strength)[0]


@answers.wrong("`return` missing")
def nothing(features, targets, strength):
    solution(features, targets, strength)


@answers.wrong("incompatible shapes")
def always_five(features, targets, strength):
    center, mean = features.mean(axis=0), targets.mean(axis=0)
    f = features - center
    kernel = jnp.linalg.solve(f.T @ f + strength * I(5), f.T @ targets)
    return kernel, mean - center @ kernel


@answers.wrong()
def in_numpy(features, targets, strength):
    return tuple(np.asarray(one) for one in solution(features, targets, strength))


# Right ones of unusual style


@answers.right
def ones_without_penalty(features, targets, strength):
    f = jnp.concatenate([features, jnp.ones((len(features), 1))], axis=1)
    penalty = strength * jnp.ones(f.shape[1]).at[-1].set(0)
    both = jnp.linalg.solve(f.T @ f + jnp.diag(penalty), f.T @ targets)
    return both[:-1], both[-1]


@answers.right
def by_singular_values(features, targets, strength):
    center, mean = features.mean(axis=0), targets.mean(axis=0)
    u, s, vt = jnp.linalg.svd(features - center, full_matrices=False)
    kernel = vt.T @ ((s / (s**2 + strength))[:, None] * (u.T @ (targets - mean)))
    return kernel, mean - center @ kernel


@answers.right
@jax.jit
def by_cholesky(features, targets, strength):
    center, mean = jnp.mean(features, 0), jnp.mean(targets, 0)
    f = features - center
    factor = jax.scipy.linalg.cho_factor(f.T @ f + strength * I(f.shape[1]))
    kernel = jax.scipy.linalg.cho_solve(factor, f.T @ targets)
    return kernel, mean - center @ kernel


answers.equivalent(
    "targets - mean -> targets + mean",
    because="the features are centered, and their product with what is the same for all examples is zero",
)
answers.equivalent(
    "jnp.matmul(f.T, f, precision='highest') -> jnp.matmul(f.T, f)",
    "jnp.matmul(f.T, t, precision='highest') -> jnp.matmul(f.T, t)",
    "jnp.matmul(center, kernel, precision='highest') -> jnp.matmul(center, kernel)",
    because="checks run at the highest precision whatever is said, and a CPU always does",
)
