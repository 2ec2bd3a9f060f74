"""When two hyperparameters are the same: by value and type, functions included; and how they travel.

A layer is a static argument to ``jax.jit``, so two layers that mean the same should be equal (or the step
is traced again), and two that differ must not be (or the wrong program runs). Plain Python equality fails
both ways: ``1 == 1.0 == True``, while ``lecun_normal() != lecun_normal()``.
"""

import dataclasses
import enum
import functools
import importlib
import operator
import pathlib
import sys
import types
from typing import Any

import numpy as np


def by_value(value) -> Any:
    """A hashable stand-in for ``value``: equal exactly when type and value are equal.

    A function counts by its code, its defaults, and the variables that it reads from around it, enclosed or global,
    as they are now; a ``functools.partial`` by its parts. So ``lecun_normal()`` equals ``lecun_normal()``, and a
    notebook's ``lambda x: scale * x`` made again after a change of ``scale`` is another function. Functions of
    your own that it calls are looked into in the same way; those of installed packages do not change.

    What may change without a trace, an array or an object of a class of your own, say, cannot be compared: a function
    that reads such a thing counts by identity, so one that is made again is traced again. So does one that calls itself.

    Raises:
      TypeError: if ``value`` is not hashable.
    """
    return _by_value(value, ())


class _Doubt(Exception):
    """What a function reads may have changed."""


def _by_value(value, within) -> Any:
    """As `by_value`; ``within`` are the functions that are being looked at."""
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if isinstance(value, float):
        return type(value), value.hex()  # tells 0.0 from -0.0, and NaN equals itself
    if isinstance(value, complex):
        return type(value), value.real.hex(), value.imag.hex()
    if isinstance(value, (tuple, frozenset)):
        kind = frozenset if isinstance(value, frozenset) else tuple
        return type(value), kind(_by_value(item, within) for item in value)
    if isinstance(value, (functools.partial, types.FunctionType)):
        if any(value is function for function in within):
            raise _Doubt
        try:
            return _parts(value, (*within, value))
        except _Doubt:
            if within:
                raise
            return value
    hash(value)
    if within and not _is_constant(value):
        return _parts_of_object(value, within)
    return type(value), value


def _parts(function, within) -> Any:
    if isinstance(function, functools.partial):
        keywords = sorted(function.keywords.items())
        return functools.partial, _by_value((function.func, function.args, *keywords), within)
    try:
        installed = _is_installed(
            function.__globals__.get("__name__")
        )  # __module__ may be copied from what is wrapped
        if len(within) > 1 and installed and _is_named(function):
            return function
        enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
        defaults = (function.__defaults__, *sorted((function.__kwdefaults__ or {}).items()))
        own = _by_value((*enclosed, defaults), within)
        around = () if installed else _globals_of(function, within)
    except (TypeError, ValueError):  # unhashable, or not yet filled
        raise _Doubt from None
    return function.__code__, id(function.__globals__), own, around


def _globals_of(function, within) -> tuple[Any, ...]:
    """The global variables that ``function`` may read, as they are now, by name."""

    def names(code):
        inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        return set(code.co_names).union(*map(names, inner))

    around = function.__globals__
    found = sorted(names(function.__code__) & around.keys())
    return tuple((name, _by_value(around[name], within)) for name in found)


def _is_constant(value) -> bool:
    """Whether ``value``, which is no container and no function of Python, cannot change, or is compared by value."""
    if value is None or value is ... or isinstance(value, (bool, int, str, bytes, np.dtype, enum.Enum)):
        return True
    if isinstance(value, types.ModuleType):
        return _is_installed(value.__name__)
    if callable(value) and not isinstance(value, types.MethodType):
        return _is_installed(getattr(value, "__module__", None))
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")  # meshes, specs


def _parts_of_object(value, within) -> Any:
    """What a jitted function, a method or a frozen dataclass is made of."""
    if isinstance(value, types.MethodType):
        return types.MethodType, _by_value((value.__func__, value.__self__), within)
    if callable(value) and isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
        return value, _by_value(value.__wrapped__, within)
    if (
        dataclasses.is_dataclass(value)
        and not isinstance(value, type)
        and type(value).__dataclass_params__.frozen
    ):
        fields = tuple(getattr(value, field.name) for field in dataclasses.fields(value))
        return type(value), _by_value(fields, within)
    raise _Doubt


@functools.cache
def _is_installed(module: str | None) -> bool:
    """Whether a module is Python's own, of an installed package, or of this one, and so does not change."""
    top = (module or "__main__").partition(".")[0]
    if top == "__main__":  # a notebook; its file may be that of the program that runs it
        return False
    if top in sys.stdlib_module_names or top == __name__.partition(".")[0]:
        return True
    found = sys.modules.get(top)
    folders = [getattr(found, "__file__", None), *getattr(found, "__path__", ())]
    parts = {part for folder in folders if folder for part in pathlib.Path(folder).parts}
    return bool(parts & {"site-packages", "dist-packages"})


def _is_named(value) -> bool:
    """Whether ``value`` can be found by the name of its module and its own."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return False
    try:
        return _find(module, name) is value
    except (KeyError, AttributeError, ImportError):  # made inside a function, say
        return False


def portable(value) -> Any:
    """A stand-in for ``value`` that unpickles as ``value``, whether or not ``value`` pickles.

    ``jax.jit`` and ``jax.custom_jvp`` return objects that do not pickle, so neither would ``F(jax.nn.relu)``. What
    can be found by its name travels by its name.
    """
    if type(value) is tuple:
        return tuple(map(portable, value))
    if isinstance(value, functools.partial):
        parts = portable((value.func, *value.args))
        return _Call(_partial, parts, {name: portable(item) for name, item in value.keywords.items()})
    if callable(value) and _is_named(value):
        return _Call(_find, value.__module__, value.__qualname__)
    return value


class _Call:
    """Pickles as the result of a call."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def _find(module: str, name: str) -> Any:
    loaded = sys.modules.get(module) or importlib.import_module(module)  # imports: nothing of this project
    return operator.attrgetter(name)(loaded)


def _partial(parts, keywords):
    return functools.partial(*parts, **keywords)
