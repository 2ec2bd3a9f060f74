"""Mend a benchmark that lies."""

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.arrays._benchmarks_that_lie import LIES
from mlax_tutorial.exercises.arrays._laboratory import Laboratory, PendingArray, in_a_dict, measured


def solution(function, x, clock):
    jax.block_until_ready(function(x))
    times = []
    for _ in range(5):
        start = clock()
        jax.block_until_ready(function(x))
        times.append(clock() - start)
    return statistics.median(times)


def check(benchmark):
    expected, _ = measured(solution)
    said = _wrong_about(benchmark, expected, PendingArray)
    if said:
        raise said
    said = _wrong_about(benchmark, expected, in_a_dict)
    if said:
        said.say_first("Where the function returns a dict of arrays:")
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


_NEAR = 2e-4  # seconds: float32 may have computed the difference, and no two ways to go wrong are so near


def _wrong_about(benchmark, expected, wrap):
    """What is wrong with a benchmark on the laboratory's machine: a `Failed`, or None."""
    got, laboratory = measured(benchmark, wrap)
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
    for wrong, diagnosis in LIES:
        lie, others = measured(wrong)
        if abs(float(got) - lie) < _NEAR and laboratory.calls == others.calls:
            said = diagnosis
            break
    times = ", ".join(f"{seconds:g}" for seconds in Laboratory.work[:6])
    machine = f"compiling 2 s, dispatch 0.001 s, then the device works {times}, … s"
    shown = {
        "expected": f"{expected:.3f} s",
        "got": f"{float(got):.3f} s",
        "shown": [("the machine", machine)],
    }
    return _WrongTime(said, input=asked, **shown)


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
