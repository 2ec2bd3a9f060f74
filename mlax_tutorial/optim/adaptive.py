"""A step length for each weight: the gradient divided by the root of its squares, summed or averaged over the steps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import optional
from mlax_tutorial.nn.kinds import boolean, floating_dtype
from mlax_tutorial.optim.moments import accelerated, average, corrected, normalized, stored, zeros
from mlax_tutorial.optim.optimizer import Optimizer, increment
from mlax_tutorial.optim.paths import pattern
from mlax_tutorial.optim.schedules import Schedule, rate
from mlax_tutorial.optim.transformations import decayed
from mlax_tutorial.optim.tunable import at_least, decay, fraction, number, positive, switch


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
        gradients = self.check_step(gradients, state, trainables, AdagradState)
        total = jax.tree.map(lambda s, g: s.astype(g.dtype) + jnp.square(g), state.sum_of_squares, gradients)
        directions = normalized(gradients, total, self.epsilon, self.epsilon_inside)
        new = AdagradState(total, increment(state.count))
        return self.descend(directions, state.count), stored(new, state)


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
        second = zeros(trainables, self.second_moment_dtype, wide=True)
        return RMSPropState(second, () if self.momentum is None else zeros(trainables), self.first_count())

    def step(self, gradients, state, trainables):
        moves = self.momentum is not None
        gradients = self.check_step(gradients, state, trainables, RMSPropState, velocity=moves)
        second = average(self.decay, state.second_moment, jax.tree.map(jnp.square, gradients))
        directions, velocity = normalized(gradients, second, self.epsilon, self.epsilon_inside), ()
        if moves:
            directions = velocity = accelerated(self.momentum, state.velocity, directions)
        new = RMSPropState(second, velocity, increment(state.count))
        return self.descend(directions, state.count), stored(new, state)


class AdamState(NamedTuple):
    """State of :class:`Adam` and :class:`AdamW`.

    Attributes:
      count: how many steps were done, an int32 scalar.
      first_moment: running average of the gradients, one array a weight, by default of its dtype.
      second_moment: running average of their squares, one array a weight, by default at least float32.
    """

    count: jax.Array
    first_moment: Any
    second_moment: Any


class Adam(Optimizer):
    r"""Divide a running average of the gradients by the root of that of their squares.

    With gradient :math:`g`, learning rate :math:`\eta` and step :math:`t = 1, 2, \dots`, per weight:

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g &\qquad \hat m &= m / (1 - \beta_1^t) \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 &\qquad \hat v &= v / (1 - \beta_2^t) \\
        w &\leftarrow w - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)

    So a step has about the size :math:`\eta`, whatever the scale of the gradient. The divisors undo that both
    averages begin at zero. With Nesterov, :math:`\hat m` looks one step ahead:
    :math:`\beta_1 m / (1 - \beta_1^{t+1}) + (1 - \beta_1) g / (1 - \beta_1^t)`.

    Args:
      learning_rate: a number of at least 0, a leaf, so a new one never traces again; or an ``optim.Schedule``.
      first_decay: :math:`\beta_1`, in [0, 1); a leaf.
      second_decay: :math:`\beta_2`, in [0, 1); a leaf.
      epsilon: keeps the divisor from zero; above 0; a leaf.
      epsilon_inside: add it under the root instead, :math:`\sqrt{\hat v + \epsilon}`. The root then has a slope at zero,
        as it must for whoever differentiates through a step; static.
      nesterov: whether to look one step ahead; static.
      first_moment_dtype: of the stored average; by default the weight's.
      second_moment_dtype: likewise; by default at least float32, for in bfloat16 0.999 rounds to 1, and the average
        would never forget.

    Raises:
      OptimizerError: on numbers out of range or not finite, and when gradients, state and trainables differ in
        structure or shape.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer, weights = optim.Adam(0.1), {"w": jnp.array([1.0, 2.0])}
      >>> state = optimizer.init(weights)
      >>> gradients = {"w": jnp.array([1.0, 1e3])}
      >>> updates, state = optimizer.step(gradients, state, weights)
      >>> optim.apply_updates(weights, updates)  # one step of 0.1 for either gradient
      {'w': Array([0.9, 1.9], dtype=float32)}

    References: Kingma and Ba, *Adam: A Method for Stochastic Optimization*, ICLR (2015); for Nesterov's: Dozat,
    *Incorporating Nesterov Momentum into Adam*, ICLR workshop (2016).
    """

    learning_rate: jax.Array | Schedule = number(rate)
    first_decay: jax.Array = number(decay, default=0.9)
    second_decay: jax.Array = number(decay, default=0.999)
    epsilon: jax.Array = number(positive, default=1e-8)
    epsilon_inside: bool = switch(boolean, default=False)
    nesterov: bool = switch(boolean, default=False)
    first_moment_dtype: Any = switch(optional(floating_dtype), default=None)
    second_moment_dtype: Any = switch(optional(floating_dtype), default=None)

    def init(self, trainables):
        self.check_trainables(trainables)
        first = zeros(trainables, self.first_moment_dtype)
        second = zeros(trainables, self.second_moment_dtype, wide=True)
        return AdamState(jnp.zeros((), jnp.int32), first, second)

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, AdamState)
        count = increment(state.count)
        first = average(self.first_decay, state.first_moment, gradients)
        second = average(self.second_decay, state.second_moment, jax.tree.map(jnp.square, gradients))
        mean = corrected(self.first_decay, count, first)
        mean_square = corrected(self.second_decay, count, second)
        if self.nesterov:
            ahead = corrected(self.first_decay, increment(count), first)
            mean = average(self.first_decay, ahead, corrected(self.first_decay, count, gradients))
        directions = normalized(mean, mean_square, self.epsilon, self.epsilon_inside)
        updates = self.descend(self.decay(directions, trainables), state.count)
        return updates, stored(AdamState(count, first, second), state)

    def decay(self, directions, trainables):
        """What :class:`AdamW` adds: here nothing."""
        return directions


class AdamW(Adam):
    r"""Adam that also pulls each weight towards zero, by a share of the weight itself: decoupled weight decay.

    With :math:`\hat m` and :math:`\hat v` as in :class:`Adam`, per weight:

    .. math::
        w \leftarrow w - \eta\, \bigl(\hat m / (\sqrt{\hat v} + \epsilon) + \lambda w\bigr)

    A penalty in the loss, or ``optim.WeightDecay`` before ``Adam``, would go through the averages instead: there, weights with
    large gradients are pulled less.

    Args:
      learning_rate, first_decay, second_decay, epsilon, epsilon_inside, nesterov: as for :class:`Adam`.
      first_moment_dtype, second_moment_dtype: as for :class:`Adam`.
      weight_decay: :math:`\lambda`, of at least 0; a leaf.
      where: which weights decay, by path, as for ``optim.WeightDecay``; ``None`` is all. As a rule
        ``optim.kernels``, which leaves out biases, scales and embeddings.

    Raises:
      OptimizerError: as :class:`Adam`; and if ``where`` chooses no weight.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> weights = {"kernel": jnp.ones(2), "bias": jnp.ones(2)}
      >>> optimizer = optim.AdamW(0.1, weight_decay=0.5, where=optim.kernels)
      >>> nothing = {"kernel": jnp.zeros(2), "bias": jnp.zeros(2)}
      >>> updates, state = optimizer.step(nothing, optimizer.init(weights), weights)
      >>> optim.apply_updates(weights, updates)
      {'bias': Array([1., 1.], dtype=float32), 'kernel': Array([0.95, 0.95], dtype=float32)}

    Reference: Loshchilov and Hutter, *Decoupled Weight Decay Regularization*, ICLR (2019). (Their :math:`\alpha` is in
    :math:`\eta` here, which therefore also scales the decay, as in most libraries.)
    """

    weight_decay: jax.Array = number(at_least(0), default=0.01)
    where: str | Callable[[str], bool] | None = switch(optional(pattern), default=None)

    def decay(self, directions, trainables):
        return decayed(self, trainables, directions)
