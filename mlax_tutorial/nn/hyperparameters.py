"""Hyperparameters: made canonical when a layer is built, hashable, compared by value and type (:mod:`.values`)."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.equality import by_value, portable


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


class Fields:
    """Base of layers and optimizers: frozen dataclasses whose fields are canonical, and by which they print and pickle."""

    _mistake = TypeError  # what an option given by its place raises
    _no_argument = ""  # what of another library's arguments has none here

    def __new__(cls, *values, **_):
        fields = [*filter(is_own, dataclasses.fields(cls))]
        first, *others = [field.name for field in fields if field.kw_only] or [None]
        names = [field.name for field in fields if not field.kw_only]
        if first and len(values) > len(names):  # PyTorch's second number is seldom ours
            mend = f"write {cls.__name__}({', '.join([*names, f'{first}=…'])})"
            mend += f", and likewise {', '.join(others)}" if others else ""
            mend += f"; {cls._no_argument}" if cls._no_argument else ""
            got = f"takes {len(names) or 'nothing'} positional, {', '.join([*names, ''])}got {show(values)}"
            raise cls._mistake(f"{cls.__name__}: {got}: {mend}.")
        return super().__new__(cls)

    def _shown(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING and not field.kw_only:
                yield show(value)
            elif is_own(field) and not _is_same(value, field.default):
                yield f"{field.name}={show(value)}"

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def __getstate__(self):  # hashes of strings differ between processes, so they do not travel
        return {field.name: portable(getattr(self, field.name)) for field in dataclasses.fields(self)}


def is_own(field: dataclasses.Field) -> bool:
    """Whether a field is a hyperparameter: not what a Composite keeps of :func:`replace`."""
    return field.init and not field.name.startswith("_")


def _is_same(value, default):
    try:
        return by_value(value) == by_value(default)
    except TypeError:  # an array
        return show(value) == show(default)


def canonicalize_fields(owner, error: type[Exception] = ValueError) -> None:
    """Canonicalize all fields of a frozen dataclass in place, and store the value of the static ones for ``==`` and hash."""
    values = []
    for field in dataclasses.fields(owner):
        value, name = getattr(owner, field.name), f"{type(owner).__name__}: {field.name}"
        static, traced = field.metadata.get("static", True), isinstance(value, jax.core.Tracer)
        outside = "a traced value: it is static, so give it outside the jitted function"
        try:
            value = field.metadata.get("canonicalize", _rule(field.type))(value)
            values += [by_value(value)] if static else []
        except ValueError as reason:
            why = f"{reason}, not {outside}" if traced and static else reason
            raise error(f"{name} {why}, got {show(value)}.") from None
        except TypeError:
            if traced:
                raise error(f"{name} must not be {outside}.") from None
            got = f"{type(value).__name__} {value!r}. Use a tuple for a list, or a function for an array"
            why = "must be hashable, because it is static under jax.jit"
            raise (TypeError if error is ValueError else error)(f"{name} {why}; got {got}.") from None
        vars(owner)[field.name] = value
    vars(owner).update(_value=tuple(values), _hash=hash((type(owner), *values)))


def show(value) -> str:
    """``repr``, but functions by name, without the memory address that differs from run to run, and long arrays by shape."""
    if isinstance(value, functools.partial):
        keywords = [f"{name}={show(item)}" for name, item in value.keywords.items()]
        return f"partial({', '.join([show(value.func), *map(show, value.args), *keywords])})"
    if isinstance(value, jnp.dtype):
        return value.name
    if isinstance(value, (jax.Array, np.ndarray)) and not isinstance(value, jax.core.Tracer):
        if not value.ndim and jnp.issubdtype(value.dtype, jnp.floating):
            return repr(float(str(value)))  # in as many digits as its dtype has
        if value.size <= 8:
            return repr(value) if value.ndim else str(value)
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(show, value))}{',' if len(value) == 1 else ''})"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return repr(value)
