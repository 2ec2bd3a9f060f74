"""What every optimizer is: ``init`` makes a state, ``step`` turns gradients into updates."""

from collections.abc import Callable
from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import is_array
from mlax_tutorial.nn.paths import check_like, refuse_layers
from mlax_tutorial.optim.moments import cast, wide
from mlax_tutorial.optim.tunable import OptimizerError, Tunable, number

__all__ = ["Optimizer", "Transformation", "apply_updates"]


class Transformation(Tunable):
    """Base of what changes gradients on their way to an optimizer, or its updates. A subclass writes ``transform``, and ``init`` if it has a state.

    A class that asks for more than gradients names it, ``extra = frozenset({"value"})``, and takes it by name,
    ``transform(self, gradients, state, trainables, value)``. What wraps it passes it on, and ``training.make_step`` has ``value``, the loss;
    ``grad``; ``value_fn``, the loss of other weights; and ``weight``, how much the batch counts.
    """

    State = object  # the class of what init returns
    extra = frozenset()  # what step asks for besides, by name
    # The fields of the state that hold one array a weight.
    moments = property(lambda self: mirrors(self.State))

    def init(self, trainables: Any) -> Any:
        """Make the state that fits ``trainables``; pure. By default there is none: ``()``."""
        self.check_trainables(trainables)
        return ()

    def step(self, gradients: Any, state: Any, trainables: Any, **extra: Any) -> tuple[Any, Any]:
        """Turn gradients into other gradients, or, if it is an optimizer, into updates, to be added to the trainables; pure.

        Args:
          gradients: as from ``jax.grad``, of the structure of the trainables.
          state: from ``init`` or the step before.
          trainables: the weights themselves.
          **extra: what it asks for besides, by name.

        Returns:
          ``(gradients, state)``, or ``(updates, state)``. Those of half-precision weights are float32.
        """
        gradients = self.check_step(gradients, state, trainables, extra)
        return self.transform(gradients, state, trainables, **extra)

    def transform(self, gradients: Any, state: Any, trainables: Any) -> tuple[Any, Any]:
        """What ``step`` does once all was checked; the gradients are at least float32."""
        raise NotImplementedError(f"{type(self).__name__} must define transform")

    def check_trainables(self, trainables: Any) -> None:
        """Refuse trainables that are no floating-point arrays, a model in their place, say."""
        check_weights(type(self).__name__, trainables)

    def check_step(self, gradients: Any, state: Any, trainables: Any, extra: Any = ()) -> Any:
        """Refuse what ``step`` cannot work with; return the gradients, at least float32.

        The fields of the state are built like the trainables, but for numbers, ``inner``, and what is not among ``self.moments``: ``()``.
        """
        if unknown := ", ".join(sorted(set(extra) - self.extra)):
            self.refuse(f"step takes {', '.join(sorted(self.extra)) or 'nothing'} besides, got {unknown}.")
        if not isinstance(state, self.State):
            got = f"{type(state).__name__}: init and step must be of the same optimizer"
            self.refuse(f"state must be what init returned, {self.State.__name__}, got {got}.")
        self.check_trainables(trainables)
        name, mend = type(self).__name__, "gradients, state and trainables must come from one model."
        check_like(f"{name}: gradients", gradients, trainables, mend, error=OptimizerError)
        for field in mirrors(self.State):
            like = trainables if field in self.moments else ()
            check_like(f"{name}: state.{field}", getattr(state, field), like, mend, error=OptimizerError)
        return wide(trainables, gradients)

    def go(self, gradients: Any, state: Any, trainables: Any, extra: dict[str, Any]) -> tuple[Any, Any]:
        """``step`` with what it asks for of ``extra``."""
        asked = {name: value for name, value in extra.items() if name in self.extra}
        return self.step(gradients, state, trainables, **asked)

    def refuse(self, message: str) -> NoReturn:
        """Raise an ``OptimizerError`` in the name of this optimizer."""
        raise OptimizerError(f"{type(self).__name__}: {message}")


