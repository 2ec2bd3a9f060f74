"""``SGD``: stochastic gradient descent, plain, with momentum, or Nesterov's."""

from typing import Any, NamedTuple

import jax

from mlax_tutorial.nn.hyperparameters import optional
from mlax_tutorial.nn.kinds import boolean
from mlax_tutorial.optim.moments import accelerated, stored, zeros
from mlax_tutorial.optim.optimizer import Optimizer, increment
from mlax_tutorial.optim.schedules import Schedule, rate
from mlax_tutorial.optim.tunable import fraction, number, switch


class SGDState(NamedTuple):
    """State of :class:`SGD`.

    Attributes:
      velocity: one array a weight, of its shape and dtype; ``()`` without momentum.
      count: how many steps were done, an int32 scalar; ``()`` without a schedule.
    """

    velocity: Any
    count: Any = ()


class SGD(Optimizer):
    r"""Stochastic gradient descent.

    With gradient :math:`g`, learning rate :math:`\eta` and momentum :math:`\mu`, per weight:

    .. math::
        v &\leftarrow \mu v + g \\
        w &\leftarrow w - \eta v \qquad \text{or, with Nesterov,} \quad w - \eta (\mu v + g)

    The learning rate stands outside the velocity, so a change acts at once.

    Args:
      learning_rate: a number of at least 0, a leaf, so a new one never traces again; or an ``optim.Schedule``.
      momentum: a number in [0, 1], a leaf; ``None`` is plain gradient descent, without a velocity to store.
      nesterov: whether to look ahead along the velocity; static.

    Raises:
      OptimizerError: on numbers out of range or not finite, on Nesterov without momentum, and when gradients,
        state and trainables differ in structure or shape.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer, weights = optim.SGD(0.1, momentum=0.9), {"w": jnp.array([1.0, 2.0])}
      >>> state = optimizer.init(weights)
      >>> gradients = jax.grad(lambda weights: jnp.sum(weights["w"] ** 2))(weights)
      >>> updates, state = optimizer.step(gradients, state, weights)
      >>> optim.apply_updates(weights, updates)
      {'w': Array([0.8, 1.6], dtype=float32)}

    References: Polyak, *Some methods of speeding up the convergence of iteration methods* (1964); Nesterov, *A
    method of solving a convex programming problem with convergence rate O(1/k^2)* (1983); Sutskever et al.,
    *On the importance of initialization and momentum in deep learning* (2013), which gives this form of
    Nesterov's.
    """

    learning_rate: jax.Array | Schedule = number(rate)
    momentum: jax.Array | None = number(optional(fraction), default=None)
    nesterov: bool = switch(boolean, default=False)

    def __post_init__(self):
        super().__post_init__()
        if self.nesterov and self.momentum is None:
            self.refuse("nesterov looks ahead along the velocity, so it needs a momentum, got None.")

    def init(self, trainables):
        self.check_trainables(trainables)
        return SGDState(() if self.momentum is None else zeros(trainables), self.first_count())

    def step(self, gradients, state, trainables):
        moves = self.momentum is not None
        directions, velocity = self.check_step(gradients, state, trainables, SGDState, velocity=moves), ()
        if moves:
            velocity = accelerated(self.momentum, state.velocity, directions)
            directions = accelerated(self.momentum, velocity, directions) if self.nesterov else velocity
        new = SGDState(velocity, increment(state.count))
        return self.descend(directions, state.count), stored(new, state)
