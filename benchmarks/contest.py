"""Run a workload's contenders in turns, after seeing that they compute the same."""

import dataclasses
import statistics
import time
from collections.abc import Iterable

import jax
import numpy as np

from benchmarks.workload import Workload
from mlax_tutorial import timing

LEARNING_RATE = 0.01
LEARNING_RATES = (0.01, 0.02, 0.05, 0.1, 0.2)


class Differs(AssertionError):
    """A contender does not compute what the hand-written step computes."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What came out for one contender: seconds, one figure a round, and the number of traces."""

    steps: tuple[float, ...]
    first_calls: tuple[float, ...]
    traces: int


@dataclasses.dataclass
class Tally:
    """Counts how often it is called: a call in a jitted function is a trace."""

    count: int = 0

    def __call__(self):
        self.count += 1


def run(workload: Workload, names: Iterable[str], rounds: int, first_calls: int) -> dict[str, Result]:
    """Measures the named contenders of a workload; the first one is what the others must equal."""
    chosen = {name: workload.contenders[name] for name in names}
    weights, batch = workload.weights(), workload.batch()
    firsts = []
    for _ in range(first_calls):
        begun = {name: begin(contender, weights, batch) for name, contender in chosen.items()}
        check_equal({name: losses for name, (_, losses) in begun.items()})
        firsts.append({name: seconds for name, (seconds, _) in begun.items()})
    small = workload.small()
    traces = {name: count_traces(contender, small, batch) for name, contender in chosen.items()}
    steps = {name: contender(weights, batch, Tally())(LEARNING_RATE) for name, contender in chosen.items()}
    times = timing.compare(steps, repeats=rounds)
    return {
        name: Result(times[name].repeats, tuple(first[name] for first in firsts), traces[name])
        for name in chosen
    }


def begin(contender, weights, batch) -> tuple[float, list[float]]:
    """Seconds for trace, compilation and one step; and the losses of the first three steps."""
    jax.clear_caches()
    step = contender(weights, batch, Tally())(LEARNING_RATE)
    begun = time.perf_counter()
    loss = jax.block_until_ready(step())
    seconds = time.perf_counter() - begun
    return seconds, [float(loss), float(step()), float(step())]


def check_equal(found: dict[str, list[float]]) -> None:
    """Raises `Differs` unless all losses are those of the first contender, and training does something."""
    first, wanted = next(iter(found.items()))
    if len(set(wanted)) < len(wanted):
        raise Differs(f"{first}: the loss does not change: {wanted}")
    for name, got in found.items():
        if not np.allclose(got, wanted, rtol=1e-4, atol=0):
            raise Differs(f"{name}: losses {got}, but {first} has {wanted}")


def count_traces(contender, weights, batch) -> int:
    """How often five learning rates have the loss traced."""
    tally = Tally()
    start = contender(weights, batch, tally)
    for learning_rate in LEARNING_RATES:
        step = start(learning_rate)
        for _ in range(2):
            step()
    return tally.count


def ratios(seconds: Iterable[float], to: Iterable[float]) -> tuple[float, float, float]:
    """The quartiles of the ratios, round by round: a quarter, the half (the median), three quarters."""
    each = [a / b for a, b in zip(seconds, to, strict=True)]
    return tuple(statistics.quantiles(each, n=4, method="inclusive")) if len(each) > 1 else (each[0],) * 3
