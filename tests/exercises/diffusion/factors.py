"""Answers to the exercise diffusion.factors."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.diffusion.factors import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.right
def in_a_list(sigma, deviation):
    return list(solution(sigma, deviation))


@answers.wrong("divide by the root of the sum")
def without_the_root(sigma, deviation):
    _, skip, out = solution(sigma, deviation)
    return 1 / (sigma**2 + deviation**2), skip, out


@answers.wrong("Variances add up, deviations do not")
def deviations(sigma, deviation):
    _, skip, out = solution(sigma, deviation)
    return 1 / (sigma + deviation), skip, out


@answers.wrong()
def of_variance_one(sigma, deviation):
    return solution(sigma, jnp.ones_like(deviation))


@answers.wrong("With your `c_out` the variance")
def out_sigma(sigma, deviation):
    c_in, skip, _ = solution(sigma, deviation)
    return c_in, skip, sigma * jnp.ones_like(skip)


@answers.wrong("and `c_skip` is not the best one")
def skip_root(sigma, deviation):
    c_in, skip, out = solution(sigma, deviation)
    return c_in, jnp.sqrt(skip), out


@answers.wrong("this asks for the noise")
def noise(sigma, deviation):
    c_in, skip, _ = solution(sigma, deviation)
    return c_in, jnp.ones_like(skip), sigma * jnp.ones_like(skip)


@answers.wrong("this asks for the image")
def image(sigma, deviation):
    c_in, skip, _ = solution(sigma, deviation)
    return c_in, jnp.zeros_like(skip), deviation * jnp.ones_like(skip)


@answers.wrong("take the positive root")
def negative(sigma, deviation):
    c_in, skip, out = solution(sigma, deviation)
    return c_in, skip, -out


@answers.wrong("does each depend")
def scalars(sigma, deviation):
    _, skip, out = solution(sigma, deviation)
    return 1 / deviation, skip, out


@answers.wrong("Return three factors")
def stacked(sigma, deviation):
    return jnp.stack(solution(sigma, deviation))


@answers.wrong("`return` missing")
def nothing(sigma, deviation):
    solution(sigma, deviation)


# Right ones of unusual style


@answers.right
def by_angle(sigma, deviation):
    angle = jnp.arctan2(sigma, deviation)
    return jnp.cos(angle) / deviation, jnp.cos(angle) ** 2, sigma * jnp.cos(angle)


@answers.right
def by_minimizing(sigma, deviation):
    def variance(skip, sigma, deviation):
        return (1 - skip) ** 2 * deviation**2 + skip**2 * sigma**2

    @jnp.vectorize
    def best(sigma, deviation):  # of a parabola: one step of Newton's
        slope = jax.grad(variance)(0.0, sigma, deviation)
        return -slope / jax.grad(jax.grad(variance))(0.0, sigma, deviation)

    skip = best(sigma, deviation)
    return jax.lax.rsqrt(sigma**2 + deviation**2), skip, jnp.sqrt(variance(skip, sigma, deviation))
