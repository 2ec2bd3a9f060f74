"""A device whose every time is known, for the benchmark that is to be mended."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed


class Laboratory:
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


def in_a_dict(laboratory, ready):
    """The slow one is neither first nor last, whichever way the dict is read."""
    times = {"bias": laboratory.now, "kernel": ready, "loss": laboratory.now}
    return {name: PendingArray(laboratory, time) for name, time in times.items()}


def measured(benchmark, wrap=PendingArray):
    """What a benchmark returns, and how often it called the function."""
    laboratory = Laboratory(wrap)
    got = benchmark(laboratory.function, laboratory.x, laboratory.clock)
    return got, laboratory
