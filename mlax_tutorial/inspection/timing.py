"""An honest clock: what a call takes, and how many times longer one takes than another.

The chapter *Arrays* derives it. Six rules, each of which changes the answer where it is broken:

1. *Warm up.* The first call of a jitted function also traces and compiles. It is not counted.
2. *Wait.* JAX returns before the result exists; the clock stops when the result is there.
3. *Repeat, and take the median.* A machine has other things to do, and the mean counts them in.
4. *Group short calls*, so that reading the clock does not weigh.
5. *Take turns.* Contenders run round by round, so that a machine that slows down slows all of them, and
   what is reported is the median of each round's ratio.
6. *Guards off.* Checks for reused keys and leaks cost time on every call; the clock runs without them.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

# One reading of the clock covers as many calls as fit into about this time.
GROUP_SECONDS = 2e-3


@dataclasses.dataclass(frozen=True)
class Time:
    """How long one call took, in seconds: one figure for each repeat."""

    repeats: tuple[float, ...]

    def __post_init__(self):
        if not self.repeats:
            raise ValueError("a time needs at least one reading of the clock: repeats must be at least 1")

    @property
    def median(self) -> float:
        return statistics.median(self.repeats)

    @property
    def spread(self) -> tuple[float, float]:
        """The shortest and the longest."""
        return min(self.repeats), max(self.repeats)

    def __repr__(self):
        low, high = (in_words(seconds) for seconds in self.spread)
        return f"{in_words(self.median)} (median of {len(self.repeats)}, from {low} to {high})"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The times of several contenders, taken in turns. It prints as a table, the first contender being 1."""

    times: Mapping[str, Time]

    def __post_init__(self):
        if not self.times:
            raise ValueError("there is nothing to compare: name at least one function")

    def __getitem__(self, name: str) -> Time:
        return self.times[name]

    def ratio(self, name: str, to: str) -> float:
        """How many times longer ``name`` takes than ``to``: the median of the ratios of all rounds."""
        rounds = zip(self.times[name].repeats, self.times[to].repeats, strict=True)
        return statistics.median(a / b for a, b in rounds)

    def __repr__(self):
        first, width = next(iter(self.times)), max(map(len, self.times))
        return "\n".join(
            f"{name:{width}}  {in_words(spent.median):>8}  {self.ratio(name, first):8.3g} x"
            for name, spent in self.times.items()
        )


def measure(function: Callable, *args, repeats: int = 7) -> Time:
    """Times ``function(*args)``.

    Args:
      function: what is timed. It must return its results, or nobody can wait for them.
      *args: its arguments: made before the clock starts, and not donated, as every call gets the same ones.
      repeats: how many readings of the clock.

    Returns:
      A :class:`Time`, in seconds for one call.

    Raises:
      TypeError: if what the function returns cannot be waited for.
      ValueError: if ``repeats`` is below 1.

    Example:
      >>> import jax.numpy as jnp
      >>> spent = measure(jax.jit(jnp.sum), jnp.ones(1000))
      >>> 0 < spent.spread[0] <= spent.median <= spent.spread[1] < 1
      True
    """
    return compare({"it": lambda: function(*args)}, repeats=repeats)["it"]


def compare(contenders: Mapping[str, Callable[[], Any]], *, repeats: int = 7) -> Comparison:
    """Times several functions without arguments in turns: first, second, third, first, second, …

    Args:
      contenders: names, and functions without arguments: ``{"numpy": lambda: np.sum(x), …}``.
      repeats: how many rounds.

    Returns:
      A :class:`Comparison`.

    Raises:
      TypeError: if what a function returns cannot be waited for.
      ValueError: if there is nothing to time, or ``repeats`` is below 1.

    Example:
      >>> x = np.ones(100_000)
      >>> both = compare({"all": lambda: x.sum(), "a tenth": lambda: x[:10_000].sum()})
      >>> both.ratio("all", to="a tenth") > 1
      True
    """
    _forget_slow_paths()
    with jax.debug_key_reuse(False), jax.check_tracer_leaks(False):
        clocks = {name: _clock(name, function) for name, function in contenders.items()}
        rounds = [{name: clock() for name, clock in clocks.items()} for _ in range(repeats)]
    return Comparison({name: Time(tuple(turn[name] for turn in rounds)) for name in contenders})


def _forget_slow_paths():
    """Up to JAX 0.11 a function that was first called with the guard on stays slow when the guard is off."""
    if jax.config.jax_debug_key_reuse and jax.__version_info__ < (0, 12):
        jax.clear_caches()  # 7 microseconds a call instead of 140


def _clock(name, function):
    """A function that returns the seconds that one call takes now, after warming up."""
    wait = _waiter(name, function())
    calls, spent = 1, _spent(function, wait, 1)
    while spent < GROUP_SECONDS and calls < 10_000:
        calls = min(10_000, max(2 * calls, round(calls * GROUP_SECONDS / max(spent, 1e-7))))
        spent = _spent(function, wait, calls)
    return lambda: _spent(function, wait, calls) / calls


def _spent(function, wait, calls):
    start = time.perf_counter()
    for _ in range(calls):
        wait(function())
    return time.perf_counter() - start


def _waiter(name, result):
    """What waits for results of this kind, at the least cost to the clock."""
    leaves = jax.tree.leaves(result)
    for leaf in leaves:
        if isinstance(leaf, jax.core.Tracer):
            raise TypeError(
                f"{name} is being traced, not run: there is nothing to time. Measure outside of jit, grad and vmap"
            )
        if not isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex)):
            raise TypeError(
                f"{name} returned a {type(leaf).__name__}, and there is no way to wait for one: "
                "let it return arrays, or containers of arrays"
            )
    if not leaves:
        raise TypeError(
            f"{name} returned nothing to wait for: let it return its results, or the clock may stop before they exist"
        )
    if not any(isinstance(leaf, jax.Array) for leaf in leaves):
        return lambda result: result  # NumPy and Python return when they are done
    if isinstance(result, jax.Array):
        return lambda result: result.block_until_ready()  # the same as below, without a search for leaves
    return jax.block_until_ready


def in_words(seconds: float) -> str:
    """A time in the unit that suits it, with three digits.

    >>> in_words(0.00001234), in_words(2.5), in_words(0.9999e-3)
    ('12.3 µs', '2.50 s', '1.00 ms')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= 0.9995 * size or unit == "ns":
            number = seconds / size
            digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
            return f"{number:.{digits}f} {unit}"
    raise AssertionError
