"""Heun's method: two slopes a step, and an error that falls with the square of the step."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.diffusion._gaussian import denoise, flow
from mlax_tutorial.inspection import jaxprs


def solution(denoise, x, sigmas):
    def step(x, now):
        sigma, lower = now
        slope = (x - denoise(x, sigma)) / sigma
        ahead = x + (lower - sigma) * slope
        slope_ahead = (ahead - denoise(ahead, lower)) / lower
        return x + (lower - sigma) * (slope + slope_ahead) / 2, None

    x, _ = jax.lax.scan(step, x, (sigmas[:-2], sigmas[1:-1]))
    return denoise(x, sigmas[-2])  # the last step, to 0, of Euler


X = np.array([[3.0, 1.0], [-8.0, 4.0], [9.0, -6.0]], np.float32)


def _by_hand(denoise, x, sigmas, rule):
    for sigma, lower in zip(sigmas[:-1], sigmas[1:]):
        slope = (x - denoise(x, sigma)) / sigma
        ahead = x + (lower - sigma) * slope
        if lower > 0 and rule != "euler":
            at = {"heun": (ahead, lower), "old sigma": (ahead, sigma), "old x": (x, lower)}[rule]
            second = (at[0] - denoise(*at)) / (sigma if rule == "old sigma" else lower)
            ahead = x + (lower - sigma) * (slope + second) / 2
        x = ahead
    return x


def check(heun):
    levels = np.float32([10, 5, 2, 1, 0.25, 0])
    given = {"x": X, "sigmas": levels}
    got = heun(denoise, jnp.asarray(X), jnp.asarray(levels))
    expected = _by_hand(denoise, X, levels, "heun")
    if isinstance(got, tuple):
        raise Failed(
            "Return the images alone: `scan` gives a pair, the last carry and what was collected.", got=got
        )
    for rule, said in [
        ("euler", "These are Euler's steps: Heun's use the mean of two slopes, the second one at the end of Euler's step."),
        ("old sigma", "The second slope is taken at the end of the step: the lower noise level belongs to it, in the denoiser and in the division."),
        ("old x", "The second slope is taken where Euler's step arrives, not at the old `x`."),
    ]:  # fmt: skip
        wrong = _by_hand(denoise, X, levels, rule)
        if np.shape(got) == wrong.shape and np.allclose(got, wrong, rtol=1e-3):
            raise Failed(said, input=given, expected=expected, got=got)
    if np.shape(got) == X.shape and not np.isfinite(got).all():
        raise Failed(
            "At the noise level 0 there is no slope: it would divide by 0. The last step is Euler's.",
            input=given,
            got=got,
        )
    partway = np.asarray(X)
    for sigma, lower in zip(levels[:-2], levels[1:-1]):
        partway = _by_hand(denoise, partway, np.float32([sigma, lower]), "heun")
    if np.shape(got) == X.shape and np.allclose(got, partway, rtol=1e-3):
        raise Failed(
            "The last step, to 0, is missing: some noise is left.", input=given, expected=expected, got=got
        )
    checks.same(got, jnp.asarray(expected), input=given, rtol=1e-3, atol=1e-3)
    run = jax.jit(functools.partial(heun, denoise))
    # By the images alone: what belongs to the last level, 0, may be written with it or without.
    slope, right = (
        jax.jit(
            lambda x, function=function: jax.jvp(lambda x: function(x, levels), (x,), (jnp.ones_like(x),))[1]
        )(X)
        for function in (run, functools.partial(solution, denoise))
    )
    if not np.allclose(slope, right, rtol=1e-2, atol=1e-2):
        raise Failed("The images are right, but their derivative by `x` is not: is there a `stop_gradient`?", expected=right, got=slope)  # fmt: skip
    errors = []
    for count in (16, 32):
        levels = jnp.append(jnp.geomspace(10.0, 0.02, count), 0)
        errors.append(np.abs(np.asarray(run(jnp.asarray(X), levels)) - flow(X, 10.0)).max())
    if errors[1] > 0.4 * errors[0]:
        raise Failed(
            f"Twice as many steps should leave about a quarter of the error; {errors[0]:.4f} becomes {errors[1]:.4f}.",
        )
    sizes = [
        jaxprs.count(functools.partial(heun, denoise), jnp.asarray(X), jnp.linspace(9.0, 0, count)).total()
        for count in (4, 12)
    ]
    if sizes[1] > sizes[0]:
        raise Failed(
            f"The program grows with the steps, from {sizes[0]} equations to {sizes[1]}: a Python loop is unrolled, network and all, and compiles as "
            "long as it is. Use `jax.lax.scan` or `jax.lax.fori_loop`."
        )


exercise = Exercise(
    title="Heun's method as a loop under jit",
    stars=3,
    minutes=20,
    why="The network is the expensive part: a method of second order needs fewer of its evaluations for the same error.",
    hints=(
        "Take Euler's step first. At its end, with the lower noise level, there is a second slope; the step from the old `x` with the mean of both is Heun's.",
        "The last level is 0, where no slope can be taken: scan over `(sigmas[:-2], sigmas[1:-1])`, and do the last step after the loop.",
        "The last step of Euler, from sigma to 0, arrives at `denoise(x, sigma)`.",
    ),
    solution=solution,
    check=check,
)
