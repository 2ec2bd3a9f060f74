"""What optimizers and schedules have in common: frozen dataclasses whose numbers are leaves, whose switches are static."""

import contextlib
import dataclasses
import math
from collections.abc import Callable
from typing import Any, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.arrays import is_real, real
from mlax_tutorial.nn.hyperparameters import Fields, canonicalize_fields

__all__ = ["OptimizerError"]


class OptimizerError(ValueError):
    """An optimizer was given numbers or trees that it cannot work with."""


def number(canonicalize: Callable[[Any], Any], static: bool = False, **options) -> Any:
    """A field that is a leaf, or a pytree of leaves such as a schedule or another optimizer. One with a default is given by name."""
    metadata = {"canonicalize": canonicalize, "static": static}
    return dataclasses.field(metadata=metadata, **{"kw_only": "default" in options} | options)


def switch(canonicalize: Callable[[Any], Any], **options) -> Any:
    """A field that is static: part of the structure of the pytree, not a leaf. One with a default is given by name."""
    return number(canonicalize, static=True, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(number, switch))
class Tunable(Fields):
    """Base of optimizers, transformations and schedules. A subclass declares ``number`` and ``switch`` fields.

    The public constructor checks numbers and stores them as strong float32 (or int32) scalars, so that ``0.1``,
    ``jnp.float32(0.1)`` and ``1`` are one type to ``jax.jit``. JAX takes the pytree apart and puts it together
    without the constructor, so tracers and placeholders pass. Switches count by value, functions by identity: a
    lambda that is written again traces again.
    """

    _mistake = OptimizerError

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        fields = dataclasses.fields(cls)
        for field in fields:
            if "canonicalize" not in field.metadata:
                ways = f"a leaf, {field.name}: … = number(…), or static, = switch(…), of mlax_tutorial.optim.tunable"
                raise TypeError(f"{cls.__name__}: {field.name} must be declared {ways}.")
        names = [field.name for field in fields if not field.metadata["static"]]
        cls._static = tuple(field.name for field in fields if field.metadata["static"])

        def flatten(self):
            return [getattr(self, name) for name in names], self._switches

        def flatten_with_keys(self):
            return list(zip(map(jax.tree_util.GetAttrKey, names), flatten(self)[0])), self._switches

        def unflatten(switches, numbers):
            self = object.__new__(cls)
            vars(self).update(zip((*names, *cls._static), (*numbers, *switches.values)), _switches=switches)
            return self

        # Not register_dataclass: with it, tree definitions of different classes compare equal.
        jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)

    def __post_init__(self):
        canonicalize_fields(self, OptimizerError)
        vars(self)["_switches"] = _Switches(tuple(getattr(self, name) for name in self._static), self._value)

    def __setstate__(self, state):
        vars(self).update(state)
        self.__post_init__()


@dataclasses.dataclass(frozen=True)
class _Switches:
    """The static values of one object, compared by value and type, by their ``key``, as JAX compares structures."""

    values: tuple = dataclasses.field(compare=False)
    key: tuple = dataclasses.field(repr=False)


# What the fields accept. Like those of a layer (mlax_tutorial.nn.hyperparameters), but a number may be traced.


def _numbers(wanted: str, allowed: Callable[[float], bool], dtype: Any = np.float32) -> Callable[[Any], Any]:
    def canonicalize(value):
        if isinstance(value, jax.core.Tracer) and value.shape == () and is_real(value.dtype):
            return value.astype(dtype)  # built inside jit: nothing to compare yet
        with contextlib.suppress(ValueError), np.errstate(over="ignore"):
            number = real(value)
            if allowed(float(np.float32(number)) if dtype is np.float32 else number):
                return jnp.asarray(dtype(number))
        raise ValueError(f"must be a {wanted}")

    return canonicalize


def at_least(minimum: float, or_else: str = "") -> Callable[[Any], Any]:
    """A finite number of at least ``minimum``; ``or_else`` says what else there may be."""
    return _numbers(f"finite number of at least {minimum:g}{or_else}", lambda x: minimum <= x < math.inf)


_POSITIVE = "finite number above 0 (below 1.2e-38 float32 counts as 0)"
positive = _numbers(_POSITIVE, lambda x: np.finfo(np.float32).tiny <= x < math.inf)
fraction = _numbers("finite number in [0, 1]", lambda x: 0 <= x <= 1)
decay = _numbers("number of at least 0 and below 1", lambda x: 0 <= x < 1)  # what an average keeps


def whole(value, minimum: int = 1):
    """An integer of at least ``minimum``, stored as an int32 scalar."""
    wanted = f"whole number of at least {minimum}"
    return _numbers(wanted, lambda x: minimum <= x < 2**31 and x == int(x), np.int32)(value)
