"""Hyperparameters: made canonical when a layer is built, hashable, compared by value and type.

A layer is a static argument to ``jax.jit``, so two layers that mean the same must be equal (or the step
is traced again), and two that differ must not be (or the wrong program runs). Plain Python equality fails
both ways: ``1 == 1.0 == True``, while ``lecun_normal() != lecun_normal()``.
"""

import dataclasses
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def hyperparameter(canonicalize: Callable[[Any], Any], **options) -> Any:
    """A field of a layer whose value passes through ``canonicalize`` (which raises ``ValueError``)."""
    return dataclasses.field(metadata={"canonicalize": canonicalize}, **options)


def integer(value, minimum: int = 1) -> int:
    """A Python ``int`` of at least ``minimum``; NumPy and concrete JAX integers are converted."""
    wanted = f"must be an integer of at least {minimum}"
    if isinstance(value, bool):
        raise ValueError(wanted)
    try:
        number = operator.index(value)
    except jax.errors.TracerIntegerConversionError:
        raise ValueError(f"{wanted}, not a traced value: {_STATIC}") from None
    except TypeError:
        raise ValueError(wanted) from None
    if number < minimum:
        raise ValueError(wanted)
    return number


def probability(value) -> float:
    """A Python ``float`` in [0, 1]."""
    wanted = "must be a number in [0, 1]"
    if isinstance(value, (bool, str)):
        raise ValueError(wanted)
    try:
        number = float(value)
    except jax.errors.ConcretizationTypeError:
        raise ValueError(f"{wanted}, not a traced value: {_STATIC}") from None
    except (TypeError, ValueError):
        raise ValueError(wanted) from None
    if not 0 <= number <= 1:  # also refuses NaN
        raise ValueError(wanted)
    return number


def positive(value) -> float:
    """A finite Python ``float`` above 0."""
    wanted = "must be a finite number above 0"
    if isinstance(value, (bool, str)):
        raise ValueError(wanted)
    try:
        number = float(value)
    except jax.errors.ConcretizationTypeError:
        raise ValueError(f"{wanted}, not a traced value: {_STATIC}") from None
    except (TypeError, ValueError):
        raise ValueError(wanted) from None
    if not 0 < number < float("inf"):  # also refuses NaN
        raise ValueError(wanted)
    return number


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
        dtype = jnp.dtype(value)
    except TypeError:
        raise ValueError("must be a floating-point dtype, such as jnp.float32") from None
    if not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError("must be a floating-point dtype, such as jnp.float32")
    if dtype == jnp.dtype("float64") and not jax.config.jax_enable_x64:
        raise ValueError('is float64, which JAX has only after jax.config.update("jax_enable_x64", True)')
    return dtype


def function(value) -> Callable:
    """A callable."""
    if not callable(value):
        raise ValueError("must be a function")
    return value


def optional(canonicalize: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``None``, or what ``canonicalize`` makes of the value."""
    return lambda value: None if value is None else canonicalize(value)


_STATIC = "hyperparameters are static, so build the layer outside the jitted function"


def by_value(value) -> Any:
    """A hashable stand-in for ``value``: equal exactly when type and value are equal.

    Functions count by value where Python can see it: a ``functools.partial`` by its parts, a closure by
    its code and what it encloses. So ``lecun_normal()`` equals ``lecun_normal()``. A closure over
    something unhashable (an array, say) counts by identity.

    Raises:
      TypeError: if ``value`` is not hashable.
    """
    if isinstance(value, float):
        return float, value.hex()  # tells 0.0 from -0.0, and NaN equals itself
    if isinstance(value, tuple):
        return type(value), tuple(by_value(item) for item in value)
    if isinstance(value, functools.partial):
        keywords = sorted(value.keywords.items())
        return functools.partial, by_value((value.func, value.args, *keywords))
    if isinstance(value, types.FunctionType):
        try:
            enclosed = tuple(by_value(cell.cell_contents) for cell in value.__closure__ or ())
            defaults = by_value((value.__defaults__, *sorted((value.__kwdefaults__ or {}).items())))
            return value.__code__, id(value.__globals__), enclosed, defaults
        except (TypeError, ValueError, RecursionError):  # unhashable, not yet filled, or refers to itself
            return value
    hash(value)
    return type(value), value


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
            raise TypeError(
                f"{name}: {field.name} must be hashable, because layers are static under jax.jit; got "
                f"{type(value).__name__} {value!r}. Use a tuple for a list, or a function for an array."
            ) from None
        object.__setattr__(layer, field.name, value)
    values = by_value(tuple(getattr(layer, field.name) for field in dataclasses.fields(layer)))
    object.__setattr__(layer, "_value", values)
    object.__setattr__(layer, "_hash", hash((type(layer), values)))


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
