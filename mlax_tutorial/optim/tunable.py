"""What optimizers and schedules have in common: frozen dataclasses whose numbers are leaves, whose switches are static."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.nn.numeric import is_real, real
from mlax_tutorial.nn.values import by_value, portable


class OptimizerError(ValueError):
    """An optimizer was given numbers or trees that it cannot work with."""


def number(canonicalize: Callable[[Any], Any], **options) -> Any:
    """A field that is a leaf, or a pytree of leaves such as a schedule or another optimizer."""
    return dataclasses.field(metadata={"canonicalize": canonicalize, "static": False}, **options)


def switch(canonicalize: Callable[[Any], Any], **options) -> Any:
    """A field that is static: part of the structure of the pytree, not a leaf."""
    return dataclasses.field(metadata={"canonicalize": canonicalize, "static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(number, switch))
class Tunable:
    """Base of optimizers, transformations and schedules. A subclass declares ``number`` and ``switch`` fields.

    The public constructor checks numbers and stores them as strong float32 (or int32) scalars, so that ``0.1``,
    ``jnp.float32(0.1)`` and ``1`` are one type to ``jax.jit``. JAX takes the pytree apart and puts it together
    without the constructor, so tracers and placeholders pass. Switches count by value, functions by identity: a
    lambda that is written again traces again.
    """

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
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            try:
                if field.metadata["static"] and isinstance(value, jax.core.Tracer):
                    raise ValueError("is a switch and so static: give it outside the jitted function")
                vars(self)[field.name] = field.metadata["canonicalize"](value)
                if field.metadata["static"]:
                    by_value(value)
            except (ValueError, TypeError) as error:
                unhashable = "must be hashable, because switches are static under jax.jit"
                reason = error if isinstance(error, ValueError) else unhashable
                message = f"{type(self).__name__}: {field.name} {reason}, got {show(value)}."
                raise OptimizerError(message) from None
        self._collect_switches()

    def _collect_switches(self):
        vars(self)["_switches"] = _Switches(tuple(getattr(self, name) for name in self._static))

    def __getstate__(self):
        return {field.name: portable(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def __setstate__(self, state):
        vars(self).update(state)
        self._collect_switches()

    def __repr__(self):
        shown = []
        for field in dataclasses.fields(self):
            value = show(_plain(getattr(self, field.name)))
            if value != show(field.default):
                shown.append(f"{field.name}={value}")
        return f"{type(self).__name__}({', '.join(shown)})"


class _Switches:
    """The static values of one object, compared by value and type, as JAX compares structures."""

    def __init__(self, values: tuple):
        self.values, self._key = values, by_value(values)

    def __eq__(self, other):
        return self is other or (isinstance(other, _Switches) and self._key == other._key)

    def __hash__(self):
        return hash(self._key)

    def __repr__(self):
        return show(self.values)


# What the fields accept. Like those of a layer (mlax_tutorial.nn.hyperparameters), but a number may be traced.


def _scalar(value, allowed, wanted, dtype=np.float32):
    if isinstance(value, jax.core.Tracer):  # built inside jit: nothing to compare yet
        if value.shape or not is_real(value.dtype):
            raise ValueError(wanted)
        return value.astype(dtype)
    try:
        number = real(value)
    except ValueError:
        raise ValueError(wanted) from None
    if dtype == np.float32 and abs(number) < 2.0**128:  # larger ones are no float32, and refused as they are
        number = float(np.float32(number))
    if not (math.isfinite(number) and abs(number) < 2.0**128 and allowed(number)):
        raise ValueError(wanted)
    return jnp.asarray(dtype(number))


def _numbers(wanted: str, allowed: Callable[[float], bool]) -> Callable[[Any], Any]:
    return functools.partial(_scalar, allowed=allowed, wanted=f"must be a {wanted}")


def at_least(minimum: float) -> Callable[[Any], Any]:
    """A finite number of at least ``minimum``."""
    return _numbers(f"finite number of at least {minimum:g}", lambda x: x >= minimum)


positive = _numbers("finite number above 0", lambda x: x > 0)
fraction = _numbers("finite number in [0, 1]", lambda x: 0 <= x <= 1)
decay = _numbers("number of at least 0 and below 1", lambda x: 0 <= x < 1)  # what an average keeps


def whole(value, minimum: int = 1):
    """An integer of at least ``minimum``, stored as an int32 scalar."""
    wanted = f"must be a whole number of at least {minimum}"
    return _scalar(value, lambda x: minimum <= x < 2**31 and x == int(x), wanted, np.int32)


def _plain(value):
    """A concrete number as Python prints it."""
    concrete = isinstance(value, (jax.Array, np.ndarray)) and not isinstance(value, jax.core.Tracer)
    if not concrete or value.ndim:
        return value
    return int(value) if jnp.issubdtype(value.dtype, jnp.integer) else float(str(value))
