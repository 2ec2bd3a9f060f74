"""What every optimizer is: ``init`` makes a state, ``step`` turns gradients into updates."""

from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.numeric import accumulator, is_floating
from mlax_tutorial.optim.moments import wide
from mlax_tutorial.optim.paths import check_like, flatten, refuse_layers
from mlax_tutorial.optim.schedules import Schedule
from mlax_tutorial.optim.tunable import OptimizerError, Tunable, number


class Transformation(Tunable):
    """Base of what changes gradients on their way to an optimizer. A subclass writes ``init`` and ``step``."""

    def init(self, trainables: Any) -> Any:
        """Make the state that fits ``trainables``; pure. By default there is none: ``()``."""
        self.check_trainables(trainables)
        return ()

    def step(self, gradients: Any, state: Any, trainables: Any) -> tuple[Any, Any]:
        """Turn gradients into other gradients; pure.

        Args:
          gradients: as from ``jax.grad``, of the structure of the trainables.
          state: from ``init`` or the step before.
          trainables: the weights themselves.

        Returns:
          ``(gradients, state)``. Those of half-precision weights are float32.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step")

    def check_trainables(self, trainables: Any) -> None:
        """Refuse trainables that are no floating-point arrays, a model in their place, say."""
        check_weights(type(self).__name__, trainables)

    def check_step(self, gradients: Any, state: Any, trainables: Any, kind: type = object, **fields) -> Any:
        """Refuse what ``step`` cannot work with.

        Args:
          gradients, state, trainables: of ``step``.
          kind: the class of the state, whose fields, but for ``count`` and ``inner``, are built like the trainables.
          **fields: which of them are; ``False`` for one that is ``()``.

        Returns:
          The gradients, at least float32.
        """
        if not isinstance(state, kind):
            got = f"{type(state).__name__}: init and step must be of the same optimizer"
            self.refuse(f"state must be what init returned, {kind.__name__}, got {got}.")
        self.check_trainables(trainables)
        names = [name for name in getattr(kind, "_fields", ()) if name not in ("count", "inner")]
        trees = {"gradients": gradients, **{f"state.{name}": getattr(state, name) for name in names}}
        for name, tree in trees.items():
            like = trainables if fields.get(name.removeprefix("state."), True) else ()
            mend = "gradients, state and trainables must come from one model."
            check_like(f"{type(self).__name__}: {name}", tree, like, mend, error=OptimizerError)
        return wide(trainables, gradients)

    def refuse(self, message: str) -> NoReturn:
        """Raise an ``OptimizerError`` in the name of this optimizer."""
        raise OptimizerError(f"{type(self).__name__}: {message}")


class Optimizer(Transformation):
    """Base of all optimizers. A subclass declares ``number`` and ``switch`` fields and writes init and step."""

    def step(self, gradients: Any, state: Any, trainables: Any) -> tuple[Any, Any]:
        """Turn gradients into updates, which are to be added to the trainables; pure.

        Args:
          gradients: as from ``jax.grad``, of the structure of the trainables.
          state: from ``init`` or the step before.
          trainables: the weights themselves.

        Returns:
          ``(updates, state)``. Updates of half-precision weights are float32.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step")

    def used(self, gradients: Any) -> Any:
        """Those of ``gradients`` that enter a step, with ``()`` in place of the others; pure."""
        return gradients

    # The learning rate may be a schedule. What it needs is the number of steps done, ``state.count``, which is ``()``
    # where nobody needs it.

    def first_count(self) -> Any:
        """The count to begin with: 0, or ``()`` if the learning rate is constant."""
        return jnp.zeros((), jnp.int32) if isinstance(self.learning_rate, Schedule) else ()

    def descend(self, directions: Any, count: Any) -> Any:
        """The updates: against the directions, by the learning rate of the step after ``count`` others."""
        rate = self.learning_rate
        if isinstance(rate, Schedule):
            if isinstance(count, tuple):
                got = "got (), of a constant learning rate: begin with optim.Constant(…), or make a new state with init"
                self.refuse(f"state.count expects the number of steps, {got}.")
            rate = rate(count)
        return jax.tree.map(lambda direction: -jnp.asarray(rate, direction.dtype) * direction, directions)


def optimizer(value) -> Optimizer:
    """An optimizer of this package."""
    if not isinstance(value, Optimizer):
        raise ValueError("must be an optimizer of mlax_tutorial.optim")
    return value


class Wrapper(Optimizer):
    """Base of optimizers that hold another one, whose state is ``state.inner``."""

    optimizer: Any = number(optimizer)

    def used(self, gradients):
        return self.optimizer.used(gradients)


def increment(count: Any) -> Any:
    """One step more; a count at the end of int32 stays there, and ``()`` remains ``()``."""
    if isinstance(count, tuple):
        return count
    return count + (count < jnp.iinfo(jnp.int32).max).astype(count.dtype)


def check_weights(name: str, trainables: Any) -> None:
    """Refuse trainables that are no floating-point arrays, a model in their place, say.

    Raises:
      OptimizerError: in the name of ``name``.
    """
    refuse_layers(name, trainables, OptimizerError)
    for path, leaf in zip(*flatten(trainables)[:2]):
        if not is_floating(leaf):
            wanted, got = "an array of floating-point numbers", getattr(leaf, "dtype", type(leaf).__name__)
            mend = "what gradients do not flow to belongs elsewhere"
            raise OptimizerError(f"{name}: trainables{path} expects {wanted}, got {got}: {mend}.")


def apply_updates(trainables: Any, updates: Any) -> Any:
    """Add ``updates`` to ``trainables``; pure. Works with the updates of any Optax optimizer, too.

    The sum is formed in float32 where the weights are of half precision, and rounded once.

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
        dtype = accumulator(weight.dtype)
        return (weight.astype(dtype) + jnp.asarray(update, dtype)).astype(weight.dtype)

    return jax.tree.map(add, trainables, updates)
