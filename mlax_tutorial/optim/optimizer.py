"""What every optimizer is: a frozen dataclass whose numbers are leaves and whose switches are static."""

import dataclasses
from typing import Any, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.numeric import is_real, real


class OptimizerError(ValueError):
    """An optimizer was given numbers or trees that it cannot work with."""


def number(minimum: float = 0.0, maximum: float = np.inf, optional: bool = False, **options) -> Any:
    """A field that is a leaf: a finite number in ``[minimum, maximum]``, stored as a float32 scalar."""
    return dataclasses.field(metadata={"number": (minimum, maximum, optional)}, **options)


def switch(kind: type = bool, **options) -> Any:
    """A field that is static: part of the structure of the pytree, not a leaf."""
    return dataclasses.field(metadata={"switch": kind}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(number, switch))
class Optimizer:
    """Base of all optimizers. A subclass declares ``number`` and ``switch`` fields and writes init and step.

    The public constructor checks numbers and stores them as strong float32 scalars, so that ``0.1``,
    ``jnp.float32(0.1)`` and ``1`` are one type to ``jax.jit``. JAX takes the pytree apart and puts it together
    without the constructor, so tracers and placeholders pass.
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        for field in dataclasses.fields(cls):
            if not field.metadata.keys() & {"number", "switch"}:
                raise TypeError(
                    f"{cls.__name__}: {field.name} must be declared a leaf, {field.name}: … = number(…), or static, "
                    f"= switch(…), both from mlax_tutorial.optim.optimizer."
                )
        leaves = [field.name for field in dataclasses.fields(cls) if "number" in field.metadata]
        static = [field.name for field in dataclasses.fields(cls) if "switch" in field.metadata]

        def flatten_with_keys(self):
            children = [(jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in leaves]
            return children, tuple(getattr(self, name) for name in static)

        def flatten(self):
            return [getattr(self, name) for name in leaves], tuple(getattr(self, name) for name in static)

        def unflatten(switches, numbers):
            self = object.__new__(cls)
            for name, value in (*zip(leaves, numbers), *zip(static, switches)):
                object.__setattr__(self, name, value)
            return self

        # Not register_dataclass: with it, tree definitions of different classes compare equal.
        jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            canonical = _number if "number" in field.metadata else _switch
            try:
                object.__setattr__(self, field.name, canonical(value, *_arguments(field)))
            except ValueError as error:
                raise OptimizerError(f"{type(self).__name__}: {field.name} {error}, got {value!r}.") from None

    def init(self, trainables: Any) -> Any:
        """Make the state that fits ``trainables``; pure."""
        raise NotImplementedError(f"{type(self).__name__} must define init")

    def step(self, gradients: Any, state: Any, trainables: Any) -> tuple[Any, Any]:
        """Turn gradients into updates, which are to be added to the trainables; pure.

        Args:
          gradients: as from ``jax.grad``, of the structure of the trainables.
          state: from ``init`` or the step before.
          trainables: the weights themselves.

        Returns:
          ``(updates, state)``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step")

    def __repr__(self):
        def show(value):
            concrete = isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
            return str(np.asarray(value)) if concrete else repr(value)

        shown = [f"{field.name}={show(getattr(self, field.name))}" for field in dataclasses.fields(self)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def check_state(self, state: Any, kind: type) -> None:
        """Refuse what is no state of this optimizer."""
        if not isinstance(state, kind):
            raise OptimizerError(
                f"{type(self).__name__}: state must be what init returned, {kind.__name__}, got "
                f"{type(state).__name__}: init and step must be of the same optimizer."
            )

    def check_trees(self, **trees: Any) -> None:
        """Refuse trees whose structures, or the shapes of whose leaves, differ from those of the trainables.

        The trainables themselves must be arrays of floating-point (or complex) numbers.
        """
        trainables = trees.pop("trainables")
        for path, leaf in jax.tree_util.tree_leaves_with_path(trainables):
            dtype = getattr(leaf, "dtype", None)
            if dtype is None or not jnp.issubdtype(dtype, jnp.inexact):
                raise OptimizerError(
                    f"{type(self).__name__}: trainables{jax.tree_util.keystr(path)} expects an array of "
                    f"floating-point numbers, got {type(leaf).__name__ if dtype is None else dtype}: what gradients "
                    "do not flow to belongs elsewhere."
                )
        wanted = _shapes(trainables)
        for name, tree in trees.items():
            got = _shapes(tree)
            if got == wanted:
                continue
            path = next(path for path in [*wanted, *got] if wanted.get(path) != got.get(path))
            raise OptimizerError(
                f"{type(self).__name__}: {name}{path} expects {wanted.get(path, 'nothing')}, got "
                f"{got.get(path, 'nothing')}: gradients, state and trainables must come from one model."
            )


def _shapes(tree):
    return {
        jax.tree_util.keystr(path): jnp.shape(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def _arguments(field):
    return field.metadata.get("number") or (field.metadata["switch"],)


def _number(value, minimum, maximum, optional):
    if value is None and optional:
        return None
    bounds = f"of at least {minimum:g}" if maximum == np.inf else f"in [{minimum:g}, {maximum:g}]"
    wanted = f"must be a finite number {bounds}"
    if isinstance(value, jax.core.Tracer):  # built inside jit: nothing to compare yet
        if value.shape or not is_real(value.dtype):
            raise ValueError(wanted)
        return value.astype(jnp.float32)
    try:
        number = real(value)
    except ValueError:
        raise ValueError(wanted) from None
    if not minimum <= number <= min(maximum, float(np.finfo(np.float32).max)):  # also refuses NaN
        raise ValueError(wanted)
    return jnp.asarray(np.float32(number))


def _switch(value, kind):
    if not isinstance(value, kind):
        raise ValueError(f"must be a {kind.__name__}")
    return value
