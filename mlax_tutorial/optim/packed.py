"""``Packed``: the weights laid end to end, for models of many small ones."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.optim.optimizer import Wrapper, optimizer
from mlax_tutorial.optim.paths import flatten
from mlax_tutorial.optim.tunable import Tunable, number


def alike(value):
    """An optimizer that does not choose weights by path."""
    for part in jax.tree.leaves(optimizer(value), is_leaf=lambda part: _chooses(part)):
        if _chooses(part):
            raise ValueError(
                f"must treat all weights alike, but {type(part).__name__} chooses them by path, which they lose when they are "
                "packed: put Packed inside of Freeze, or decay all weights"
            )
    return value


def _chooses(part):
    return isinstance(part, Tunable) and getattr(part, "where", None) is not None


class PackedState(NamedTuple):
    """State of :class:`Packed`.

    Attributes:
      inner: the state of the optimizer, as for trainables ``{dtype: vector}``.
    """

    inner: Any


class Packed(Wrapper):
    """Lay all weights of a dtype end to end, and let an optimizer work on that one vector.

    The numbers are those of the optimizer alone, but its state is a few long arrays, not a few for each weight. What is the
    same for every array, however small it is, is spent once: handing it to the compiled step and back, starting a loop over its
    numbers. That counts where weights are many and small; where they are large, the copies into the vector cost more than is gained.

    It is for weights that lie on one device, or as copies on all: sharded ones would be gathered. The inner optimizer sees no paths, and
    averages inside are packed, so ``Freeze`` and ``ExponentialMovingAverage`` go around ``Packed``.

    Args:
      optimizer: works on the vectors.

    Raises:
      OptimizerError: if the optimizer chooses weights by path, on weights that are sharded or have 2**31 numbers and more, and when
        gradients, state and trainables differ in structure or shape.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> weights = {"bias": jnp.ones(2), "kernel": jnp.ones((3, 2))}
      >>> optimizer = optim.Packed(optim.SGD(0.1, momentum=0.9))
      >>> state = optimizer.init(weights)
      >>> jax.tree.map(jnp.shape, state.inner.velocity)
      {'float32': (8,)}
      >>> updates, state = optimizer.step(weights, state, weights)
      >>> updates["bias"], updates["kernel"].shape
      (Array([-0.1, -0.1], dtype=float32), (3, 2))
    """

    optimizer: Any = number(alike)

    def init(self, trainables):
        self.check_trainables(trainables)
        self._check_places(trainables)
        return PackedState(self.optimizer.init(_packed(trainables, trainables)))

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, PackedState)
        weights = _packed(trainables, trainables)
        updates, inner = self.optimizer.step(_packed(trainables, gradients), state.inner, weights)
        return _unpacked(trainables, updates), PackedState(inner)

    def _check_places(self, trainables):
        if sum(leaf.size for leaf in jax.tree.leaves(trainables)) >= 2**31:
            self.refuse(
                "trainables expect fewer than 2**31 numbers in all, since places in the vector are int32."
            )
        for path, leaf in zip(*flatten(trainables)[:2]):
            sharding = None if isinstance(leaf, jax.core.Tracer) else getattr(leaf, "sharding", None)
            if not (sharding is None or sharding.is_fully_replicated):
                self.refuse(
                    f"trainables{path} expects to lie whole on each device, got {sharding}: packed, it would be gathered. "
                    "Use the optimizer without Packed."
                )


def _packed(trainables, tree):
    """The leaves as vectors, one for each dtype of the trainables."""
    parts: dict[str, list] = {}
    for weight, leaf in zip(jax.tree.leaves(trainables), jax.tree.leaves(tree), strict=True):
        parts.setdefault(str(weight.dtype), []).append(leaf.reshape(-1))
    return {dtype: jnp.concatenate(vectors) for dtype, vectors in parts.items()}


def _unpacked(trainables, vectors):
    """The tree whose leaves were packed."""
    leaves, structure = jax.tree.flatten(trainables)
    # XLA does not see what number stands here, so it compiles one loop for all weights of a size, not one for each place: with 1,000
    # weights that is an eighth of the time.
    place = {dtype: jax.lax.optimization_barrier(jnp.int32(0)) for dtype in vectors}
    parts = []
    for leaf in leaves:
        dtype = str(leaf.dtype)
        part = jax.lax.dynamic_slice(vectors[dtype], (place[dtype],), (leaf.size,))
        parts.append(part.reshape(leaf.shape))
        place[dtype] = jax.lax.optimization_barrier(place[dtype] + leaf.size)
    return jax.tree.unflatten(structure, parts)
