"""Answers to the exercise arrays.benchmark."""

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.arrays._benchmarks_that_lie import (
    backwards,
    cold,
    copies,
    counts_warm_up,
    maximum,
    mean,
    milliseconds,
    minimum,
    no_wait,
    no_warm_up,
    notes,
    once,
    one_start,
    times,
    total,
    unsorted,
    waits_last,
    waits_outside,
    warms_up_only,
)
from mlax_tutorial.exercises.arrays.benchmark import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("Nothing is waited for")(notes)
answers.wrong("The one call that is timed is the first, which also traces")(cold)
answers.wrong("One call is timed")(once)
answers.wrong("stops before the result exists")(no_wait)
answers.wrong("stops before the result exists")(waits_outside)
answers.wrong("The first of your five calls")(no_warm_up)
answers.wrong("This is the mean")(mean)
answers.wrong("the shortest of the five")(minimum)
answers.wrong("a fifth of five calls")(waits_last)
answers.wrong("the sum of the five calls")(total)


@answers.wrong("was called 11 times")
def ten(function, x, clock):
    jax.block_until_ready(function(x))
    return statistics.median(cold(function, x, clock) for _ in range(10))


@answers.wrong("Return a number of seconds")
def text(function, x, clock):
    return f"{solution(function, x, clock)} s"


answers.wrong("a copy of the result")(copies)


@answers.wrong("'dict' object has no attribute")
def one_array(function, x, clock):
    function(x).block_until_ready()
    times = []
    for _ in range(5):
        start = clock()
        function(x).block_until_ready()
        times.append(clock() - start)
    return statistics.median(times)


answers.wrong("stands in the queue behind it")(warms_up_only)


@answers.wrong("was called 5 times")
def four(function, x, clock):
    jax.block_until_ready(function(x))
    return statistics.median(cold(function, x, clock) for _ in range(4))


@answers.wrong("was called 4 times")
def three(function, x, clock):
    jax.block_until_ready(function(x))
    return statistics.median(cold(function, x, clock) for _ in range(3))


@answers.wrong("was called 7 times")
def warms_up_twice(function, x, clock):
    jax.block_until_ready(function(x))
    return solution(function, x, clock)


answers.wrong("is among those that are timed")(counts_warm_up)
answers.wrong("not all of them")(times)
answers.wrong("the third by size")(unsorted)
answers.wrong("the longest of the five")(maximum)
answers.wrong("These are milliseconds")(milliseconds)
answers.wrong("The time is negative")(backwards)
answers.wrong("counted from one start")(one_start)


@answers.wrong("the `x` that your benchmark is given")
def own_x(function, x, clock):
    return solution(function, jnp.ones(1000), clock)


@answers.wrong("does not read the clock")
def own_clock(function, x, clock):
    return solution(function, x, time.perf_counter)


@answers.wrong("Your benchmark traces `function`")
def jits(function, x, clock):
    return solution(jax.jit(function), x, clock)


@answers.wrong("never calls `function(x)`")
def never(function, x, clock):
    return solution(lambda x: x, x, clock)


@answers.wrong("wait for all of them")
def first_part(function, x, clock):
    def waiting(x):
        jax.tree.leaves(function(x))[0].block_until_ready()

    return solution(waiting, x, clock)


@answers.wrong("wait for all of them")
def if_it_can(function, x, clock):
    def waiting(x):
        result = function(x)
        if hasattr(result, "block_until_ready"):
            result.block_until_ready()

    return solution(waiting, x, clock)


@answers.wrong("is a `return` missing")
def prints(function, x, clock):
    print(solution(function, x, clock))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def each_leaf(function, x, clock):
    times = []
    for _ in range(6):
        start = clock()
        jax.tree.map(lambda leaf: leaf.block_until_ready(), function(x))
        times.append(clock() - start)
    return sorted(times[1:])[2]


@answers.right
def by_cases(function, x, clock):
    def once():
        start, result = clock(), function(x)
        for array in result.values() if isinstance(result, dict) else [result]:
            array.block_until_ready()
        return clock() - start

    once()
    return np.median([once() for _ in range(5)])


@answers.right
def read_at_the_end_of_each(function, x, clock):
    jax.device_get(function(x))
    readings = [clock()]
    for _ in range(5):
        jax.block_until_ready(function(x))
        readings.append(clock())
    return jnp.median(jnp.diff(jnp.array(readings)))


@answers.right
def negative_start(function, x, clock):
    jax.block_until_ready(function(x))
    times = np.empty(5)
    for i in range(5):
        times[i] = -clock()
        jax.block_until_ready(function(x))
        times[i] += clock()
    return statistics.median(times)
