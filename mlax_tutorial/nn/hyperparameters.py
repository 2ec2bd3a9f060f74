"""Hyperparameters: made canonical when a layer is built, hashable, compared by value and type.

A layer is a static argument to ``jax.jit``, so two layers that mean the same must be equal (or the step
is traced again), and two that differ must not be (or the wrong program runs). Plain Python equality fails
both ways: ``1 == 1.0 == True``, while ``lecun_normal() != lecun_normal()``.
"""

import dataclasses
import functools
import importlib
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.numeric import real


def hyperparameter(canonicalize: Callable[[Any], Any], **options) -> Any:
    """A field of a layer whose value passes through ``canonicalize`` (which raises ``ValueError``)."""
    return dataclasses.field(metadata={"canonicalize": canonicalize}, **options)


def integer(value, minimum: int = 1) -> int:
    """A Python ``int`` of at least ``minimum``; NumPy and concrete JAX integers are converted."""
    wanted = f"must be an integer of at least {minimum}"
    try:
        number = operator.index(value)
        if number >= minimum and not isinstance(value, bool):
            return number
    except jax.errors.TracerIntegerConversionError:
        raise ValueError(f"{wanted}, not a traced value: {_STATIC}") from None
    except TypeError:
        pass
    raise ValueError(wanted)


def axis_from_the_end(value) -> int:
    """A negative ``int``: counted from the end, so that any batch axes may stand in front."""
    wanted = "must be a negative integer, counted from the end: -1 is the last axis"
    if isinstance(value, jax.core.Tracer):
        raise ValueError(f"{wanted}; not a traced value: {_STATIC}")
    try:
        return -integer(-value)
    except (TypeError, ValueError):
        raise ValueError(wanted) from None


def axes_from_the_end(value) -> tuple[int, ...]:
    """Negative integers in ascending order, from one or from a tuple or a list of them."""
    try:
        values = value if isinstance(value, (tuple, list)) else (value,)
        axes = tuple(sorted(axis_from_the_end(item) for item in values))
    except ValueError as error:
        message = str(error).replace("a negative integer", "negative integers")
        raise ValueError(message) from None
    if len(set(axes)) < len(axes):
        raise ValueError("must be different from each other")
    return axes


def _number(allowed: Callable[[float], bool], wanted: str) -> Callable[[Any], float]:
    """A Python ``float`` that is allowed; NaN never is."""

    def canonicalize(value):
        try:
            number = real(value)
            if allowed(number):
                return number
        except jax.errors.ConcretizationTypeError:
            raise ValueError(f"{wanted}, not a traced value: {_STATIC}") from None
        except ValueError:
            pass
        raise ValueError(wanted)

    return canonicalize


probability = _number(lambda number: 0 <= number <= 1, "must be a number in [0, 1]")
positive = _number(lambda number: 0 < number < float("inf"), "must be a finite number above 0")
wavelength = _number(
    lambda number: 1 < number < float("inf"), "must be a number above 1, for instance 10_000"
)


def boolean(value) -> bool:
    """A Python ``bool``."""
    if not isinstance(value, bool):
        raise ValueError("must be True or False")
    return value


def choice(*options: str) -> Callable[[Any], str]:
    """One of some strings."""

    def choose(value):
        if value not in options:
            raise ValueError(f"must be one of {', '.join(map(repr, options))}")
        return value

    return choose


def floating_dtype(value) -> Any:
    """A NumPy dtype object, the same whether it was written as a string, a scalar type or a dtype."""
    try:
        dtype = jnp.dtype(int if value is None else value)  # None would be float64
    except TypeError:
        dtype = None
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError("must be a floating-point dtype, such as jnp.float32")
    if dtype == jnp.dtype("float64") and not jax.config.jax_enable_x64:
        raise ValueError('is float64, which JAX has only after jax.config.update("jax_enable_x64", True)')
    return dtype


def function(value) -> Callable:
    """A callable."""
    if not callable(value):
        raise ValueError("must be a function")
    return value


def initializer(value) -> Callable:
    """A function that draws initial values; who gives a number most likely means the size of the input."""
    if isinstance(value, int):
        raise ValueError("must be a function (the size of the input is no argument: init reads it off)")
    return function(value)


