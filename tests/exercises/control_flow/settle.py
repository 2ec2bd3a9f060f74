"""Answers to the exercise control_flow.settle."""

import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.control_flow.settle import (
    absolute,
    always,
    exercise,
    settle_from,
    solution,
)
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("`jax.grad` refuses")
def refused(a):
    def going(x):
        return jnp.abs(x * x - a) > 1e-4 * a

    return lax.while_loop(going, lambda x: 0.5 * (x + a / x), a)


@answers.wrong("jax.jit(jax.grad(…))` refuses")
def dynamic(a):
    def going(state):
        return jnp.abs(state[0] ** 2 - a) > 1e-4 * a

    rounds = lax.while_loop(going, lambda s: (0.5 * (s[0] + a / s[0]), s[1] + 1), (a, 0))[1]
    return lax.fori_loop(0, lax.stop_gradient(rounds), lambda i, x: 0.5 * (x + a / x), a)


answers.wrong("closer to the root")(always)
answers.wrong("by another measure")(absolute)


@answers.wrong("it ends too early")
def four(a):
    return settle_from(a, a, rounds=4)


@answers.wrong("it ends too early")
def five(a):
    return settle_from(a, a, rounds=5)


@answers.wrong("yours takes fewer")
def ten(a):
    return settle_from(a, a, rounds=10)


@answers.wrong("yours takes fewer")
def nineteen(a):
    return settle_from(a, a, rounds=19)


@answers.wrong("yours takes more")
def hundred(a):
    return settle_from(a, a, rounds=100)


@answers.wrong("starts from `a`, for the gradient, too")
def from_one(a):
    return settle_from(jnp.ones_like(a), a)


@answers.wrong("starts from `a`, for the gradient, too")
def start_stopped(a):
    return settle_from(lax.stop_gradient(a), a)


@answers.wrong("closer to the root")
def one_late(a):
    def body(x, _):
        new = 0.5 * (x + a / x)
        return new, None

    x = solution(a)
    return body(x, None)[0]


@answers.wrong("copies of the body")
def unrolled(a):
    x = a
    for _ in range(20):
        x = jnp.where(jnp.abs(x * x - a) > 1e-4 * a, 0.5 * (x + a / x), x)
    return x


@answers.wrong("copies its body twenty times")
def unrolled_by_an_option(a):
    def body(i, x):
        return jnp.where(jnp.abs(x * x - a) > 1e-4 * a, 0.5 * (x + a / x), x)

    return lax.fori_loop(0, 20, body, a, unroll=True)


@answers.wrong("TracerBoolConversionError")
def python(a):
    x = a
    while abs(x * x - a) > 1e-4 * a:
        x = 0.5 * (x + a / x)
    return x


@answers.wrong("closer to the root")
def root(a):
    return jnp.sqrt(a)


@answers.wrong("right\nThe gradient is wrong")
def stopped(a):
    return solution(lax.stop_gradient(a)) + 0.0 * a


@answers.wrong("is the new `x` carried on?")
def not_carried(a):
    return lax.scan(lambda x, _: (x, jnp.where(x * x > a, 0.5 * (x + a / x), x)), a, length=20)[0]


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_cond(a):
    def step(i, x):
        return lax.cond(jnp.abs(x * x - a) > 1e-4 * a, lambda x: 0.5 * (x + a / x), lambda x: x, x)

    return lax.fori_loop(0, 20, step, a)


@answers.right
def with_a_flag(a):
    def body(state, _):
        x, done = state
        done = done | (jnp.abs(x * x - a) <= 1e-4 * a)
        return (jnp.where(done, x, (x + a / x) / 2), done), None

    (x, _), _ = lax.scan(body, (a, jnp.array(False)), None, 20)
    return x


@answers.wrong()
def too_patient(a):
    def body(x, _):
        return jnp.where(jnp.abs(x * x - a) > 1e-6 * a, 0.5 * (x + a / x), x), None

    return lax.scan(body, a, length=20)[0]


answers.equivalent(
    "jnp.abs(x * x - a) > 0.0001 * a -> jnp.abs(x * x - a) >= 0.0001 * a",
    because="that both sides are equal does not come about",
)
