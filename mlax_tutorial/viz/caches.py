"""``viz.jit_cache``: the cache of a jitted function filling, call by call.

`mlax_tutorial.inspection.retracing` notes what happens, and `Cache` shows it: in a notebook as a figure to step through, in a terminal as a table.
The markup is made in `_caches_page`.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import jax

from mlax_tutorial.inspection.retracing import Watched, watch
from mlax_tutorial.viz import _caches_page


class Cache:
    """The calls of a jitted function and what ran for each; a notebook shows a figure, a terminal a table."""

    def __init__(self, watched: Watched):
        self.watched = watched

    def _repr_html_(self):
        return _caches_page.page(self.watched)

    def __repr__(self):
        return repr(self.watched)


def jit_cache(function: Callable, *calls: Any, **options: Any) -> Cache:
    """Show which of these calls ``jax.jit`` traces, why, and which take a program from the cache.

    The function is called with each of the arguments in turn; a call that raises is shown as such. Its cache is as it was left: clear it
    first (``f.clear_cache()``) to begin with an empty one.

    Args:
      function: jitted or not; or what `retracing.watch` returned, whose calls so far are then shown as well.
      *calls: a tuple of arguments each; a dict stands for arguments by name, anything else for a single argument. A
        call with a ``jax.ShapeDtypeStruct`` in it is only traced.
      **options: for ``jax.jit``, such as ``static_argnames``, if the function is not jitted yet.

    Returns:
      A `Cache`: as the last expression of a cell it is a figure with a button for the next call and one for the call
      before. Each program is a column; a full dot is a trace, an empty one a find.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> viz.jit_cache(lambda x: 2 * x, jnp.ones(3), jnp.zeros(3), jnp.ones(4))
      <lambda>: 3 calls, 2 traced
        1  x f32[3]  traced          the first call
        2  x f32[3]  from the cache
        3  x f32[4]  traced          x: f32[3] -> f32[4], another shape
    """
    watched = function if isinstance(function, Watched) else watch(function, **options)
    for call in calls:
        args, kwargs = (
            (call, {}) if isinstance(call, tuple) else ((), call) if isinstance(call, dict) else ((call,), {})
        )
        placeholders = any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs)))
        with contextlib.suppress(Exception):  # it is noted
            watched.trace(*args, **kwargs) if placeholders else watched(*args, **kwargs)
    return Cache(watched)
