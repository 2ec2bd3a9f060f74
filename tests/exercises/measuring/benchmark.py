"""Answers to the exercise measuring.benchmark."""

import statistics

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.measuring.benchmark import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)
wait = jax.block_until_ready


@answers.wrong("warm up before you start it")
def as_given(make, step, clock, repeats):
    x = make()
    start = clock()
    for _ in range(repeats):
        step(x)
        x = make()
    return (clock() - start) / repeats


@answers.wrong("donates its argument")
def one_argument(make, step, clock, repeats):
    x = wait(make())
    wait(step(x))
    times = []
    for _ in range(repeats):
        start = clock()
        wait(step(x))
        times.append(clock() - start)
    return statistics.median(times)


@answers.wrong("wait for the result first")
def only_dispatch(make, step, clock, repeats):
    wait(step(make()))
    times = []
    for _ in range(repeats):
        x = wait(make())
        start = clock()
        step(x)
        times.append(clock() - start)
    return statistics.median(times)


@answers.wrong("the device still makes the argument")
def input_under_way(make, step, clock, repeats):
    wait(step(make()))
    times = []
    for _ in range(repeats):
        x = make()
        start = clock()
        wait(step(x))
        times.append(clock() - start)
    return statistics.median(times)


@answers.wrong("The time of `make` is in it")
def made_inside(make, step, clock, repeats):
    wait(step(make()))
    times = []
    for _ in range(repeats):
        start = clock()
        wait(step(wait(make())))
        times.append(clock() - start)
    return statistics.median(times)


@answers.wrong("take the median")
def mean(make, step, clock, repeats):
    wait(step(make()))
    times = []
    for _ in range(repeats):
        x = wait(make())
        start = clock()
        wait(step(x))
        times.append(clock() - start)
    return sum(times) / len(times)


@answers.wrong("repeats are asked for")
def once(make, step, clock, repeats):
    wait(step(make()))
    x = wait(make())
    start = clock()
    wait(step(x))
    return clock() - start


@answers.wrong("repeats are asked for")
def always_ten(make, step, clock, repeats):
    return minimum(make, step, clock, 10)


@answers.wrong("Return one number")
def all_of_them(make, step, clock, repeats):
    wait(step(make()))
    return [41] * repeats


# Right ones of unusual style


@answers.right
def arguments_first(make, step, clock, repeats):
    first, *rest = wait([make() for _ in range(repeats + 1)])
    wait(step(first))
    times = []
    for x in rest:
        start = clock()
        step(x).block_until_ready()
        times.append(clock() - start)
    return float(np.median(times))


@answers.right
def minimum(make, step, clock, repeats):
    wait(step(wait(make())))
    best = float("inf")
    for _ in range(repeats):
        x = wait(make())
        start = clock()
        wait(step(x))
        best = min(best, clock() - start)
    return best


@answers.wrong("All steps are timed together")
def waits_once(make, step, clock, repeats):
    jax.block_until_ready(step(make()))
    given = jax.block_until_ready([make() for _ in range(repeats)])
    start = clock()
    jax.block_until_ready([step(x) for x in given])
    return (clock() - start) / repeats


@answers.wrong("take the median")
def without_the_first(make, step, clock, repeats):
    spent = 0
    for i in range(repeats + 1):
        x = jax.block_until_ready(make())
        start = clock()
        jax.block_until_ready(step(x))
        spent += (clock() - start) * (i > 0)
    return spent / repeats


@answers.right
def drops_the_first(make, step, clock, repeats):
    times = []
    for _ in range(repeats + 1):
        x = jax.block_until_ready(make())
        times.append(-clock())
        jax.block_until_ready(step(x))
        times[-1] += clock()
    return sorted(times[1:])[repeats // 2]


def _timed(make, step, clock, repeats):
    wait(step(wait(make())))
    times = []
    for _ in range(repeats):
        x = wait(make())
        start = clock()
        wait(step(x))
        times.append(clock() - start)
    return times


@answers.right
def minimum_by_numpy(make, step, clock, repeats):
    return np.min(_timed(make, step, clock, repeats))


@answers.right
def median_by_jax(make, step, clock, repeats):
    return jnp.median(jnp.array(_timed(make, step, clock, repeats)))


@answers.wrong("Return one number")
def nothing(make, step, clock, repeats):
    _timed(make, step, clock, repeats)


answers.equivalent(
    "jax.block_until_ready(step(make())) -> step(make())",
    because="a device does one thing after the other, so who waits for the next argument waits for the first step as well",
)
