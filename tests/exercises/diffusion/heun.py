"""Answers to the exercise diffusion.heun."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.diffusion.heun import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("but their derivative")
def no_derivative(denoise, x, sigmas):
    return solution(denoise, jax.lax.stop_gradient(x), sigmas)


def slope(denoise, x, sigma):
    return (x - denoise(x, sigma)) / sigma


def scanned(second):
    def sampler(denoise, x, sigmas):
        def step(x, now):
            sigma, lower = now
            first = slope(denoise, x, sigma)
            ahead = x + (lower - sigma) * first
            return x + (lower - sigma) * (first + second(denoise, x, ahead, sigma, lower)) / 2, None

        x, _ = jax.lax.scan(step, x, (sigmas[:-2], sigmas[1:-1]))
        return denoise(x, sigmas[-2])

    return sampler


@answers.wrong("These are Euler's steps")
def euler(denoise, x, sigmas):
    def step(x, now):
        return x + (now[1] - now[0]) * slope(denoise, x, now[0]), None

    return jax.lax.scan(step, x, (sigmas[:-1], sigmas[1:]))[0]


answers.wrong("the lower noise level belongs to it")(
    scanned(lambda denoise, x, ahead, sigma, lower: slope(denoise, ahead, sigma))
)
answers.wrong("where Euler's step arrives")(
    scanned(lambda denoise, x, ahead, sigma, lower: slope(denoise, x, lower))
)
# The slope at the end alone: an implicit look, and of first order.
answers.wrong()(
    scanned(
        lambda denoise, x, ahead, sigma, lower: 2 * slope(denoise, ahead, lower) - slope(denoise, x, sigma)
    )
)


@answers.wrong("there is no slope")
def divides_by_zero(denoise, x, sigmas):
    def step(x, now):
        sigma, lower = now
        first = slope(denoise, x, sigma)
        ahead = x + (lower - sigma) * first
        return x + (lower - sigma) * (first + slope(denoise, ahead, lower)) / 2, None

    return jax.lax.scan(step, x, (sigmas[:-1], sigmas[1:]))[0]


@answers.wrong("Return the images alone")
def the_pair(denoise, x, sigmas):
    return solution(denoise, x, sigmas), None


@answers.wrong("some noise is left")
def stops_early(denoise, x, sigmas):
    def step(x, now):
        sigma, lower = now
        first = slope(denoise, x, sigma)
        ahead = x + (lower - sigma) * first
        return x + (lower - sigma) * (first + slope(denoise, ahead, lower)) / 2, None

    return jax.lax.scan(step, x, (sigmas[:-2], sigmas[1:-1]))[0]


@answers.wrong("a Python loop is unrolled")
def unrolled(denoise, x, sigmas):
    for i in range(len(sigmas) - 2):
        first = slope(denoise, x, sigmas[i])
        ahead = x + (sigmas[i + 1] - sigmas[i]) * first
        x = x + (sigmas[i + 1] - sigmas[i]) * (first + slope(denoise, ahead, sigmas[i + 1])) / 2
    return denoise(x, sigmas[-2])


# Right ones of unusual style


@answers.right
def by_fori_loop(denoise, x, sigmas):
    def body(i, x):
        sigma, lower = sigmas[i], sigmas[i + 1]
        first = slope(denoise, x, sigma)
        ahead = x + (lower - sigma) * first
        return x + (lower - sigma) * (first + slope(denoise, ahead, lower)) / 2

    x = jax.lax.fori_loop(0, len(sigmas) - 2, body, x)
    return x - sigmas[-2] * slope(denoise, x, sigmas[-2])


@answers.right
def with_where(denoise, x, sigmas):
    def step(x, now):
        sigma, lower = now
        first = slope(denoise, x, sigma)
        ahead = x + (lower - sigma) * first
        second = slope(denoise, ahead, jnp.where(lower > 0, lower, 1.0))
        return jnp.where(lower > 0, x + (lower - sigma) * (first + second) / 2, ahead), None

    return jax.lax.scan(step, x, (sigmas[:-1], sigmas[1:]))[0]
