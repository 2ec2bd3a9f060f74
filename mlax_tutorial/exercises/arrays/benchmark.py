"""Mend a benchmark that lies."""

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed


def solution(function, x, clock):
    jax.block_until_ready(function(x))
    times = []
    for _ in range(5):
        start = clock()
        jax.block_until_ready(function(x))
        times.append(clock() - start)
    return statistics.median(times)


class _Laboratory:
    """A device whose every time is known: a queue that works while Python goes on.

    The times are such that each way to go wrong gives a number of its own: the median of the five is neither the
    first of them, nor that in the middle, nor the last, and it moves when the call before them is counted, too.
    """

    dispatch, compile, copy = 0.001, 2.0, 0.05
    work = (0.1, 0.11, 0.19, 0.23, 5.0, 0.17, 0.29, 0.31, 0.37)

    def __init__(self, wrap):
        self.now = self.free = 0.0
        self.calls = self.readings = 0
        self.wrap = wrap
        self.x = jnp.ones(3)

    def clock(self):
        self.readings += 1
        return self.now

    def function(self, x):
        if isinstance(x, jax.core.Tracer):
            raise Failed(
                "Your benchmark traces `function`: do you jit it? It should be called as it is handed in, since it may "
                "be jitted already."
            )
        if x is not self.x:
            raise Failed("`function` should be called with the `x` that your benchmark is given.", got=x)
        self.now += self.dispatch + (self.compile if self.calls == 0 else 0)
        self.free = max(self.free, self.now) + self.work[min(self.calls, len(self.work) - 1)]
        self.calls += 1
        return self.wrap(self, self.free)


class PendingArray:
    """Stands for an array that is still being computed."""

    def __init__(self, laboratory, ready):
        self._laboratory, self._ready = laboratory, ready

    def block_until_ready(self):
        self._laboratory.now = max(self._laboratory.now, self._ready)
        return self

    def is_ready(self):
        return self._laboratory.now >= self._ready

    def __array__(self, dtype=None, copy=None):
        self.block_until_ready()
        self._laboratory.now += self._laboratory.copy
        return np.zeros(3, dtype)

    def __repr__(self):
        return "Array([...], dtype=float32)"


def _in_a_dict(laboratory, ready):
    """The slow one is neither first nor last, whichever way the dict is read."""
    times = {"bias": laboratory.now, "kernel": ready, "loss": laboratory.now}
    return {name: PendingArray(laboratory, time) for name, time in times.items()}


def _measured(benchmark, wrap=PendingArray):
    """What a benchmark returns, and how often it called the function."""
    laboratory = _Laboratory(wrap)
    got = benchmark(laboratory.function, laboratory.x, laboratory.clock)
    return got, laboratory


def check(benchmark):
    expected, _ = _measured(solution)
    said = _wrong_about(benchmark, expected, PendingArray)
    if said:
        raise said
    said = _wrong_about(benchmark, expected, _in_a_dict)
    if said:
        said.message = f"Where the function returns a dict of arrays: {said.message}"
        if isinstance(said, _WrongTime):
            said.message = (
                "Where the function returns a dict of arrays, the time is wrong: wait for all of them. "
                "`jax.block_until_ready` waits for everything in a container."
            )
        raise said
    if not 0 <= float(benchmark(jax.jit(jnp.sin), jnp.ones(3), time.perf_counter)) < 60:
        raise Failed("With a real function and a real clock, the time is no time.")


class _WrongTime(Failed):
    """All is well but the number."""


def _wrong_about(benchmark, expected, wrap):
    """What is wrong with a benchmark on the laboratory's machine: a `Failed`, or None."""
    got, laboratory = _measured(benchmark, wrap)
    asked = "a jitted function on a machine with a clock of its own"
    if laboratory.calls == 0:
        return Failed("Your benchmark never calls `function(x)`.", input=asked)
    if got is None:
        return Failed("Your function returned None: is a `return` missing?", input=asked)
    if laboratory.readings == 0:
        return Failed("Your benchmark does not read the clock that it is given: call `clock()`.", input=asked)
    if isinstance(got, (list, tuple)) or np.ndim(got) > 0:
        return Failed("Return one number, the median, not all of them.", input=asked, got=got)
    if not isinstance(got, (int, float, np.number)) and not getattr(got, "shape", None) == ():
        return Failed("Return a number of seconds.", input=asked, got=got)
    right = abs(float(got) - expected) < _NEAR
    if right and laboratory.calls == 6:
        return None
    count = f"`function` was called {laboratory.calls} times; once to warm up and five times for the clock is six."
    said = "The time is wrong." if laboratory.calls == 6 else count
    for wrong, diagnosis in _LIES:
        lie, others = _measured(wrong)
        if abs(float(got) - lie) < _NEAR and laboratory.calls == others.calls:
            said = diagnosis
            break
    times = ", ".join(f"{seconds:g}" for seconds in _Laboratory.work[:6])
    machine = f"compiling 2 s, dispatch 0.001 s, then the device works {times}, … s"
    shown = {
        "expected": f"{expected:.3f} s",
        "got": f"{float(got):.3f} s",
        "shown": [("the machine", machine)],
    }
    return _WrongTime(said, input=asked, **shown)


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
    return 1000 * solution(function, x, clock)


def backwards(function, x, clock):
    return -solution(function, x, clock)


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


_NEAR = 2e-4  # seconds: float32 may have computed the difference, and no two ways to go wrong are so near


_NO_WAIT = (
    "The clock stops before the result exists: the call has returned, the device is still at work. Wait for the "
    "result between the two readings."
)


_LIES = (
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


exercise = Exercise(
    title="Mend a benchmark that lies",
    stars=2,
    minutes=10,
    why="You measured what a call takes, not what it takes to ask for it. From here on you may believe your own numbers.",
    hints=(
        "Three things are wrong: what the first call does besides, when the clock stops, and that it runs once.",
        "`jax.block_until_ready(result)` waits for everything in the result, be it an array or a dict of them.",
        "Call once and wait. Then five times: read the clock, call and wait, read the clock. `statistics.median`.",
    ),
    solution=solution,
    check=check,
)
