"""Run a workload's contenders in turns, after seeing that they compute the same."""

import dataclasses
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping

import jax
import numpy as np

from benchmarks.workload import Workload

LEARNING_RATES = (0.01, 0.02, 0.05, 0.1, 0.2)
# A reading of the clock covers as many steps as fit into about this time. A single step of a millisecond would take a third longer
# than one in a loop does, since the contender before has filled the processor's caches.
GROUP_SECONDS = 2e-2


class Differs(AssertionError):
    """A contender does not compute what the hand-written step computes."""


@dataclasses.dataclass(frozen=True)
class Program:
    """What XLA says of the compiled step.

    Attributes:
      flops: floating-point operations. XLA counts the body of a loop once.
      bytes: read and written by all instructions, those within a fusion not counted; likewise.
      memory: arguments, results and all that lives in between, in bytes; what is donated counts once.
      instructions: lines of the optimized HLO, those within fusions included.
    """

    flops: float
    bytes: float
    memory: int
    instructions: int


@dataclasses.dataclass(frozen=True)
class Result:
    """What came out for one contender: seconds, one figure a round; traces; the program, if it is XLA's."""

    steps: tuple[float, ...]
    first_calls: tuple[float, ...]
    traces: int
    program: Program | None = None


@dataclasses.dataclass
class Tally:
    """Counts how often it is called: a call in a jitted function is a trace."""

    count: int = 0

    def __call__(self):
        self.count += 1


def run(
    workload: Workload,
    names: Iterable[str],
    rounds: int,
    first_calls: int,
    outside: Mapping[str, object] | None = None,
) -> dict[str, Result]:
    """Measures the named contenders of a workload; the first one is what the others must equal.

    Args:
      workload: which.
      names: whose.
      rounds: how often each has its turn.
      first_calls: how many of them are timed.
      outside: further contenders by name, which run in a process of their own: see `pytorch.PyTorch`.
    """
    chosen = {name: workload.contenders[name] for name in names}
    outside, rate = outside or {}, workload.learning_rate
    weights, batch = workload.weights(), workload.batch()
    if workload.without_draws:
        found = {name: begin(workload.without_draws[name], weights, batch, rate)[1] for name in chosen}
        for name, other in outside.items():
            found[name] = other.begin(workload, weights, batch, rate, draws=False)[1]
        check_equal(found)
    firsts = []
    for _ in range(first_calls):
        begun = {name: begin(contender, weights, batch, rate) for name, contender in chosen.items()}
        begun |= {name: other.begin(workload, weights, batch, rate) for name, other in outside.items()}
        # Draws differ from library to library, and the losses with them, a little.
        tolerance = 0.1 if workload.without_draws else 1e-4
        check_equal({name: losses for name, (_, losses) in begun.items()}, tolerance)
        firsts.append({name: seconds for name, (seconds, _) in begun.items()})
    small = workload.small()
    traces = {name: count_traces(contender, small, batch) for name, contender in chosen.items()}
    traces |= {name: other.count_traces(workload, small, batch) for name, other in outside.items()}
    runs = {name: contender(weights, batch, Tally())(rate) for name, contender in chosen.items()}
    programs = {name: look_at(run) for name, run in runs.items()}
    clocks = {name: clock(run.step) for name, run in runs.items()}
    clocks |= {name: other.clock() for name, other in outside.items()}
    times = in_turns(clocks, rounds)
    return {
        name: Result(times[name], tuple(first[name] for first in firsts), traces[name], programs.get(name))
        for name in clocks
    }


def begin(contender, weights, batch, learning_rate=0.01) -> tuple[float, list[float]]:
    """Seconds for trace, compilation and one step; and the losses of the first three steps."""
    jax.clear_caches()
    step = contender(weights, batch, Tally())(learning_rate).step
    begun = time.perf_counter()
    loss = jax.block_until_ready(step())
    seconds = time.perf_counter() - begun
    return seconds, [float(loss), float(step()), float(step())]


def check_equal(found: dict[str, list[float]], tolerance: float = 1e-4) -> None:
    """Raises `Differs` unless all losses are those of the first contender, and training does something."""
    first, wanted = next(iter(found.items()))
    if len(set(wanted)) < len(wanted):
        raise Differs(f"{first}: the loss does not change: {wanted}")
    for name, got in found.items():
        if not np.allclose(got, wanted, rtol=tolerance, atol=0):
            raise Differs(f"{name}: losses {got}, but {first} has {wanted}")


def count_traces(contender, weights, batch) -> int:
    """How often five learning rates have the loss traced."""
    tally = Tally()
    start = contender(weights, batch, tally)
    for learning_rate in LEARNING_RATES:
        step = start(learning_rate).step
        for _ in range(2):
            step()
    return tally.count


def look_at(run) -> Program:
    """What XLA says of a run's step."""
    compiled = run.lower().compile()
    cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
    arrays = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    return Program(
        flops=float(cost.get("flops", 0.0)),
        bytes=float(cost.get("bytes accessed", 0.0)),
        memory=arrays + memory.temp_size_in_bytes,
        instructions=compiled.as_text().count(" = "),
    )


def clock(step) -> Callable[[], float]:
    """A function that returns how many seconds a step takes now; short ones are grouped. Warms up."""

    def seconds(calls):
        begun = time.perf_counter()
        for _ in range(calls):
            jax.block_until_ready(step())
        return (time.perf_counter() - begun) / calls

    seconds(2)
    calls = max(1, round(GROUP_SECONDS / seconds(1)))
    return lambda: seconds(calls)


def in_turns(clocks: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, tuple[float, ...]]:
    """Reads all clocks, round by round: a machine that slows down slows all of them.

    Each round has an order of its own, always the same ones: who comes after a heavy one is at a disadvantage. (On a busy
    machine, the two that always came after PyTorch took twice as long as the last ones.)
    """
    draw, order = random.Random(0), list(clocks)
    readings = []
    for _ in range(rounds):
        draw.shuffle(order)
        readings.append({name: clocks[name]() for name in order})
    return {name: tuple(reading[name] for reading in readings) for name in clocks}


def ratios(seconds: Iterable[float], to: Iterable[float]) -> tuple[float, float, float]:
    """The quartiles of the ratios, round by round: a quarter, the half (the median), three quarters."""
    each = [a / b for a, b in zip(seconds, to, strict=True)]
    return tuple(statistics.quantiles(each, n=4, method="inclusive")) if len(each) > 1 else (each[0],) * 3
