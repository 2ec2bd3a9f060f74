"""Inside a chapter's kernel: notes each program that `jax.jit` runs, and compiles it for a TPU afterwards."""

import functools
import time

import jax

from tests.tpu import compiling

programs = {}  # (function, structure, shapes) -> (name, function, args, kwargs)


class Recorded:
    """A jitted function that notes the shapes of its arguments, and otherwise is the jitted function."""

    def __init__(self, jitted):
        self._jitted = jitted
        functools.update_wrapper(self, jitted)

    def __call__(self, *args, **kwargs):
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((args, kwargs)))
        called = compiling.shapes((args, kwargs))  # before the call, which may donate the arrays
        outputs = self._jitted(*args, **kwargs)
        if not traced:  # inside another program it is part of that one
            leaves, structure = jax.tree.flatten(called)
            name = getattr(self._jitted, "__name__", "program")
            programs.setdefault((id(self), structure, str(leaves)), (name, self._jitted, *called))
        return outputs

    def __getattr__(self, name):
        return getattr(self._jitted, name)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)


def start():
    """From now on, `jax.jit` returns functions that are recorded."""
    jit = jax.jit

    @functools.wraps(jit)
    def recording_jit(*args, **kwargs):
        if not args and "fun" not in kwargs:  # a decorator with settings
            return functools.partial(recording_jit, **kwargs)
        return Recorded(jit(*args, **kwargs))

    jax.jit = recording_jit


def compile_one(index: int) -> str:
    """Compiles one of the recorded programs for one chip and for eight; returns a line about it."""
    jax.config.update("jax_optimization_level", "O0")
    name, jitted, args, kwargs = list(programs.values())[index]
    begun = time.perf_counter()
    compiling.compile_for_chip(jitted, *args, **kwargs)
    args, kwargs = parallel(args), compiling.placed_arrays(kwargs)
    compiled = compiling.checked(jitted.lower(*args, **kwargs).compile())
    assert "num_partitions=8" in compiled.as_text()
    return f"{name}: {time.perf_counter() - begun:.1f} s"


def parallel(args):
    """Data-parallel arguments: a bare array whose first axis can be cut in eight is taken for a batch. Trees
    (weights, states) and whatever else there is are copied to each chip."""
    return [
        compiling.placed(arg, jax.P("data"))
        if isinstance(arg, jax.ShapeDtypeStruct) and arg.ndim and arg.shape[0] % 8 == 0
        else compiling.placed_arrays(arg)
        for arg in args
    ]
