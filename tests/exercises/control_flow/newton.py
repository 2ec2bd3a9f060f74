"""Answers to the exercise control_flow.newton."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.control_flow.newton import (
    by_step,
    exercise,
    goes_on,
    loop_of_newton,
    newton_reversed,
    one_more,
    solution,
    steps,
    uphill,
    upside_down,
    without_abs,
)
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("The step goes the wrong way")(uphill)
answers.wrong("not $f'(x) / f(x)$")(upside_down)
answers.wrong("not when to stop")(newton_reversed)


endless = loop_of_newton(lambda f, state: jnp.abs(f(state[0])) > 1e-5, steps)


answers.wrong("iterations")(endless)
answers.wrong("Without the absolute value")(without_abs)


with_and = loop_of_newton(lambda f, state: jnp.abs(f(state[0])) > 1e-5 and state[1] < 50, steps)


answers.wrong("joined by `&` there")(with_and)
answers.wrong("One step is taken too many")(one_more)


@answers.wrong("One step is taken too many")
def finer(f, x):
    going = lambda state: (jnp.abs(f(state[0])) > 1e-6) & (state[1] < 50)  # noqa: E731
    return lax.while_loop(going, functools.partial(steps, f), (x, 0))


@answers.wrong("NaN is not larger")
def past_nan(f, x):
    going = lambda state: ~(jnp.abs(f(state[0])) <= 1e-5) & (state[1] < 50)  # noqa: E731
    return lax.while_loop(going, functools.partial(steps, f), (x, 0))


@answers.wrong("NaN is not larger")
def mended_slope(f, x):
    def body(state):
        slope = jax.grad(f)(state[0])
        return state[0] - f(state[0]) / jnp.where(slope == 0, 1.0, slope), state[1] + 1

    return lax.while_loop(functools.partial(goes_on, f), body, (x, 0))


@answers.wrong("in the wrong order")
def swapped(f, x):
    return solution(f, x)[::-1]


answers.wrong("by the size of the step")(by_step)


@answers.wrong("ask before you step")
def at_least_one(f, x):
    return lax.while_loop(functools.partial(goes_on, f), functools.partial(steps, f), steps(f, (x, 0)))


@answers.wrong("Under `jax.jit`")
def python(f, x):
    rounds = 0
    while abs(f(x)) > 1e-5 and rounds < 50:
        x = x - f(x) / jax.grad(f)(x)
        rounds += 1
    return x, rounds


@answers.wrong("no `while`")
def all_rounds(f, x):
    def body(i, state):
        x, rounds = state
        on = jnp.abs(f(x)) > 1e-5
        return jnp.where(on, x - f(x) / jax.grad(f)(x), x), rounds + on

    return lax.fori_loop(0, 50, body, (x, 0))


@answers.wrong("A pair is asked for")
def only_x(f, x):
    return solution(f, x)[0]


@answers.wrong("not at 0.0")
def float_rounds(f, x):
    return lax.while_loop(functools.partial(goes_on, f), functools.partial(steps, f), (x, 0.0))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def value_and_slope(f, x):
    def going(state):
        x, rounds = state
        return jnp.logical_and(jnp.abs(f(x)) > 1e-5, rounds < 50)

    def body(state):
        value, slope = jax.value_and_grad(f)(state[0])
        return state[0] - value / slope, state[1] + 1

    return lax.while_loop(going, body, (x, jnp.int32(0)))


@answers.right
def keeps_the_value(f, x):
    def body(state):
        x, value, rounds = state
        x = x - value / jax.grad(f)(x)
        return x, f(x), rounds + 1

    x, _, rounds = lax.while_loop(lambda s: (abs(s[1]) > 1e-5) & (s[2] < 50), body, (x, f(x), 0))
    return x, rounds


@answers.right
def counts_in_eight_bits(f, x):
    body = lambda s: (s[0] - f(s[0]) / jax.grad(f)(s[0]), s[1] + jnp.uint8(1))  # noqa: E731
    return lax.while_loop(lambda s: (jnp.abs(f(s[0])) > 1e-5) & (s[1] < 50), body, (x, jnp.uint8(0)))


@answers.wrong()
def stops_at_forty_nine(f, x):
    going = lambda s: (jnp.abs(f(s[0])) > 1e-5) & (s[1] < 49)  # noqa: E731
    return lax.while_loop(going, lambda s: (s[0] - f(s[0]) / jax.grad(f)(s[0]), s[1] + 1), (x, 0))


with_or = loop_of_newton(lambda f, state: (jnp.abs(f(state[0])) > 1e-5) | (state[1] < 50), steps)
answers.wrong()(with_or)


stopped = loop_of_newton(goes_on, lambda f, state: lax.stop_gradient(steps(f, state)))
answers.wrong("no derivative comes through")(stopped)

answers.equivalent(
    "jnp.abs(f(x)) > 1e-05 -> jnp.abs(f(x)) >= 1e-05",
    because="a value of exactly 1e-5 does not come about",
)
