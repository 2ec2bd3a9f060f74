"""Hyperparameters: made canonical when a layer is built, hashable, compared by value and type (:mod:`.values`)."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.values import by_value


class Canonical(NamedTuple):
    """In an annotation, ``Annotated[int, Canonical(integer)]``: what the value passes through (it raises ``ValueError``)."""

    canonicalize: Callable[[Any], Any]

    def __repr__(self):
        return show(self.canonicalize)


def hyperparameter(canonicalize: Callable[[Any], Any], **options) -> Any:
    """A field with a rule of its own: its value passes through ``canonicalize``."""
    return dataclasses.field(metadata={"canonicalize": canonicalize}, **options)


def checked(what: str, canonicalize: Callable[[Any], Any], value, error: Callable = ValueError) -> Any:
    """What ``canonicalize`` makes of an argument; what it refuses is told in the name of ``what``."""
    try:
        return canonicalize(value)
    except ValueError as reason:
        raise error(f"{what} {reason}, got {show(value)}.") from None


def optional(canonicalize: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``None``, or what ``canonicalize`` makes of the value."""
    return lambda value: None if value is None else canonicalize(value)


def _rule(annotation) -> Callable[[Any], Any]:
    """What the value of a field passes through, by its annotation."""
    *others, last = get_args(annotation) or (None,)
    if isinstance(last, Canonical):
        return last.canonicalize
    return optional(_rule(others[0])) if last is type(None) and others else lambda value: value


def canonicalize_fields(layer) -> None:
    """Canonicalize all fields of a frozen dataclass in place, and store its value for ``==`` and hash."""
    for field in dataclasses.fields(layer):
        value, name = getattr(layer, field.name), f"{type(layer).__name__}: {field.name}"
        static = "a traced value: hyperparameters are static, so build the layer outside the jitted function"
        traced = isinstance(value, jax.core.Tracer)
        try:
            value = field.metadata.get("canonicalize", _rule(field.type))(value)
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