def optional(canonicalize: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``None``, or what ``canonicalize`` makes of the value."""
    return lambda value: None if value is None else canonicalize(value)


_STATIC = "hyperparameters are static, so build the layer outside the jitted function"


def by_value(value) -> Any:
    """A hashable stand-in for ``value``: equal exactly when type and value are equal.

    Functions count by value where Python can see it: a ``functools.partial`` by its parts, any other function
    by its code, its defaults, and the variables that it reads from around it, enclosed or global, as they are
    now (functions among the global ones count by identity). So ``lecun_normal()`` equals ``lecun_normal()``, and
    a notebook's ``lambda x: scale * x`` made again after a change of ``scale`` is another function. One that
    reads something unhashable (an array, say) from around it, or itself, counts by identity.

    Raises:
      TypeError: if ``value`` is not hashable.
    """
    return _by_value(value, ())


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
    if isinstance(value, functools.partial):
        keywords = sorted(value.keywords.items())
        return functools.partial, _by_value((value.func, value.args, *keywords), within)
    if isinstance(value, types.FunctionType):
        if any(value is function for function in within):
            raise ValueError("refers to itself")
        try:
            enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
            defaults = (value.__defaults__, *sorted((value.__kwdefaults__ or {}).items()))
            within = (*within, value)
            own = _by_value((*enclosed, defaults), within)
            return value.__code__, id(value.__globals__), own, _globals_of(value, within)
        except (TypeError, ValueError):  # unhashable, not yet filled, or refers to itself
            return value
    hash(value)
    return type(value), value


def _globals_of(function, within) -> tuple[Any, ...]:
    """The global variables that ``function`` may read, as they are now, by name.

    Functions among them count by identity: following them would lead through half of JAX.
    """

    def names(code):
        inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        return set(code.co_names).union(*map(names, inner))

    around = function.__globals__
    values = [(name, around[name]) for name in sorted(names(function.__code__) & around.keys())]
    return tuple(
        (name, value if isinstance(value, types.FunctionType) else _by_value(value, within))
        for name, value in values
    )


def canonicalize_fields(layer) -> None:
    """Canonicalize all fields of a frozen dataclass in place, and store its value for ``==`` and hash."""
    name = type(layer).__name__
    for field in dataclasses.fields(layer):
        value = getattr(layer, field.name)
        try:
            value = field.metadata.get("canonicalize", lambda value: value)(value)
            by_value(value)
        except ValueError as error:
            raise ValueError(f"{name}: {field.name} {error}, got {show(value)}.") from None
        except TypeError:
            if isinstance(value, jax.core.Tracer):
                raise ValueError(f"{name}: {field.name} must not be a traced value: {_STATIC}.") from None
            raise TypeError(
                f"{name}: {field.name} must be hashable, because layers are static under jax.jit; got "
                f"{type(value).__name__} {value!r}. Use a tuple for a list, or a function for an array."
            ) from None
        object.__setattr__(layer, field.name, value)
    values = by_value(tuple(getattr(layer, field.name) for field in dataclasses.fields(layer)))
    object.__setattr__(layer, "_value", values)
    object.__setattr__(layer, "_hash", hash((type(layer), values)))


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
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if callable(value) and isinstance(module, str) and isinstance(name, str):
        try:
            if _find(module, name) is value:
                return _Call(_find, module, name)
        except (KeyError, AttributeError):  # made inside a function, say
            pass
    return value


class _Call:
    """Pickles as the result of a call."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def _find(module: str, name: str) -> Any:
    return operator.attrgetter(name)(sys.modules.get(module) or importlib.import_module(module))


def _partial(parts, keywords):
    return functools.partial(*parts, **keywords)


def show(value) -> str:
    """``repr``, but functions by name, without the memory address that differs from run to run."""
    if isinstance(value, functools.partial):
        keywords = [f"{name}={show(item)}" for name, item in value.keywords.items()]
        return f"partial({', '.join([show(value.func), *map(show, value.args), *keywords])})"
    if isinstance(value, jnp.dtype):
        return value.name
    if isinstance(value, tuple):
        return f"({', '.join(map(show, value))}{',' if len(value) == 1 else ''})"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return repr(value)
