"""``Packed``: the weights laid end to end, for models of many small ones."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.paths import flatten
from mlax_tutorial.optim import ScaleByTrustRatio
from mlax_tutorial.optim.optimizer import Wrapper, optimizer, parts_of
from mlax_tutorial.optim.tunable import number

__all__ = ["Packed", "PackedState"]


def alike(value):
    """An optimizer that does not choose weights by path, nor looks at each as a whole."""
    for part in parts_of(optimizer(value), _chooses):
        mend = "does not: put Freeze around Packed, WeightDecay before it in a Chain"
        raise ValueError(f"must treat all weights alike, but {type(part).__name__} {mend}")
    return value


def _chooses(part):
    return (
        getattr(part, "where", None) is not None
        or hasattr(part, "patterns")
        or isinstance(part, ScaleByTrustRatio)
    )


class PackedState(NamedTuple):
    """State of :class:`Packed`.

    Attributes:
      inner: the state of the optimizer, as for trainables ``{dtype: vector}``.
    """

    inner: Any


class Packed(Wrapper):
    """Lay all weights of a dtype end to end, and let an optimizer work on that one vector.

    Its state is then a few long arrays, not a few for each weight, and its arithmetic a few loops. What remains for each weight is
    to copy its gradient in and its update out. That pays where weights are many and small: there, a step spends its time on handing
    arrays over and on starting loops. Where they are large, the copies cost more than is gained.

    The numbers are those of the optimizer alone, if it treats each number by itself, or by sums over all of them, as ``ClipByGlobalNorm``
    does; with a norm of each weight they would be others. The inner optimizer sees no paths, and averages inside are packed, so ``Freeze``
    and ``ExponentialMovingAverage`` go around ``Packed``. A state belongs to weights of these names, shapes and order: only how many
    numbers there are is compared.

    It is for weights that lie on one device, or as copies on all. Sharded ones are refused where their places are known; under
    ``jax.jit`` they are not, and the weights are gathered.

    Args:
      optimizer: works on the vectors.

    Raises:
      OptimizerError: if the optimizer chooses weights by path, on weights that are known to be sharded, and when gradients, state and trainables differ.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import optim, packing
      >>> weights = {"bias": jnp.ones(2), "kernel": jnp.ones((3, 2))}
      >>> optimizer = packing.Packed(optim.SGD(0.1, momentum=0.9))
      >>> state = optimizer.init(weights)
      >>> jax.tree.map(jnp.shape, state.inner.velocity)
      {'float32': (8,)}
      >>> updates, state = optimizer.step(weights, state, weights)
      >>> updates["bias"], updates["kernel"].shape
      (Array([-0.1, -0.1], dtype=float32), (3, 2))
    """

    optimizer: Any = number(alike)
    State = PackedState

    def init(self, trainables):
        self.check_trainables(trainables)
        self._check_places(trainables)
        return PackedState(self.optimizer.init(_packed(trainables, trainables)))

    def transform(self, gradients, state, trainables, **extra):
        self._check_places(trainables)
        weights = _packed(trainables, trainables)
        updates, inner = self.optimizer.go(_packed(trainables, gradients), state.inner, weights, extra)
        return _unpacked(trainables, updates), PackedState(inner)

    def _check_places(self, trainables):
        for path, leaf in zip(*flatten(trainables)[:2]):
            sharding = None if isinstance(leaf, jax.core.Tracer) else getattr(leaf, "sharding", None)
            if not (sharding is None or sharding.is_fully_replicated):
                mend = "packed, it would be gathered. Use the optimizer without Packed"
                self.refuse(f"trainables{path} expects to lie whole on each device, got {sharding}: {mend}.")


def _packed(trainables, tree):
    """The leaves as vectors, one for each dtype of the trainables."""
    parts: dict[str, list] = {}
    for weight, leaf in zip(jax.tree.leaves(trainables), jax.tree.leaves(tree), strict=True):
        parts.setdefault(_dtype(weight), []).append(jnp.reshape(leaf, -1))
    return {dtype: jnp.concatenate(vectors) for dtype, vectors in parts.items()}


def _unpacked(trainables, vectors):
    """The tree whose leaves were packed."""
    leaves, structure = jax.tree.flatten(trainables)
    places, ends = [], dict.fromkeys(vectors, 0)
    for leaf in leaves:
        places.append(jnp.uint32(ends[_dtype(leaf)]))
        ends[_dtype(leaf)] += leaf.size
    # Behind the barrier XLA does not see the numbers, so it compiles one loop for all weights of a size, not one for each place. (That of
    # JAX 0.7.2 sees through it, and compiles longer.)
    places = jax.lax.optimization_barrier(places)

    def part(leaf, place):
        return jax.lax.dynamic_slice(vectors[_dtype(leaf)], (place,), (leaf.size,)).reshape(leaf.shape)

    return jax.tree.unflatten(structure, map(part, leaves, places))


def _dtype(weight):
    return jnp.result_type(weight).name  # NumPy's float64 is float32 to JAX
