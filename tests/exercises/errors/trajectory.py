"""Answers to the exercise errors.trajectory."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.errors.trajectory import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("a list in it gets tracers")
def broken(x, rate):
    way = []

    def step(i, x):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        way.append(x)
        return x

    return lax.fori_loop(0, 10, step, x), jnp.stack(way)


@answers.wrong("written out in the program")
def unrolled(x, rate):
    way = []
    for _ in range(10):
        x = x - rate * 4 * x**3
        way.append(x)
    return x, jnp.stack(way)


@answers.wrong("the points before each step")
def before(x, rate):
    def step(x, _):
        return x - rate * jax.grad(lambda x: jnp.sum(x**4))(x), x

    return lax.scan(step, x, length=10)


@answers.wrong("uphill")
def uphill(x, rate):
    def step(x, _):
        x = x + rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        return x, x

    return lax.scan(step, x, length=10)


@answers.wrong("The way has 11 points")
def with_start(x, rate):
    last, way = solution(x, rate)
    return last, jnp.concatenate([x[None], way])


@answers.wrong("Two results are asked for")
def way_only(x, rate):
    return solution(x, rate)[1]


@answers.wrong("The last point comes first")
def swapped(x, rate):
    return solution(x, rate)[::-1]


@answers.wrong("Reverse-mode differentiation does not work")
def trajectory_while(x, rate):
    def step(state):
        i, x, way = state
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        return i + 1, x, way.at[i].set(x)

    return lax.while_loop(lambda state: state[0] < 10, step, (0, x, jnp.zeros((10, len(x)))))[1:]


kept = []


@answers.wrong("A tracer outlives its trace")
def leaks(x, rate):
    def step(x, _):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        kept[:] = [x]
        return x, x

    return lax.scan(step, x, length=10)


@answers.wrong("A list of yours holds tracers")
def still_fills_the_list(x, rate):
    way = []

    def step(x, _):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        way.append(x)
        return x, x

    return lax.scan(step, x, length=10)


@answers.wrong("The program has a side effect")
def calls_back(x, rate):
    def step(x, _):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        jax.debug.callback(lambda x: None, x)
        return x, x

    return lax.scan(step, x, length=10)


@answers.wrong("A tracer got out of its trace")
def trajectory_list(x, rate):
    way = []

    def step(x, _):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        way.append(x)
        return x, None

    return lax.scan(step, x, length=10)[0], way


# Right ones of unusual style, and wrong ones that look right


@answers.right
def writes_into_an_array(x, rate):
    def step(i, state):
        x, way = state
        x = x - rate * 4 * x**3
        return x, way.at[i].set(x)

    return lax.fori_loop(0, 10, step, (x, jnp.zeros((10, *x.shape))))


@answers.right
@jax.jit
def last_of_the_way(x, rate):
    slope = jax.grad(lambda x: (x**4).sum())
    _, way = lax.scan(lambda x, _: ((y := x - rate * slope(x)), y), x, jnp.arange(10))
    return way[-1], way


@answers.wrong()
def eleven_steps(x, rate):
    _, way = lax.scan(lambda x, _: (x - rate * 4 * x**3, x), x, length=11)
    return way[-1], way[1:] * 1.001


@answers.wrong()
def forgets_the_rate(x, rate):
    rate = lax.stop_gradient(rate)
    return lax.scan(lambda x, _: ((y := x - rate * 4 * x**3), y), x, length=10)


@answers.wrong()
def nine_and_one(x, rate):
    last, way = lax.scan(lambda x, _: ((y := x - rate * 4 * x**3), y), x, length=9)
    return last, jnp.concatenate([way, last[None]])


@answers.wrong("The program holds 2 loops")
def one_loop_for_each(x, rate):
    step = lambda x: x - rate * 4 * x**3  # noqa: E731
    last = lax.fori_loop(0, 10, lambda i, x: step(x), x)
    return last, lax.scan(lambda x, _: (step(x), step(x)), x, length=10)[1]


@answers.wrong("The program holds 2 loops")
def five_and_five(x, rate):
    half = lambda x: lax.scan(lambda x, _: ((y := x - rate * 4 * x**3), y), x, length=5)  # noqa: E731
    x, first = half(x)
    x, second = half(x)
    return x, jnp.concatenate([first, second])


@answers.wrong("The program holds 2 loops")
def a_loop_in_a_loop(x, rate):
    half = lambda x, _: lax.scan(lambda x, _: ((y := x - rate * 4 * x**3), y), x, length=5)  # noqa: E731
    x, way = lax.scan(half, x, length=2)
    return x, way.reshape(10, -1)
