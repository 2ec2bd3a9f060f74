"""Honest timing of JAX functions: warm up, wait for the result, repeat, take the median.

A call to a JAX function returns before the work is done, and the first call also traces and compiles. A
stopwatch round one bare call therefore measures the wrong thing twice.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Timing(NamedTuple):
    """Seconds per call.

    Attributes:
      median: of all rounds.
      low, high: the quartiles: half of all rounds lie between.
      rounds: how many rounds were timed.
    """

    median: float
    low: float
    high: float
    rounds: int

    def __repr__(self):
        return f"{_seconds(self.median)} a call (half of {self.rounds} rounds in {_seconds(self.low)} to {_seconds(self.high)})"


def measure(function: Callable, *args: Any, rounds: int = 7, seconds: float = 0.02) -> Timing:
    """Time ``function(*args)``, waiting for its result.

    Args:
      function: any function; what it returns may hold arrays, on which the timer waits.
      *args: its arguments.
      rounds: how many times to measure; the median counts.
      seconds: at least this long per round: quick functions are called many times in a row.

    Returns:
      A `Timing`, per call.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> measure(jax.jit(jnp.sum), jnp.ones(10)).median > 0
      True
    """
    return compare({"only": lambda: function(*args)}, rounds=rounds, seconds=seconds)["only"]


def compare(
    contenders: dict[str, Callable[[], Any]], rounds: int = 7, seconds: float = 0.02
) -> dict[str, Timing]:
    """Time several functions side by side: in each round every one takes its turn.

    Whatever slows the machine for a while then slows them all, and their ratios stay true.

    Args:
      contenders: functions without arguments, by name.
      rounds: how many rounds.
      seconds: at least this long per function and round.

    Returns:
      A `Timing` for each name.

    Raises:
      ValueError: if there is nothing to time, or less than one round.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> x = jnp.ones(1000)
      >>> times = compare({"eager": lambda: jnp.tanh(x) + x, "jit": lambda: jax.jit(jnp.tanh)(x)})
      >>> sorted(times)
      ['eager', 'jit']
    """
    if not contenders or rounds < 1:
        raise ValueError(
            f"compare needs at least one function and one round, got {len(contenders)} and {rounds}."
        )
    calls = {name: _warm_up(function, seconds) for name, function in contenders.items()}
    times = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, function in contenders.items():
            times[name].append(_time(function, calls[name]) / calls[name])
    return {name: _summarize(values) for name, values in times.items()}


def _warm_up(function: Callable[[], Any], seconds: float) -> int:
    """Call until nothing is compiled any more; return how many calls fill a round."""
    jax.block_until_ready(function())
    once = _time(function, 1)
    return max(1, min(round(seconds / max(once, 1e-9)), 10_000))


def _time(function: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        result = function()
    jax.block_until_ready(result)  # the device works in order, so the last result is the last to be ready
    return time.perf_counter() - start


def _summarize(values: list[float]) -> Timing:
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return Timing(statistics.median(values), low, high, len(values))


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
