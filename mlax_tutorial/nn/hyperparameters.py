"""Hyperparameters: made canonical when a layer is built, hashable, compared by value and type (:mod:`.values`)."""

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.numeric import real
from mlax_tutorial.nn.values import by_value


def hyperparameter(canonicalize: Callable[[Any], Any], **options) -> Any:
    """A field of a layer whose value passes through ``canonicalize`` (which raises ``ValueError``)."""
    return dataclasses.field(metadata={"canonicalize": canonicalize}, **options)


def _number(convert: Callable, allowed: Callable, wanted: str) -> Callable[[Any], Any]:
    """What ``convert`` makes of a value, if that is allowed; a bool, or NaN, never is."""

    def canonicalize(value):
        try:
            if not isinstance(value, bool) and allowed(number := convert(value)):
                return number
        except (TypeError, ValueError):
            pass
        raise ValueError(wanted)

    return canonicalize


def integer(value, minimum: int = 1) -> int:
    """A Python ``int`` of at least ``minimum``; NumPy and concrete JAX integers are converted."""
    wanted = f"must be an integer of at least {minimum}"
    return _number(operator.index, lambda number: number >= minimum, wanted)(value)


def integers(value, minimum: int = 1) -> tuple[int, ...]:
    """A tuple of integers, from one or from several."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    return tuple(integer(item, minimum) for item in values)


# Counted from the end, so that any batch axes may stand in front.
axis_from_the_end = _number(
    operator.index,
    lambda axis: axis < 0,
    "must be a negative integer, counted from the end: -1 is the last axis",
)


def axes_from_the_end(value) -> tuple[int, ...]:
    """Negative integers in ascending order, from one or from a tuple or a list of them."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    axes = tuple(sorted(map(axis_from_the_end, values)))
    if len(set(axes)) < len(axes):
        raise ValueError("must be different from each other")
    return axes


probability = _number(real, lambda number: 0 <= number <= 1, "must be a number in [0, 1]")
positive = _number(real, lambda number: 0 < number < float("inf"), "must be a finite number above 0")
small = _number(  # BatchNorm(64) would be an epsilon of 64
    real,
    lambda number: 0 < number < 1,
    "must be above 0 and below 1 (how many features there are is no argument: init reads it off)",
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
    """A callable, but no layer, which is applied by its ``fwd``."""
    if hasattr(value, "fwd"):
        raise ValueError("must be a function, not a layer: layers go into a Series or another container")
    if not callable(value):
        raise ValueError("must be a function")
    return value


def initializer(value) -> Callable:
    """A function that draws initial values; who gives a number most likely means the size of the input."""
    if isinstance(value, int):
        raise ValueError("must be a function (the size of the input is no argument: init reads it off)")
    return function(value)


def checked(what: str, canonicalize: Callable[[Any], Any], value, error: Callable = ValueError) -> Any:
    """What ``canonicalize`` makes of an argument; what it refuses is told in the name of ``what``."""
    try:
        return canonicalize(value)
    except ValueError as reason:
        raise error(f"{what} {reason}, got {show(value)}.") from None


def optional(canonicalize: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``None``, or what ``canonicalize`` makes of the value."""
    return lambda value: None if value is None else canonicalize(value)


def canonicalize_fields(layer) -> None:
    """Canonicalize all fields of a frozen dataclass in place, and store its value for ``==`` and hash."""
    for field in dataclasses.fields(layer):
        value, name = getattr(layer, field.name), f"{type(layer).__name__}: {field.name}"
        static = "a traced value: hyperparameters are static, so build the layer outside the jitted function"
        traced = isinstance(value, jax.core.Tracer)
        try:
            value = field.metadata.get("canonicalize", lambda value: value)(value)
            by_value(value)
        except ValueError as error:
            why = f"{error}, not {static}" if traced else error
            raise ValueError(f"{name} {why}, got {show(value)}.") from None
        except TypeError:
            if traced:
                raise ValueError(f"{name} must not be {static}.") from None
            got = f"{type(value).__name__} {value!r}. Use a tuple for a list, or a function for an array"
            why = "must be hashable, because layers are static under jax.jit"
            raise TypeError(f"{name} {why}; got {got}.") from None
        vars(layer)[field.name] = value
    values = by_value(tuple(getattr(layer, field.name) for field in dataclasses.fields(layer)))
    vars(layer).update(_value=values, _hash=hash((type(layer), values)))


def show(value) -> str:
    """``repr``, but functions by name, without the memory address that differs from run to run, and long arrays by shape."""
    if isinstance(value, functools.partial):
        keywords = [f"{name}={show(item)}" for name, item in value.keywords.items()]
        return f"partial({', '.join([show(value.func), *map(show, value.args), *keywords])})"
    if isinstance(value, jnp.dtype):
        return value.name
    if isinstance(value, (jax.Array, np.ndarray)) and value.size > 8:
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(show, value))}{',' if len(value) == 1 else ''})"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return repr(value)
