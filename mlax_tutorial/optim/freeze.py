"""``Freeze``: train some of the weights."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from mlax_tutorial.optim.moments import zeros
from mlax_tutorial.optim.optimizer import Wrapper
from mlax_tutorial.optim.paths import chosen, pattern
from mlax_tutorial.optim.tunable import switch


class FreezeState(NamedTuple):
    """State of :class:`Freeze`.

    Attributes:
      inner: the state of the optimizer, with ``()`` in place of what belongs to a frozen weight.
    """

    inner: Any


class Freeze(Wrapper):
    """Leave the chosen weights as they are, and let an optimizer train the others.

    The optimizer does not see what is frozen, so it stores nothing for it, and neither decay nor the norm of a clipped
    gradient take it in. Under ``jax.jit``, gradients of frozen weights are not even computed.

    Args:
      optimizer: trains the others.
      where: which weights are frozen: a pattern of whole paths, in which ``*`` stands for anything, ``"[0]*"``, say; or a
        function from a path, such as ``[3]['kernel']``, to whether it is, which counts by value. Static.

    Raises:
      OptimizerError: if ``where`` chooses no weight or all, and when gradients, state and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> weights = {"body": jnp.ones(2), "head": jnp.ones(2)}
      >>> optimizer = optim.Freeze(optim.SGD(0.1, momentum=0.9), where="['body']*")
      >>> state = optimizer.init(weights)
      >>> updates, state = optimizer.step(weights, state, weights)
      >>> optim.apply_updates(weights, updates)
      {'body': Array([1., 1.], dtype=float32), 'head': Array([0.9, 0.9], dtype=float32)}
      >>> state.inner.velocity
      {'body': (), 'head': Array([1., 1.], dtype=float32)}
    """

    where: str | Callable[[str], bool] = switch(pattern)

    def init(self, trainables):
        self.check_trainables(trainables)
        frozen = chosen(self, self.where, trainables)
        if (answers := jax.tree.leaves(frozen)) and all(answers):
            self.refuse(f"where must leave at least one weight to train, but chose all {len(answers)}.")
        return FreezeState(self.optimizer.init(_free(frozen, trainables)))

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, FreezeState)
        frozen = chosen(self, self.where, trainables)
        updates, inner = self.optimizer.step(_free(frozen, gradients), state.inner, _free(frozen, trainables))
        nothing = zeros(trainables, wide=True)
        updates = jax.tree.map(lambda frozen, zero, new: zero if frozen else new, frozen, nothing, updates)
        return updates, FreezeState(inner)

    def used(self, gradients):
        return self.optimizer.used(_free(chosen(self, self.where, gradients), gradients))


def _free(frozen, tree):
    """The tree with ``()`` in place of what is frozen; JAX sees no leaf there."""
    return jax.tree.map(lambda frozen, leaf: () if frozen else leaf, frozen, tree)
