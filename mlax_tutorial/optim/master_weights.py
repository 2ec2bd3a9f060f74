"""``MasterWeights``: train weights of half precision through copies in float32."""

from typing import Any, NamedTuple

import jax

from mlax_tutorial.optim.moving_average import copies
from mlax_tutorial.optim.optimizer import Wrapper
from mlax_tutorial.optim.updates import apply_updates


class MasterWeightsState(NamedTuple):
    """State of :class:`MasterWeights`.

    Attributes:
      masters: the exact weights, one array a weight, at least float32.
      inner: the state of the optimizer, as for weights of those dtypes.
    """

    masters: Any
    inner: Any


class MasterWeights(Wrapper):
    """Let an optimizer train float32 copies of the weights; the weights themselves are those, rounded.

    A step is often smaller than half the distance between two numbers of half precision, and would be rounded away, however often
    it is repeated. In the copies, small steps add up. Once training has begun, the copies count: weights that are
    changed by other means are set right again by the next step.

    Args:
      optimizer: trains the copies.

    Raises:
      OptimizerError: when gradients, state and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> for optimizer in (optim.SGD(1e-3), optim.MasterWeights(optim.SGD(1e-3))):
      ...     weights = {"w": jnp.ones((), jnp.bfloat16)}
      ...     state = optimizer.init(weights)
      ...     for _ in range(100):
      ...         updates, state = optimizer.step({"w": jnp.ones((), jnp.bfloat16)}, state, weights)
      ...         weights = optim.apply_updates(weights, updates)
      ...     print(weights)
      {'w': Array(1, dtype=bfloat16)}
      {'w': Array(0.898438, dtype=bfloat16)}

    Reference: Micikevicius et al., *Mixed Precision Training*, ICLR (2018).
    """

    def init(self, trainables):
        self.check_arrays(trainables)
        masters = copies(trainables)
        return MasterWeightsState(masters, self.optimizer.init(masters))

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, MasterWeightsState, masters=True)
        updates, inner = self.optimizer.step(gradients, state.inner, state.masters)
        masters = apply_updates(state.masters, updates)
        updates = jax.tree.map(lambda w, master: master - w.astype(master.dtype), trainables, masters)
        return updates, MasterWeightsState(masters, inner)
