"""``Lion``: the sign of a momentum."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import optional
from mlax_tutorial.nn.kinds import floating_dtype
from mlax_tutorial.optim.moments import average, stored, zeros
from mlax_tutorial.optim.optimizer import Optimizer, increment
from mlax_tutorial.optim.paths import pattern
from mlax_tutorial.optim.schedules import Schedule, rate
from mlax_tutorial.optim.transformations import decayed
from mlax_tutorial.optim.tunable import at_least, decay, number, switch


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