def mirrors(state: Any) -> list[str]:
    """The fields of a class of states that are built like the trainables: all but numbers, and the state of another optimizer."""
    return [name for name in getattr(state, "_fields", ()) if name not in ("count", "weight", "inner")]


class Optimizer(Transformation):
    """Base of all optimizers. A subclass declares ``number`` and ``switch`` fields and writes ``init`` and ``transform``.

    Most derive from :class:`Descent`, and write a direction only.
    """

    follows_weights = (
        False  # whether its state holds what the weights will be if its updates are applied as they are
    )

    def used(self, gradients: Any) -> Any:
        """Those of ``gradients`` that enter a step, with ``()`` in place of the others; pure."""
        return gradients

    def acted(self, state: Any) -> Any:
        """Whether the step that returned this state was a real one: not so between those of :class:`Accumulate`."""
        return True


def optimizer(value) -> Optimizer:
    """An optimizer of this package."""
    if not isinstance(value, Optimizer):
        raise ValueError("must be an optimizer of mlax_tutorial.optim")
    return value


def parts_of(optimizer: Optimizer, meant: Callable[[Any], bool]) -> list[Any]:
    """The optimizers and transformations in an optimizer that are ``meant``; it may be one itself."""
    return [part for part in jax.tree.leaves(optimizer, is_leaf=meant) if meant(part)]


class Wrapper(Optimizer):
    """Base of optimizers that hold another one, whose state is ``state.inner``."""

    optimizer: Any = number(optimizer)
    extra = property(lambda self: self.optimizer.extra)

    def used(self, gradients):
        return self.optimizer.used(gradients)

    def acted(self, state):
        return self.optimizer.acted(state.inner)


def increment(count: jax.Array) -> jax.Array:
    """One step more; a count at the end of int32 stays there."""
    return count + (count < jnp.iinfo(jnp.int32).max).astype(count.dtype)


def check_weights(name: str, trainables: Any) -> None:
    """Refuse trainables that are no arrays of inexact numbers, a model in their place, say.

    Raises:
      OptimizerError: in the name of ``name``.
    """
    refuse_layers(name, trainables, OptimizerError)
    for path, leaf in jax.tree_util.tree_leaves_with_path(trainables):
        if not (is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.inexact)):
            where, got = jax.tree_util.keystr(path), getattr(leaf, "dtype", type(leaf).__name__)
            wanted = f"an array of floating-point numbers, got {got}"
            mend = "what gradients do not flow to belongs elsewhere"
            raise OptimizerError(f"{name}: trainables{where} expects {wanted}: {mend}.")


def apply_updates(trainables: Any, updates: Any) -> Any:
    """Add ``updates`` to ``trainables``; pure. Works with the updates of any Optax optimizer, too.

    The sum is formed in float32 where the weights are of half precision, and rounded once. Of complex weights, ``jax.grad`` gives the
    conjugate of the direction in which a real loss rises: hand ``jax.tree.map(jnp.conj, gradients)`` to ``step``, as with Optax.

    Args:
      trainables: the weights.
      updates: a tree of the same structure and shapes.

    Returns:
      The new weights, in the dtypes of the old.

    Raises:
      ValueError: if the structures or the shapes differ, or a weight is no array of floating-point numbers.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optim.apply_updates({"bias": jnp.ones(2)}, {"bias": jnp.array([0.5, -0.5])})
      {'bias': Array([1.5, 0.5], dtype=float32)}
    """

    check_weights("apply_updates", trainables)
    mend = "updates and trainables must come from one model."  # they might broadcast, and the weight grow
    check_like("apply_updates: updates", updates, trainables, mend)

    def add(weight, update):
        return cast(cast(weight, update.dtype) + update, weight.dtype)

    return jax.tree.map(add, trainables, wide(trainables, updates))
