"""``viz.key_tree``: the random keys that a function derives and uses up, as a tree; what is used twice stands out.

`record` traces the function. `reading` follows every key through the jaxpr and writes a ledger, `grouping`
makes a tree of what it finds, and `KeyTree` shows it: in a notebook as a figure to step through, in a terminal as a
listing. The markup is made in `page`.
"""

from collections.abc import Callable
from typing import Any

from mlax_tutorial.viz.figures.key_tree import page
from mlax_tutorial.viz.figures.key_tree.grouping import Drawing, Recording
from mlax_tutorial.viz.figures.key_tree.reading import read


class KeyTree:
    """The keys of a function; a notebook shows them as a figure to step through, a terminal as a listing."""

    def __init__(self, recording: Recording):
        self.recording = recording

    def _repr_html_(self):
        return page.write(self.recording)

    def __repr__(self):
        return page.listing(self.recording)


def key_tree(function: Callable, *args: Any, **kwargs: Any) -> KeyTree:
    """Show which keys ``function(*args, **kwargs)`` derives and uses up, and which it uses twice.

    The function is traced, as ``jax.jit`` would trace it: nothing is drawn. What it gets as an argument is not known
    while tracing, what its own code fixes is: ``fold_in(key, 3)`` twice is seen to be one key.

    A key is used up by a draw and by ``split``. ``fold_in`` may be applied many times, with another number each time;
    but a key that numbers are folded into should be used for nothing else. More than JAX's own check
    (``jax_debug_key_reuse``) this also finds a number folded in twice, a key that is folded and split, one seed
    in two places, and keys in the old style.

    Args:
      function: any function that ``jax.jit`` takes.
      *args, **kwargs: pytrees of arrays and keys, or of ``jax.ShapeDtypeStruct``.

    Returns:
      A `KeyTree`: as the last expression of a cell it is a figure.

    Example:
      >>> import jax
      >>> from mlax_tutorial import viz
      >>> def two(key):
      ...     first, second = jax.random.split(key)
      ...     return jax.random.normal(first, (3,)), jax.random.uniform(first)
      >>> viz.key_tree(two, jax.random.key(0))
      keys of two
        key
          split[0]  <- used twice
            normal f32[3]
            uniform f32[]
          split[1]  (not used)
    """
    return KeyTree(record(function, *args, **kwargs))


def record(function: Callable, *args: Any, **kwargs: Any) -> Recording:
    """As `key_tree`, but returns the bare `Recording`."""
    name = getattr(function, "__name__", type(function).__name__)
    return Drawing(read(function, args, kwargs)).recording("the function" if name == "<lambda>" else name)
