"""``viz.jit_cache``: the cache of a jitted function filling, call by call.

`mlax_tutorial.inspection.retracing` notes what happens, and `Cache` shows it: in a notebook as a figure to step through, in a terminal as a table.
The markup is made in `page`.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.inspection import retracing
from mlax_tutorial.inspection.retracing import Watched, watch
from mlax_tutorial.viz.figures.jit_cache import page

# What a further call can be given on the page. Of the first, the reader chooses the shape.
ARRAYS = {
    "jnp float32": lambda shape: jnp.zeros(shape, jnp.float32),
    "jnp bfloat16": lambda shape: jnp.zeros(shape, jnp.bfloat16),
    "jnp float16": lambda shape: jnp.zeros(shape, jnp.float16),
    "jnp int32": lambda shape: jnp.zeros(shape, jnp.int32),
    "NumPy float64": lambda shape: np.zeros(shape),
}
NUMBERS = {"Python float": 2.0, "Python int": 2, "Python bool": True}
SHAPES = 6  # to choose from at most


@dataclasses.dataclass(frozen=True)
class Further:
    """A call that the reader can make on the page: the last one, with another value of one argument.

    Attributes:
      kind, shape: what is given.
      value: it.
      key: what the call is looked up by.
      part: the argument's part of it.
      equations: how many a trace of it records, or None if it raises.
      error: what it raises, or "".
    """

    kind: str
    shape: tuple[int, ...]
    value: Any
    key: retracing.Key
    part: retracing.Part
    equations: int | None
    error: str


@dataclasses.dataclass(frozen=True)
class Choices:
    """What the reader can call next: the argument's name, the shapes, and a `Further` for each kind and shape."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    all: tuple[Further, ...]


class Cache:
    """The calls of a jitted function and what ran for each; a notebook shows a figure, a terminal a table.

    Attributes:
      watched: the calls and the programs.
      choices: further calls, if the reader can make some; else None.
    """

    def __init__(self, watched: Watched, choices: Choices | None = None):
        self.watched, self.choices = watched, choices

    def _repr_html_(self):
        return page.write(self.watched, self.choices)

    def __repr__(self):
        return repr(self.watched)


def jit_cache(function: Callable, *calls: Any, choose: str | None = None, **options: Any) -> Cache:
    """Show which of these calls ``jax.jit`` traces, why, and which take a program from the cache.

    The function is called with each of the arguments in turn; a call that raises is shown as such. Its cache is as it was left: clear it
    first (``f.clear_cache()``) to begin with an empty one.

    Args:
      function: jitted or not; or what `retracing.watch` returned, whose calls so far are then shown as well.
      *calls: a tuple of arguments each; a dict stands for arguments by name, anything else for a single argument. A
        call with a ``jax.ShapeDtypeStruct`` in it is only traced.
      choose: the name of an argument that is an array in the last call. On the page the reader makes further calls, as the last but
        with another shape and type of this argument, and sees which are traced. The page looks them up itself, without a kernel;
        what each would record is found out here, of a copy, so the function's cache is left alone.
      **options: for ``jax.jit``, such as ``static_argnames``, if the function is not jitted yet.

    Returns:
      A `Cache`: as the last expression of a cell it is a figure with a button for the next call and one for the call
      before. Each program is a column; a full dot is a trace, an empty one a find.

    Raises:
      ValueError: if ``choose`` names no array of the last call, that call raised, or the function is jitted already.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> viz.jit_cache(lambda x: 2 * x, jnp.ones(3), jnp.zeros(3), jnp.ones(4))
      <lambda>: 3 calls, 2 traced
        1  x f32[3]  traced          the first call
        2  x f32[3]  from the cache
        3  x f32[4]  traced          x: f32[3] -> f32[4], another shape
      >>> figure = viz.jit_cache(lambda x: 2 * x, jnp.ones(3), choose="x")
      >>> figure.choices.shapes, len(figure.choices.all)
      (((3,), ()), 13)
    """
    jitted = isinstance(function, Watched) or hasattr(function, "lower")
    if choose is not None and jitted:
        raise ValueError(
            "viz.jit_cache: to choose, give the function as it is, and the options of jax.jit here: its copy is jitted, too"
        )
    watched = function if isinstance(function, Watched) else watch(function, **options)
    for call in calls:
        args, kwargs = _arguments(call)
        placeholders = any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs)))
        with contextlib.suppress(Exception):  # it is noted
            watched.trace(*args, **kwargs) if placeholders else watched(*args, **kwargs)
    if choose is None:
        return Cache(watched)
    if not calls or watched.calls[-1].error:
        raise ValueError(
            "viz.jit_cache: to choose, give a call to begin with, the last of which does not raise"
        )
    return Cache(watched, _choices(function, *_arguments(calls[-1]), watched, choose, options))


def _arguments(call):
    return (call, {}) if isinstance(call, tuple) else ((), call) if isinstance(call, dict) else ((call,), {})


def _choices(function, args, kwargs, watched, name, options) -> Choices:
    """Traces a copy of the function for each kind and shape of the argument."""
    names = list(retracing.positional_names(watched.function, len(args)))
    part = next((part for part in watched.calls[-1].key.parts if part.name == name), None)
    if part is None or part.static or name not in (*names, *kwargs):
        arrays = [part.name for part in watched.calls[-1].key.parts if not part.static]
        raise ValueError(
            f"viz.jit_cache: choose must name an argument that is an array in the last call, one of {arrays}; got {name!r}"
        )
    copy = jax.jit(functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs)), **options)
    seen = [
        part.value.shape
        for call in watched.calls
        for part in call.key.parts
        if part.name == name and not part.static
    ]
    shapes = tuple(dict.fromkeys([*seen, ()]))[:SHAPES]
    given = [(kind, shape, make(shape)) for kind, make in ARRAYS.items() for shape in shapes]
    given += [(kind, (), value) for kind, value in NUMBERS.items()]
    found = []
    for kind, shape, value in given:
        here = tuple(value if each == name else argument for each, argument in zip(names, args, strict=True))
        by_name = {each: value if each == name else argument for each, argument in kwargs.items()}
        key, equations, error = retracing.key(watched.function, here, by_name), None, ""
        try:
            equations = len(copy.trace(*here, **by_name).jaxpr.eqns)
        except Exception as raised:
            error = f"{type(raised).__name__}: {(str(raised).strip().splitlines() or [''])[0]}"
        part = next(part for part in key.parts if part.name == name)
        found.append(Further(kind, shape, value, key, part, equations, error))
    return Choices(name, shapes, tuple(found))
