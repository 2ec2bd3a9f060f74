"""``SGD``: stochastic gradient descent, plain, with momentum, or Nesterov's; and ``Lion``, along the sign of a momentum."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import optional
from mlax_tutorial.nn.kinds import boolean, floating_dtype
from mlax_tutorial.optim.moments import accelerated, average, stored, zeros
from mlax_tutorial.optim.optimizer import Optimizer, increment
from mlax_tutorial.optim.paths import pattern
from mlax_tutorial.optim.schedules import Schedule, rate
from mlax_tutorial.optim.transformations import decayed
from mlax_tutorial.optim.tunable import at_least, decay, fraction, number, switch


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


class LionState(NamedTuple):
    """State of :class:`Lion`.

    Attributes:
      first_moment: running average of the gradients, one array a weight, by default of its dtype.
      count: how many steps were done, an int32 scalar; ``()`` without a schedule.
    """

    first_moment: Any
    count: Any = ()


class Lion(Optimizer):
    r"""Follow the sign of a mixture of the gradient and its running average: every weight moves by the same amount.

    With gradient :math:`g` and learning rate :math:`\eta`, per weight:

    .. math::
        w &\leftarrow w - \eta\, \bigl(\operatorname{sign}(\beta_1 m + (1 - \beta_1) g) + \lambda w\bigr) \\
        m &\leftarrow \beta_2 m + (1 - \beta_2) g

    It stores half of what Adam does. Since its steps are longer, it wants a learning rate of a third to a tenth of Adam's, and
    a weight decay as many times larger.

    Args:
      learning_rate: a number of at least 0, a leaf, so a new one never traces again; or an ``optim.Schedule``.
      first_decay: :math:`\beta_1`, the share of the average in the mixture, in [0, 1); a leaf.
      second_decay: :math:`\beta_2`, what the average keeps, in [0, 1); a leaf.
      weight_decay: :math:`\lambda`, of at least 0; a leaf.
      where: which weights decay, by path, as for ``optim.WeightDecay``; ``None`` is all.
      first_moment_dtype: of the stored average; by default the weight's.

    Raises:
      OptimizerError: on numbers out of range or not finite, if ``where`` chooses no weight, and when gradients, state
        and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer, weights = optim.Lion(0.1), {"w": jnp.array([1.0, 2.0])}
      >>> updates, state = optimizer.step({"w": jnp.array([1.0, -1e3])}, optimizer.init(weights), weights)
      >>> optim.apply_updates(weights, updates)
      {'w': Array([0.9, 2.1], dtype=float32)}

    Reference: Chen et al., *Symbolic Discovery of Optimization Algorithms*, NeurIPS (2023).
    """

    learning_rate: jax.Array | Schedule = number(rate)
    first_decay: jax.Array = number(decay, default=0.9)
    second_decay: jax.Array = number(decay, default=0.99)
    weight_decay: jax.Array = number(at_least(0), default=0.0)
    where: str | Callable[[str], bool] | None = switch(optional(pattern), default=None)
    first_moment_dtype: Any = switch(optional(floating_dtype), default=None)

    def init(self, trainables):
        self.check_trainables(trainables)
        return LionState(zeros(trainables, self.first_moment_dtype), self.first_count())

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, LionState)
        mixture = average(self.first_decay, state.first_moment, gradients)
        directions = decayed(self, trainables, jax.tree.map(jnp.sign, mixture))
        first = average(self.second_decay, state.first_moment, gradients)
        new = LionState(first, increment(state.count))
        return self.descend(directions, state.count), stored(new, state)
