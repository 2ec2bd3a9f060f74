"""Benchmarks that lie, each with what is wrong with it."""

import statistics

import jax
import numpy as np


def notes(function, x, clock):
    start = clock()
    function(x)
    return clock() - start


def cold(function, x, clock):
    start = clock()
    jax.block_until_ready(function(x))
    return clock() - start


def once(function, x, clock):
    jax.block_until_ready(function(x))
    return cold(function, x, clock)


def no_wait(function, x, clock):
    function(x)
    times = []
    for _ in range(5):
        start = clock()
        function(x)
        times.append(clock() - start)
    return statistics.median(times)


def no_warm_up(function, x, clock):
    times = []
    for _ in range(5):
        start = clock()
        jax.block_until_ready(function(x))
        times.append(clock() - start)
    return statistics.median(times)


def mean(function, x, clock):
    jax.block_until_ready(function(x))
    start = clock()
    for _ in range(5):
        jax.block_until_ready(function(x))
    return (clock() - start) / 5


def minimum(function, x, clock):
    jax.block_until_ready(function(x))
    times = []
    for _ in range(5):
        start = clock()
        jax.block_until_ready(function(x))
        times.append(clock() - start)
    return min(times)


def waits_outside(function, x, clock):
    jax.block_until_ready(function(x))
    times = []
    for _ in range(5):
        start = clock()
        result = function(x)
        times.append(clock() - start)
        jax.block_until_ready(result)
    return statistics.median(times)


def copies(function, x, clock):
    np.asarray(function(x))
    times = []
    for _ in range(5):
        start = clock()
        np.asarray(function(x))
        times.append(clock() - start)
    return statistics.median(times)


def waits_last(function, x, clock):
    jax.block_until_ready(function(x))
    start = clock()
    for _ in range(5):
        result = function(x)
    jax.block_until_ready(result)
    return (clock() - start) / 5


def total(function, x, clock):
    return 5 * mean(function, x, clock)


def counts_warm_up(function, x, clock):
    return statistics.median(cold(function, x, clock) for _ in range(6))


def times(function, x, clock):
    jax.block_until_ready(function(x))
    return [cold(function, x, clock) for _ in range(5)]


def unsorted(function, x, clock):
    return times(function, x, clock)[2]


def maximum(function, x, clock):
    return max(times(function, x, clock))


def milliseconds(function, x, clock):
    return 1000 * statistics.median(times(function, x, clock))


def backwards(function, x, clock):
    return -statistics.median(times(function, x, clock))


def one_start(function, x, clock):
    jax.block_until_ready(function(x))
    start, times = clock(), []
    for _ in range(5):
        jax.block_until_ready(function(x))
        times.append(clock() - start)
    return statistics.median(times)


def warms_up_only(function, x, clock):
    function(x)
    return no_warm_up(function, x, clock)


_NO_WAIT = (
    "The clock stops before the result exists: the call has returned, the device is still at work. Wait for the "
    "result between the two readings."
)


LIES = (
    (
        notes,
        "Nothing is waited for, and the one call that is timed is the first, which also compiles.",
    ),
    (cold, "The one call that is timed is the first, which also traces and compiles."),
    (once, "One call is timed; the median of five is asked for."),
    (no_wait, _NO_WAIT),
    (waits_outside, _NO_WAIT),
    (
        no_warm_up,
        "The first of your five calls also traces and compiles: call once before the clock runs.",
    ),
    (
        mean,
        "This is the mean: one hiccup of the machine, which took 5 s, outweighs the other four together.",
    ),
    (
        waits_last,
        "This is a fifth of five calls together: a mean, in which one hiccup of the machine, which took 5 s, outweighs "
        "all the others. Read the clock around each call.",
    ),
    (total, "This is the sum of the five calls; the median is asked for."),
    (
        minimum,
        "This is the shortest of the five, which is what luck gives; the median is asked for.",
    ),
    (copies, "Your clock also counts a copy of the result to NumPy. Waiting does not need one."),
    (
        warms_up_only,
        "The call that warms up is not waited for, so the first that is timed stands in the queue behind it.",
    ),
    (counts_warm_up, "The call that warms up is among those that are timed."),
    (unsorted, "This is the third time that you measured; the median is the third by size."),
    (maximum, "This is the longest of the five; the median is asked for."),
    (milliseconds, "These are milliseconds; the time is asked for in seconds."),
    (backwards, "The time is negative: the later reading comes first in the difference."),
    (
        one_start,
        "All five times are counted from one start: read the clock anew before each call.",
    ),
)
