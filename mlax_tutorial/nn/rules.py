"""The kinds of values that hyperparameters have: rules that make them canonical, and annotations that name the rules."""

import operator
from collections.abc import Callable
from typing import Annotated, Any

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import real
from mlax_tutorial.nn.hyperparameters import Canonical


def _rule(convert: Callable, allowed: Callable, wanted: str) -> Callable[[Any], Any]:
    """What ``convert`` makes of a value, if that is allowed; NaN never is."""

    def canonicalize(value):
        try:
            if allowed(made := convert(value)):
                return made
        except (TypeError, ValueError):
            pass
        raise ValueError(wanted)

    canonicalize.__name__ = wanted.removeprefix("must be ")  # as help() shows it
    return canonicalize


def _each(value) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _index(value) -> int:
    if isinstance(value, bool):
        raise TypeError("a bool counts nothing")
    return operator.index(value)


def _one(value) -> Any:
    return value


def integer(value, minimum: int = 1) -> int:
    """A Python ``int`` of at least ``minimum``; NumPy and concrete JAX integers are converted."""
    wanted = f"must be an integer of at least {minimum}"
    return _rule(_index, lambda number: number >= minimum, wanted)(value)


def integers(value, minimum: int = 1) -> tuple[int, ...]:
    """A tuple of integers, from one or from several."""
    return tuple(integer(item, minimum) for item in _each(value))


# Counted from the end, so that any batch axes may stand in front.
_NEGATIVE = "must be a negative integer, counted from the end: -1 is the last axis"
axis_from_the_end = _rule(_index, lambda axis: axis < 0, _NEGATIVE)


def trailing_sizes(value) -> tuple[int, ...]:
    """A tuple of sizes, where -1 stands for one that the input decides."""
    sizes = integers(value, minimum=-1)
    if 0 in sizes or not sizes:
        raise ValueError("must be a positive integer or -1, or a tuple of them")
    return sizes


def axes_from_the_end(value) -> tuple[int, ...]:
    """Negative integers in ascending order, from one or from a tuple or a list of them."""
    axes = tuple(sorted(map(axis_from_the_end, _each(value))))
    if len(set(axes)) < len(axes):
        raise ValueError("must be different from each other")
    return axes


probability = _rule(real, lambda number: 0 <= number <= 1, "must be a number in [0, 1]")
positive = _rule(real, lambda number: 0 < number < float("inf"), "must be a finite number above 0")
# BatchNorm(64) would be an epsilon of 64.
_SMALL = "must be above 0 and below 1 (how many features there are is no argument: init reads it off)"
small = _rule(real, lambda number: 0 < number < 1, _SMALL)

boolean = _rule(_one, lambda value: isinstance(value, bool), "must be True or False")
_FLOATING = "must be a floating-point dtype, such as jnp.float32"
_floating = _rule(jnp.dtype, lambda dtype: jnp.issubdtype(dtype, jnp.floating), _FLOATING)


def choice(*options: str) -> Callable[[Any], str]:
    """One of some strings."""
    wanted = f"must be one of {', '.join(map(repr, options))}"
    return _rule(_one, lambda value: isinstance(value, str) and value in options, wanted)


def names(wanted: str, keep: bool = False) -> Callable[[Any], str | tuple[str, ...]]:
    """A tuple of names, from one or from several; one alone may be kept as it is."""

    def convert(value):
        return value if keep and isinstance(value, str) else _each(value)

    return _rule(convert, lambda found: found and all(isinstance(name, str) for name in found), wanted)


def floating_dtype(value) -> Any:
    """A NumPy dtype object, the same whether it was written as a string, a scalar type or a dtype."""
    dtype = _floating(int if value is None else value)  # None would be float64
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


# What most fields are annotated with, alone or ``| None``.
Size = Annotated[int, Canonical(integer)]
Sizes = Annotated[tuple[int, ...], Canonical(integers)]
TrailingSizes = Annotated[tuple[int, ...], Canonical(trailing_sizes)]
Axis = Annotated[int, Canonical(axis_from_the_end)]
Probability = Annotated[float, Canonical(probability)]
Positive = Annotated[float, Canonical(positive)]
Epsilon = Annotated[float, Canonical(small)]
Switch = Annotated[bool, Canonical(boolean)]
Dtype = Annotated[Any, Canonical(floating_dtype)]
Precision = Annotated[Any, Canonical(jax.lax.Precision)]
Function = Annotated[Callable, Canonical(function)]
Initializer = Annotated[Callable, Canonical(initializer)]
