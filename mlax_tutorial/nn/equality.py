"""When two hyperparameters are the same: by value and type; and how they travel.

A layer is a static argument to ``jax.jit``, so two layers that mean the same should be equal (or the step
is traced again), and two that differ must not be (or the wrong program runs). Plain Python equality fails
both ways: ``1 == 1.0 == True``, while ``lecun_normal() != lecun_normal()``.
"""

import functools
import pkgutil
import types
from typing import Any

import jax
import numpy as np

# What this module's functions return, lecun_normal() say, are closures over numbers.
_INITIALIZERS = jax.nn.initializers.lecun_normal.__globals__


def by_value(value) -> Any:
    """A hashable key for ``value``: equal exactly when type and value are equal.

    Numbers and tuples count by value; so do a ``functools.partial`` and the initializers of ``jax.nn.initializers``,
    by their parts. Any other function counts by identity: what it reads may have changed since, so one that is
    defined again is traced again.

    Raises:
      TypeError: if ``value`` is not hashable.
    """
    if isinstance(value, (np.generic, float, complex)):
        return type(value), repr(value)  # tells 0.0 from -0.0, and NaN equals itself
    for kind in (tuple, frozenset):
        if isinstance(value, kind):
            return type(value), kind(map(by_value, value))
    if isinstance(value, functools.partial):
        named = sum(sorted(value.keywords.items()), ())
        return _parts(value, value.func, *value.args, *named)
    if isinstance(value, types.FunctionType) and value.__globals__ is _INITIALIZERS and value.__closure__:
        return _parts(value, value.__code__, *[cell.cell_contents for cell in value.__closure__])
    hash(value)
    return type(value), value


def _parts(whole, *parts) -> Any:
    # What hashes by identity, and is no function, may change without a trace: then the whole counts by identity, too.
    fixed = all(callable(part) or type(part).__hash__ is not object.__hash__ for part in parts)
    return type(whole), by_value(parts) if fixed else whole


def portable(value) -> Any:
    """A substitute for ``value`` that unpickles as ``value``, whether or not ``value`` pickles.

    ``jax.jit`` and ``jax.custom_jvp`` return objects that do not pickle, so neither would ``F(jax.nn.relu)``. What
    can be found by its name travels by its name.
    """
    if type(value) is tuple:
        return tuple(map(portable, value))
    if isinstance(value, functools.partial):
        keywords = {name: portable(item) for name, item in value.keywords.items()}
        return functools.partial(portable(value.func), *map(portable, value.args), **keywords)
    try:
        name = f"{value.__module__}:{value.__qualname__}"
        if pkgutil.resolve_name(name) is value:
            return _Named(name)
    except (AttributeError, ImportError, ValueError):  # no function, or one made inside of another
        pass
    return value


class _Named:
    """Pickles as what has this name; it may stand for the function of a partial, which asks for a callable."""

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return pkgutil.resolve_name, (self.name,)

    def __call__(self):
        return pkgutil.resolve_name(self.name)
