"""``viz.timeline``: what the host and the device do while a loop runs, measured from the reader's own functions.

`watch` calls a loop with its functions wrapped by a clock. The host's part of a call ends when the call returns; the device's
part ends when the result is there, which a thread of its own waits for. The markup is made in `page`.
"""

import dataclasses
import inspect
import queue
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.viz.figures.timeline import page

MOST_CALLS = 200  # shown of one loop
MOST_FUNCTIONS = 5  # that colours can tell apart


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of a function, in seconds since the first call of its loop.

    Attributes:
      name: of the function.
      number: of the call among those of its function, from 1.
      start, end: when the host entered and left it.
      begun, ready: when the device can have begun, and when the result was there; ``None`` for a call that gave the
        device nothing to do.
    """

    name: str
    number: int
    start: float
    end: float
    begun: float | None = None
    ready: float | None = None

    @property
    def device(self) -> float:
        return 0.0 if self.ready is None else self.ready - self.begun


@dataclasses.dataclass(frozen=True)
class Run:
    """A loop that was watched: its name, its calls, and how long it took until the last result was there."""

    name: str
    calls: tuple[Call, ...]
    seconds: float

    @property
    def host(self) -> float:
        """The part of the time that the host spent in the functions."""
        return sum(call.end - call.start for call in self.calls) / self.seconds

    @property
    def device(self) -> float:
        """The part of the time that the device was at work for them."""
        return sum(call.device for call in self.calls) / self.seconds

    def median(self, name: str, device: bool = False) -> float:
        spent = [call.device if device else call.end - call.start for call in self.calls if call.name == name]
        return statistics.median(spent)


class Timeline:
    """Loops that were watched; a notebook shows two rows for each, host and device, a terminal a table."""

    def __init__(self, runs: tuple[Run, ...], names: tuple[str, ...]):
        self.runs, self.names = runs, names

    def __getitem__(self, name: str) -> Run:
        return next(run for run in self.runs if run.name == name)

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def timeline(loops: Callable | Mapping[str, Callable], /, **functions: Callable) -> Timeline:
    """Show what the host and the device do while a loop runs.

    The loop is called with each of the functions by its keyword, wrapped by a clock, and otherwise as it is. It runs twice: once
    to compile, once to be measured. A call's bar in the host's row lasts from its start to its return; its bar in
    the device's row ends when the last of the smallest arrays that it returned is ready, and begins no earlier than the call and
    the end of the bar before. So a device is taken to do one thing at a time, and a result that is noticed late, on a CPU whose
    cores are all busy, lengthens its own bar and shortens the next. What a loop does besides its functions leaves a gap; what it does
    before the first of them is left out.

    Args:
      loops: a function whose arguments are the functions of its body; or several by name, drawn to one scale.
      **functions: at most five, by the names of the loop's arguments: a step, what loads a batch, ``float``, …

    Returns:
      A `Timeline`: as the last expression of a cell, two rows of bars for each loop, and a table of medians.

    Raises:
      ValueError: if there are no functions, more than five, one that is none, or a loop that takes other ones or calls none.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> def loop(step, wait):
      ...     x = jnp.ones(3)
      ...     for _ in range(4):
      ...         x = step(x)
      ...         wait(x[0])
      >>> figure = viz.timeline(loop, step=jax.jit(jnp.sin), wait=float)
      >>> [(call.name, call.number) for call in figure.runs[0].calls][:3]
      [('step', 1), ('wait', 1), ('step', 2)]
    """
    loops = loops if isinstance(loops, Mapping) else {getattr(loops, "__name__", "loop"): loops}
    if not 1 <= len(functions) <= MOST_FUNCTIONS:
        raise ValueError(
            f"timeline: name one to {MOST_FUNCTIONS} functions of the loop, step=…, got {len(functions)}."
        )
    for name, function in functions.items():
        if not callable(function):
            raise ValueError(f"timeline: {name} must be a function, got {type(function).__name__}.")
    runs = []
    with jax.debug_key_reuse(False), jax.check_tracer_leaks(False):  # the guards cost time at each call
        for name, loop in loops.items():
            _check_loop(name, loop, functions)
            watch(name, loop, functions)
            runs.append(watch(name, loop, functions))
    return Timeline(tuple(runs), tuple(functions))


def watch(name: str, loop: Callable, functions: Mapping[str, Callable]) -> Run:
    """As `timeline`, for one loop and one time, and without the figure."""
    calls, waiting, ready, counts = [], queue.SimpleQueue(), {}, dict.fromkeys(functions, 0)

    def wait():
        while (item := waiting.get()) is not None:
            index, array = item
            try:
                array.block_until_ready()
                ready[index] = time.perf_counter()
            except RuntimeError:  # it was donated meanwhile: the next result tells
                continue

    def clocked(name, function):
        def call(*args, **kwargs):
            start = time.perf_counter()
            result = function(*args, **kwargs)
            end = time.perf_counter()
            counts[name] += 1
            arrays = [leaf for leaf in map(_bits, jax.tree.leaves(result)) if _can_be_watched(leaf)]
            if arrays:
                # The smallest, and of those the last: a loss, rather than a part of the state, which is soon donated.
                array = min(reversed(arrays), key=lambda leaf: leaf.nbytes)
                if array.is_ready():
                    ready[len(calls)] = end
                else:
                    waiting.put((len(calls), array))
            calls.append((name, counts[name], start, end))
            return result

        return call

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        loop(**{name: clocked(name, function) for name, function in functions.items()})
    finally:
        left = time.perf_counter()
        waiting.put(None)
        thread.join()
    if not calls:
        raise ValueError(f"timeline: the loop {name} called none of {', '.join(functions)}.")
    began = calls[0][2]  # what the loop sets up before is left out
    return Run(name, _placed(calls, ready, began), max([left, *ready.values()]) - began)


def _placed(calls, ready, began):
    """The calls with the device's part, which begins where the one before ends."""
    placed, free = [], began
    for index, (name, number, start, end) in enumerate(calls):
        done = ready.get(index)
        begun = None
        if done is not None:
            begun = min(max(start, free), done)
            free = max(free, done)
            begun, done = begun - began, done - began
        placed.append(Call(name, number, start - began, end - began, begun, done))
    return tuple(placed)


def _bits(leaf):
    """Of typed keys, the array behind them; anything else as it is."""
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key and not isinstance(leaf, jax.core.Tracer) else leaf


def _can_be_watched(leaf: Any) -> bool:
    return hasattr(leaf, "is_ready") and not isinstance(leaf, jax.core.Tracer) and not leaf.is_deleted()


def _check_loop(name, loop, functions):
    if not callable(loop):
        raise ValueError(f"timeline: {name} must be a function that runs a loop, got {type(loop).__name__}.")
    try:
        inspect.signature(loop).bind(**functions)
    except TypeError as error:
        raise ValueError(
            f"timeline: the loop {name} takes {inspect.signature(loop)}, but the functions are "
            f"{', '.join(functions)}: {error}."
        ) from None
