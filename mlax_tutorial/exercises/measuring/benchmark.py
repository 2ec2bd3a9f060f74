"""Fix a benchmark with five faults, on a device and a clock that are simulated."""

import numbers
import statistics

import jax
import numpy as np

from mlax_tutorial.checking import Exercise, Failed

COMPILING, DISPATCH, RUNNING, MAKING, DISTURBED = 1000, 1, 40, 25, 300


def solution(make, step, clock, repeats):
    jax.block_until_ready(step(make()))
    times = []
    for _ in range(repeats):
        x = jax.block_until_ready(make())
        start = clock()
        jax.block_until_ready(step(x))
        times.append(clock() - start)
    return statistics.median(times)


class _Array:
    """What a simulated device returns: a result that exists only later."""

    def __init__(self, device, ready):
        self.device, self.ready, self.waited = device, ready, False
        self.deleted = False

    def block_until_ready(self):
        self.device.now = max(self.device.now, self.ready)
        self.waited = True
        return self


class _Device:
    """The host's clock, and when the device has done what was asked of it so far. It notes what the benchmark does."""

    def __init__(self, disturbed):
        self.now, self.free, self.steps, self.disturbed = 0, 0, 0, disturbed
        self.readings, self.made, self.started, self.results = [], [], [], []

    def clock(self):
        self.readings.append((self.now, len(self.started), len(self.made)))
        return self.now

    def _later(self, seconds):
        self.now += DISPATCH
        self.free = max(self.now, self.free) + seconds
        return _Array(self, self.free)

    def make(self):
        self.made.append(self._later(MAKING))
        return self.made[-1]

    def step(self, x):
        if not isinstance(x, _Array):
            raise Failed("`step` takes what `make()` returns.")
        if x.deleted:
            raise Failed("`step` donates its argument, so each of its calls needs a new one from `make()`.")
        x.deleted = True
        if not self.started:
            self.now += COMPILING
        self.started.append(x.waited)
        extra = DISTURBED if len(self.started) - 2 in self.disturbed else 0
        self.results.append(self._later(RUNNING + extra))
        return self.results[-1]


def check(benchmark):
    for repeats, disturbed in ((5, ()), (7, (2, 5)), (3, (0,)), (1, ()), (12, (4,))):
        device = _Device(disturbed)
        got = benchmark(device.make, device.step, device.clock, repeats)
        where = {"repeats": repeats, "a step": RUNNING + DISPATCH, "disturbed": list(disturbed)}
        _judge(got, device, repeats, where)


def _judge(got, device, repeats, where):
    expected = DISPATCH + RUNNING
    shown = {"input": where, "expected": expected, "got": got}
    if isinstance(got, (np.ndarray, jax.Array)) and got.ndim == 0:
        got = got.item()  # a median of NumPy or JAX
    if not isinstance(got, numbers.Real) or isinstance(got, bool):
        raise Failed("Return one number: the time of one step.", **shown)
    first = next((steps for _, steps, _ in device.readings), 0)
    if not device.started or not device.readings:
        raise Failed("Call `step`, and read the `clock()` before and after.", **shown)
    if first == 0 and got >= COMPILING / (repeats + 1) and not device.disturbed:
        raise Failed(
            "The first call compiles, and the clock is running already: warm up before you start it.", **shown
        )
    if len(device.started) < repeats + 1:
        raise Failed(
            f"{repeats} repeats are asked for, besides the one that warms up, and `step` ran {len(device.started)} times.",
            **shown,
        )
    if got == expected:
        return
    if not all(result.waited for result in device.results[1:]):
        raise Failed(
            "The clock stops when `step` has returned, and the device still computes: wait for the result first.",
            **shown,
        )
    if not all(device.started[1:]):
        raise Failed(
            "When the clock starts, the device still makes the argument: wait for what `make()` returned before you start it.",
            **shown,
        )
    if got in (expected + MAKING, expected + MAKING + DISPATCH):
        raise Failed("The time of `make` is in it: make the argument before the clock starts.", **shown)
    if RUNNING <= got < expected:
        raise Failed(
            "All steps are timed together: then one that another program disturbs counts with the others. Read the clock before and after "
            "each step, and return the median.",
            **shown,
        )
    if device.disturbed and got > expected:
        raise Failed(
            "Another program disturbed some of the repeats, and they are in the result: take the median.",
            **shown,
        )
    raise Failed("The time is not that of one step.", **shown)


exercise = Exercise(
    title="Fix a benchmark with five faults",
    stars=3,
    minutes=20,
    why="A benchmark says what happened between two readings of the clock, so nothing else may happen there, and nothing may be left over.",
    hints=(
        "Follow the clock: what happens between its two readings? What was asked for earlier, and is not done yet? What is not done when it stops?",
        "Before the loop: `jax.block_until_ready(step(make()))`. In the loop, make an argument and wait for it; then start the clock.",
        "Read the clock in each round, collect the differences, and return `statistics.median` of them.",
    ),
    solution=solution,
    check=check,
)
