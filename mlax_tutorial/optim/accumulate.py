"""``Accumulate``: one step for the mean gradient of several small batches."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.optim.moments import zeros
from mlax_tutorial.optim.optimizer import Wrapper
from mlax_tutorial.optim.tunable import number, whole


class AccumulateState(NamedTuple):
    """State of :class:`Accumulate`.

    Attributes:
      count: how many gradients are in the sum, an int32 scalar.
      total: their sum, one array a weight, at least float32.
      inner: the state of the optimizer.
    """

    count: jax.Array
    total: Any
    inner: Any


class Accumulate(Wrapper):
    """Collect the gradients of ``steps`` batches; then let an optimizer take one step with their mean.

    For batches of one size and a loss that is a mean over them, that is the step of one batch ``steps`` times as large, in the
    memory of a small one. The updates between are zeros. Schedules, decay and averages inside count only the real steps.

    Args:
      optimizer: takes the real steps.
      steps: how many gradients make one step; a whole number, a leaf.

    Raises:
      OptimizerError: on a number that is not whole, and when gradients, state and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer, weights = optim.Accumulate(optim.SGD(1.0), steps=2), {"w": jnp.zeros(1)}
      >>> state = optimizer.init(weights)
      >>> for gradient in (1.0, 2.0):
      ...     updates, state = optimizer.step({"w": jnp.array([gradient])}, state, weights)
      ...     print(updates)
      {'w': Array([0.], dtype=float32)}
      {'w': Array([-1.5], dtype=float32)}
    """

    steps: jax.Array = number(whole)

    def init(self, trainables):
        inner = self.optimizer.init(trainables)
        return AccumulateState(jnp.zeros((), jnp.int32), zeros(trainables, wide=True), inner)

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, AccumulateState, total=True)
        nothing = zeros(trainables, wide=True)
        count, total = state.count + 1, jax.tree.map(jnp.add, state.total, gradients)

        def step():
            mean = jax.tree.map(lambda t: t / count.astype(t.dtype), total)
            updates, inner = self.optimizer.step(mean, state.inner, trainables)
            return updates, AccumulateState(jnp.zeros_like(count), nothing, inner)

        def wait():
            return nothing, AccumulateState(count, total, state.inner)

        return jax.lax.cond(count >= self.steps, step, wait)
