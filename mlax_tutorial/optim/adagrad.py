"""``Adagrad``: divide the gradient by the root of the sum of all its squares so far."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import boolean, floating_dtype, optional
from mlax_tutorial.optim.moments import normalized, stored, zeros
from mlax_tutorial.optim.optimizer import Optimizer, increment
from mlax_tutorial.optim.schedules import Schedule, rate
from mlax_tutorial.optim.tunable import at_least, number, positive, switch


class AdagradState(NamedTuple):
    """State of :class:`Adagrad`.

    Attributes:
      sum_of_squares: one array a weight, by default at least float32.
      count: how many steps were done, an int32 scalar; ``()`` without a schedule.
    """

    sum_of_squares: Any
    count: Any = ()


class Adagrad(Optimizer):
    r"""Divide the gradient by the root of the sum of all its squares so far.

    With gradient :math:`g` and learning rate :math:`\eta`, per weight:

    .. math::
        s &\leftarrow s + g^2 \\
        w &\leftarrow w - \eta\, g / (\sqrt s + \epsilon)

    Weights whose gradient is seldom other than zero, such as embeddings of rare words, keep a long step. The sum
    only grows, so all steps grow short in the end.

    Args:
      learning_rate: a number of at least 0, a leaf, so a new one never traces again; or an ``optim.Schedule``.
      initial_sum: where the sum begins, of at least 0, which tames the first steps; a leaf.
      epsilon: keeps the divisor from zero; above 0; a leaf.
      epsilon_inside: add it under the root instead, :math:`\sqrt{s + \epsilon}`; static.
      accum_dtype: of the stored sum; by default the weight's, but at least float32.

    Raises:
      OptimizerError: on numbers out of range or not finite, and when gradients, state and trainables differ in
        structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer, weights = optim.Adagrad(0.1, initial_sum=0.0), {"w": jnp.array([2.0, 2.0])}
      >>> updates, state = optimizer.step({"w": jnp.array([1.0, 1e3])}, optimizer.init(weights), weights)
      >>> optim.apply_updates(weights, updates)
      {'w': Array([1.9, 1.9], dtype=float32)}

    Reference: Duchi, Hazan and Singer, *Adaptive Subgradient Methods for Online Learning and Stochastic Optimization*,
    JMLR 12 (2011).
    """

    learning_rate: jax.Array | Schedule = number(rate)
    initial_sum: jax.Array = number(at_least(0), default=0.1)
    epsilon: jax.Array = number(positive, default=1e-7)
    epsilon_inside: bool = switch(boolean, default=False)
    accum_dtype: Any = switch(optional(floating_dtype), default=None)

    def init(self, trainables):
        self.check_trainables(trainables)
        begin = zeros(trainables, self.accum_dtype, wide=True)
        begin = jax.tree.map(lambda zero: zero + jnp.asarray(self.initial_sum, zero.dtype), begin)
        return AdagradState(begin, self.first_count())

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, AdagradState, sum_of_squares=True)
        total = jax.tree.map(lambda s, g: s.astype(g.dtype) + jnp.square(g), state.sum_of_squares, gradients)
        directions = normalized(gradients, total, self.epsilon, self.epsilon_inside)
        new = AdagradState(total, increment(state.count))
        return self.descend(directions, state.count), stored(new, state)
