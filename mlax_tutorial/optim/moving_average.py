"""``ExponentialMovingAverage``: a smoothed copy of the weights."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.numeric import accumulator
from mlax_tutorial.optim.moments import average, wide
from mlax_tutorial.optim.optimizer import Wrapper
from mlax_tutorial.optim.tunable import decay, number
from mlax_tutorial.optim.updates import apply_updates


class ExponentialMovingAverageState(NamedTuple):
    """State of :class:`ExponentialMovingAverage`.

    Attributes:
      average: of the weights, one array a weight, at least float32.
      inner: the state of the optimizer.
    """

    average: Any
    inner: Any


class ExponentialMovingAverage(Wrapper):
    r"""Keep a running average of the weights beside those that an optimizer trains.

    After each step, :math:`a \leftarrow \beta a + (1 - \beta) w`, beginning at the first weights. Training goes on as without it;
    evaluate with ``state.average``, which has the structure of the trainables. It averages out what the last gradients did by chance.

    Args:
      optimizer: trains the weights.
      decay: :math:`\beta`, in [0, 1); a leaf. The average spans about :math:`1 / (1 - \beta)` steps.

    Raises:
      OptimizerError: on a number out of range, and when gradients, state and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer, weights = optim.ExponentialMovingAverage(optim.SGD(1.0), decay=0.75), {"w": jnp.zeros(1)}
      >>> updates, state = optimizer.step({"w": jnp.array([-4.0])}, optimizer.init(weights), weights)
      >>> optim.apply_updates(weights, updates), state.average
      ({'w': Array([4.], dtype=float32)}, {'w': Array([1.], dtype=float32)})

    Reference: Polyak and Juditsky, *Acceleration of Stochastic Approximation by Averaging* (1992), where the average is over all
    steps alike.
    """

    decay: jax.Array = number(decay, default=0.999)

    def init(self, trainables):
        self.check_arrays(trainables)
        return ExponentialMovingAverageState(copies(trainables), self.optimizer.init(trainables))

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, ExponentialMovingAverageState, average=True)
        updates, inner = self.optimizer.step(gradients, state.inner, trainables)
        new = wide(trainables, apply_updates(trainables, updates))
        return updates, ExponentialMovingAverageState(average(self.decay, state.average, new), inner)


def copies(trainables: Any) -> Any:
    """Copies that are at least float32. Arrays of their own, too: both may be donated to one step."""
    return jax.tree.map(lambda weight: jnp.array(weight, accumulator(weight.dtype), copy=True), trainables)
