"""What every optimizer is: ``init`` makes a state, ``step`` turns gradients into updates."""

from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.optim.schedules import Schedule
from mlax_tutorial.optim.tunable import OptimizerError, Tunable


class Transformation(Tunable):
    """Base of what changes gradients on their way to an optimizer. A subclass writes ``init`` and ``step``."""

    def init(self, trainables: Any) -> Any:
        """Make the state that fits ``trainables``; pure. By default there is none: ``()``."""
        self.check_trees(trainables=trainables)
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

    def check_state(self, state: Any, kind: type) -> None:
        """Refuse what is no state of this optimizer."""
        if not isinstance(state, kind):
            raise OptimizerError(
                f"{type(self).__name__}: state must be what init returned, {kind.__name__}, got "
                f"{type(state).__name__}: init and step must be of the same optimizer."
            )

    def check_trees(self, *, trainables: Any, **trees: Any) -> None:
        """Refuse trainables that are no floating-point arrays, and trees that differ from them in structure or shape."""
        leaves, structure = jax.tree.flatten(trainables)
        if not all(map(_is_floating, leaves)):
            path, leaf = next(item for item in _paths(trainables).items() if not _is_floating(item[1]))
            raise OptimizerError(
                f"{type(self).__name__}: trainables{path} expects an array of floating-point numbers, got "
                f"{getattr(leaf, 'dtype', type(leaf).__name__)}: what gradients do not flow to belongs elsewhere."
            )
        for path, leaf in _paths(trees.get("gradients", ())).items():
            if hasattr(leaf, "dtype") and not _is_floating(leaf):
                raise OptimizerError(
                    f"{type(self).__name__}: gradients{path} expects an array of floating-point numbers, got "
                    f"{leaf.dtype}: pass what jax.grad returned."
                )
        shapes = [jnp.shape(leaf) for leaf in leaves]
        for name, tree in trees.items():
            others, other_structure = jax.tree.flatten(tree)
            if other_structure != structure or [jnp.shape(leaf) for leaf in others] != shapes:
                self._refuse(name, tree, trainables)

    def _refuse(self, name, tree, trainables):
        wanted, got = (
            {path: jnp.shape(leaf) for path, leaf in _paths(t).items()} for t in (trainables, tree)
        )
        differing = [path for path in [*wanted, *got] if wanted.get(path) != got.get(path)]
        if differing:
            path = differing[0]
            difference = f"{path} expects {wanted.get(path, 'nothing')}, got {got.get(path, 'nothing')}"
        else:
            structures = jax.tree.structure(trainables), jax.tree.structure(tree)
            difference = " expects the containers {}, got {}".format(*structures)
        raise OptimizerError(
            f"{type(self).__name__}: {name}{difference}: gradients, state and trainables must come from one model."
        )


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

    # The learning rate may be a schedule. What it needs is the number of steps done, ``state.count``, which is ``()``
    # where nobody needs it.

    def first_count(self) -> Any:
        """The count to begin with: 0, or ``()`` if the learning rate is constant."""
        return jnp.zeros((), jnp.int32) if isinstance(self.learning_rate, Schedule) else ()

    def rate_at(self, count: Any) -> jax.Array:
        """The learning rate of the step after ``count`` others, a float32 scalar."""
        if not isinstance(self.learning_rate, Schedule):
            return self.learning_rate
        if isinstance(count, tuple):
            raise OptimizerError(
                f"{type(self).__name__}: state.count expects the number of steps for the schedule, got (): this state is of an "
                "optimizer with a constant learning rate. Begin with optim.Constant(…), or make a new state with init."
            )
        return self.learning_rate(count)


def increment(count: Any) -> Any:
    """One step more; a count at the end of int32 stays there, and ``()`` remains ``()``."""
    return (
        count if isinstance(count, tuple) else count + (count < jnp.iinfo(jnp.int32).max).astype(count.dtype)
    )


def _is_floating(leaf):
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)


def _paths(tree):
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
