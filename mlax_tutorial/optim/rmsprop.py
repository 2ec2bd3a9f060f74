"""``RMSProp``: divide the gradient by the root of a running average of its square."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import boolean, floating_dtype, optional
from mlax_tutorial.optim.moments import accelerated, average, normalized, stored, zeros
from mlax_tutorial.optim.optimizer import Optimizer, increment
from mlax_tutorial.optim.schedules import Schedule, rate
from mlax_tutorial.optim.tunable import decay, fraction, number, positive, switch


class RMSPropState(NamedTuple):
    """State of :class:`RMSProp`.

    Attributes:
      second_moment: running average of the squares of the gradients, one array a weight, by default at least float32.
      velocity: one array a weight, of its dtype; ``()`` without momentum.
      count: how many steps were done, an int32 scalar; ``()`` without a schedule.
    """

    second_moment: Any
    velocity: Any = ()
    count: Any = ()


class RMSProp(Optimizer):
    r"""Divide the gradient by the root of a running average of its square.

    With gradient :math:`g`, learning rate :math:`\eta` and, if there is one, momentum :math:`\mu`, per weight:

    .. math::
        v &\leftarrow \beta v + (1 - \beta) g^2 \\
        u &\leftarrow \mu u + g / (\sqrt v + \epsilon) \\
        w &\leftarrow w - \eta u

    The average begins at zero and is not corrected for that, so the first steps are :math:`1 / \sqrt{1 - \beta}` times as long.

    Args:
      learning_rate: a number of at least 0, a leaf, so a new one never traces again; or an ``optim.Schedule``.
      decay: :math:`\beta`, in [0, 1); a leaf.
      epsilon: keeps the divisor from zero; above 0; a leaf.
      momentum: a number in [0, 1], a leaf; ``None`` stores no velocity.
      epsilon_inside: add it under the root instead, :math:`\sqrt{v + \epsilon}`; static.
      second_moment_dtype: of the stored average; by default the weight's, but at least float32.

    Raises:
      OptimizerError: on numbers out of range or not finite, and when gradients, state and trainables differ in
        structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer, weights = optim.RMSProp(0.1, decay=0.75), {"w": jnp.array([1.0, 2.0])}
      >>> updates, state = optimizer.step({"w": jnp.array([1.0, 1e3])}, optimizer.init(weights), weights)
      >>> optim.apply_updates(weights, updates)
      {'w': Array([0.8, 1.8], dtype=float32)}

    Reference: Tieleman and Hinton, *Lecture 6.5: RMSProp*, Coursera: Neural Networks for Machine Learning (2012).
    """

    learning_rate: jax.Array | Schedule = number(rate)
    decay: jax.Array = number(decay, default=0.9)
    epsilon: jax.Array = number(positive, default=1e-8)
    momentum: jax.Array | None = number(optional(fraction), default=None)
    epsilon_inside: bool = switch(boolean, default=False)
    second_moment_dtype: Any = switch(optional(floating_dtype), default=None)

    def init(self, trainables):
        self.check_trainables(trainables)
        return RMSPropState(
            zeros(trainables, self.second_moment_dtype, wide=True),
            () if self.momentum is None else zeros(trainables),
            self.first_count(),
        )

    def step(self, gradients, state, trainables):
        moves = self.momentum is not None
        gradients = self.check_step(
            gradients, state, trainables, RMSPropState, second_moment=True, velocity=moves
        )
        second = average(self.decay, state.second_moment, jax.tree.map(jnp.square, gradients))
        directions, velocity = normalized(gradients, second, self.epsilon, self.epsilon_inside), ()
        if moves:
            directions = velocity = accelerated(self.momentum, state.velocity, directions)
        new = RMSPropState(second, velocity, increment(state.count))
        return self.descend(directions, state.count), stored(new, state)
