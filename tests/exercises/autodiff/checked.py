"""Answers to the exercise autodiff.checked."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.autodiff.checked import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def directions(key, x):
    return [jax.random.normal(key, x.shape) for key in jax.random.split(key, 3)]


def by_steps(h, tolerance, both=True):
    def checked(f, x, key):
        gradient = jax.grad(f)(x)
        for t in directions(key, x):
            behind = f(x - h * t) if both else f(x)
            measured = (f(x + h * t) - behind) / (2 * h if both else h)
            if abs(measured - jnp.sum(gradient * t)) > tolerance:
                return False
        return True

    return checked


always = lambda f, x, key: True  # noqa: E731
answers.wrong("A wrong gradient passes")(always)
never = lambda f, x, key: False  # noqa: E731
answers.wrong("Is the step to both sides")(never)
tiny_step = by_steps(1e-6, 0.03)
answers.wrong("Is the step to both sides")(tiny_step)
a_small_step = by_steps(3e-5, 0.03)
answers.wrong("rounding moves the measurement")(a_small_step)
large_tolerance = by_steps(1e-2, 5.0)
answers.wrong("A wrong gradient passes")(large_tolerance)


@answers.wrong("A wrong gradient passes")
def against_jvp(f, x, key):
    gradient = jax.grad(f)(x)
    return all(abs(jax.jvp(f, (x,), (t,))[1] - jnp.sum(gradient * t)) < 0.03 for t in directions(key, x))


@answers.wrong("A wrong gradient passes")
def first_entry_only(f, x, key):
    h, t = 1e-2, jnp.zeros_like(x).at[0].set(1.0)
    measured = (f(x + h * t) - f(x - h * t)) / (2 * h)
    return abs(measured - jax.grad(f)(x)[0]) < 0.03


@answers.wrong("True or False")
def how_far(f, x, key):
    h, t = 1e-2, directions(key, x)[0]
    return abs((f(x + h * t) - f(x - h * t)) / (2 * h) - jnp.sum(jax.grad(f)(x) * t))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def at_once(f, x, key):
    t, h = jax.random.normal(key, (3, x.size)), 2e-2
    measured = jax.vmap(lambda t: (f(x + h * t) - f(x - h * t)) / (2 * h))(t)
    return jnp.allclose(measured, t @ jax.grad(f)(x), atol=0.04, rtol=0)


@answers.right
def by_signs(f, x, key):
    t, h = jax.random.rademacher(key, (3, x.size), x.dtype), 1e-2
    off = [(f(x + h * row) - f(x - h * row)) / (2 * h) - row @ jax.grad(f)(x) for row in t]
    return bool(max(map(abs, off)) < 0.1)


@answers.wrong()
def one_sided(f, x, key):
    return by_steps(1e-1, 0.03, both=False)(f, x, key)


@answers.wrong("along three directions")
def twice(f, x, key):
    for each in jax.random.split(key):
        t, h = jax.random.normal(each, x.shape), 1e-2
        if abs((f(x + h * t) - f(x - h * t)) / (2 * h) - jnp.sum(jax.grad(f)(x) * t)) > 0.03:
            return False
    return True


@answers.wrong("along three directions")
def one_direction_three_times(f, x, key):
    t, h = jax.random.normal(key, x.shape), 1e-2
    measured = [(f(x + h * t) - f(x - h * t)) / (2 * h) for _ in range(3)]
    return all(abs(one - jnp.sum(jax.grad(f)(x) * t)) < 0.03 for one in measured)


@answers.wrong("A wrong gradient passes")
def along_ones(f, x, key):
    h, t = 1e-2, jnp.ones_like(x)
    measured = (f(x + h * t) - f(x - h * t)) / (2 * h)
    return abs(measured - jnp.sum(jax.grad(f)(x))) < 0.03


@answers.wrong("along three directions")
def one_direction_mapped(f, x, key):
    t, h = jnp.stack([jax.random.normal(key, x.shape)] * 3), 1e-2
    measured = jax.vmap(lambda t: (f(x + h * t) - f(x - h * t)) / (2 * h))(t)
    return jnp.allclose(measured, t @ jax.grad(f)(x), atol=0.03, rtol=0)


@answers.wrong("Another key does not give")
def a_key_of_its_own(f, x, key):
    return by_steps(1e-2, 0.03)(f, x, jax.random.key(3))


answers.equivalent(
    "(jax.grad(f)(x), 0.01) -> (jax.grad(f)(x), 0.02)",
    "abs(measured - jnp.sum(gradient * t)) > 0.03 -> abs(measured - jnp.sum(gradient * t)) > 0.06",
    because="the size of the step and the tolerance are the reader's choice, and these find what is wrong, too",
)
answers.equivalent(
    "jax.random.split(key, 3) -> jax.random.split(key, 4)",
    because="one direction more finds all that three find",
)
answers.equivalent(
    "abs(measured - jnp.sum(gradient * t)) > 0.03 -> abs(measured - jnp.sum(gradient * t)) >= 0.03",
    because="a difference of exactly 0.03 does not come about",
)


@answers.wrong("to one side only")
def one_small_step(f, x, key):
    return by_steps(1e-2, 0.05, both=False)(f, x, key)
