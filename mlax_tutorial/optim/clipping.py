"""``ClipByGlobalNorm`` and ``ClipByValue``: bound what one step can do."""

import jax
import jax.numpy as jnp

from mlax_tutorial.optim.optimizer import Transformation
from mlax_tutorial.optim.tunable import number, positive


class ClipByGlobalNorm(Transformation):
    r"""Shorten all gradients by one factor, so that their common norm is at most ``maximum``; keep their direction.

    .. math::
        g \leftarrow g \cdot \min(1, c / \lVert g \rVert), \qquad
        \lVert g \rVert^2 = \sum_{\text{all weights}} \sum_i g_i^2

    The sum is formed in float32 for half precision; a norm beyond 1.8e19, whose square no float32 holds, gives zeros. It stands before an optimizer in a ``Chain``. Inside ``jax.shard_map``, where
    a device sees only its shard, sum the gradients' squares over the devices yourself; under ``jax.jit`` nothing is to be done.

    Args:
      maximum: :math:`c`, above 0; a leaf.

    Raises:
      OptimizerError: on a number out of range, and when gradients and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> weights = gradients = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
      >>> optim.ClipByGlobalNorm(1.0).step(gradients, (), weights)[0]
      {'a': Array([0.6], dtype=float32), 'b': Array([0.8], dtype=float32)}

    Reference: Pascanu, Mikolov and Bengio, *On the difficulty of training recurrent neural networks*, ICML (2013).
    """

    maximum: jax.Array = number(positive)

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables)
        squares = sum(jnp.sum(jnp.square(g)).astype(jnp.float32) for g in jax.tree.leaves(gradients))
        too_long = squares > jnp.square(self.maximum)
        norm = jnp.sqrt(jnp.where(too_long, squares, 1))  # the root of zero has no slope
        factor = jnp.where(too_long, self.maximum / norm, 1)
        return jax.tree.map(lambda g: factor.astype(g.dtype) * g, gradients), state


class ClipByValue(Transformation):
    r"""Cut each number of each gradient off at :math:`\pm c`.

    It stands before an optimizer in a ``Chain``.

    Args:
      maximum: :math:`c`, above 0; a leaf.

    Raises:
      OptimizerError: on a number out of range, and when gradients and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> weights = gradients = {"a": jnp.array([3.0, -0.5])}
      >>> optim.ClipByValue(1.0).step(gradients, (), weights)[0]
      {'a': Array([ 1. , -0.5], dtype=float32)}
    """

    maximum: jax.Array = number(positive)

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables)

        def clip(gradient):
            bound = jnp.asarray(self.maximum, gradient.dtype)
            return jnp.clip(gradient, -bound, bound)

        return jax.tree.map(clip, gradients), state
