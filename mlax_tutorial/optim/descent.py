"""Optimizers that go against a direction: ``SGD``, ``Lion``, ``Adagrad``, ``RMSProp``, ``Adam``, ``AdamW``, and what they share, ``Descent``."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import optional
from mlax_tutorial.nn.paths import Where
from mlax_tutorial.nn.rules import boolean, floating_dtype
from mlax_tutorial.optim.moments import average, corrected, normalized, scaled, squares, stored, summed, zeros
from mlax_tutorial.optim.optimizer import Optimizer, increment, mirrors
from mlax_tutorial.optim.schedules import Schedule, at, rate
from mlax_tutorial.optim.transformations import decayed
from mlax_tutorial.optim.tunable import at_least, decay, fraction, number, positive, switch
from mlax_tutorial.optim.where import chosen, pattern

__all__ = [
    "SGD", "SGDState", "Lion", "LionState", "Adagrad", "AdagradState", "RMSProp", "RMSPropState", "Adam",
    "AdamState", "AdamW", "Descent",
]  # fmt: skip


class Descent(Optimizer):
    r"""Base of optimizers that go against a direction, made of the gradient and of moments of those before.

    With direction :math:`d`, learning rate :math:`\eta` and weight decay :math:`\lambda`, per weight:

    .. math::
        w \leftarrow w - \eta\, (d + \lambda w)

    A subclass has a ``State``, a ``NamedTuple`` with ``count`` and a field for each moment, and writes ``direction``. A switch named
    ``…_dtype`` sets the dtype of the moment ``…``, which is else that of the weight, but at least float32.

    Args:
      learning_rate: a number of at least 0, a leaf, so a new one never traces again; or an ``optim.Schedule``.
      weight_decay: likewise; ``None`` is no decay. It is decoupled: it enters no moment, and the learning rate scales it.
      where: which weights decay, by path, as for ``optim.WeightDecay``; ``None`` is all. As a rule
        ``optim.kernels``, which leaves out biases, scales and embeddings.

    Raises:
      OptimizerError: on numbers out of range or not finite, on ``where`` without decay or that chooses no weight, and when
        gradients, state and trainables differ in structure or shape.

    Example: follow the sign of the gradient.
      >>> from typing import Any, NamedTuple
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> class Count(NamedTuple):
      ...     count: Any
      >>> class SignSGD(optim.Descent):
      ...     State = Count
      ...     def direction(self, gradients, state, count):
      ...         return jax.tree.map(jnp.sign, gradients), {}
      >>> optimizer, weights = SignSGD(0.25, weight_decay=1.0), {"w": jnp.array([1.0, 2.0])}
      >>> updates, state = optimizer.step({"w": jnp.array([1e-3, -1e3])}, optimizer.init(weights), weights)
      >>> updates
      {'w': Array([-0.5 , -0.25], dtype=float32)}
    """

    learning_rate: jax.Array | Schedule = number(rate)
    weight_decay: jax.Array | Schedule | None = number(optional(rate), default=None)
    where: Where | None = switch(optional(pattern), default=None)

    def __post_init__(self):
        super().__post_init__()
        if self.where is not None and self.weight_decay is None:
            self.refuse("where says which weights decay, so it needs a weight_decay, got None.")

    @property
    def moments(self) -> tuple[str, ...]:
        """The fields of the state that hold an array for each weight; the others, but for ``count``, are ``()``."""
        without = getattr(self, "momentum", 0) is None and "velocity"
        return tuple(name for name in mirrors(self.State) if name != without)

    def direction(self, gradients: Any, state: Any, count: jax.Array) -> tuple[Any, dict[str, Any]]:
        """Where the gradients lead, and the new moments by name; ``count`` includes this step."""
        raise NotImplementedError(f"{type(self).__name__} must define direction")

    def init(self, trainables):
        self.check_trainables(trainables)
        chosen(self, self.where, trainables)
        begin = dict.fromkeys(self.State._fields, ()) | {"count": jnp.zeros((), jnp.int32)}
        for name in self.moments:
            real = name in ("second_moment", "sum_of_squares")  # also for complex weights
            begin[name] = zeros(trainables, getattr(self, f"{name}_dtype", None), real)
        return self.State(**begin)

    def transform(self, gradients, state, trainables):
        count = increment(state.count)
        directions, moments = self.direction(gradients, state, count)
        if self.weight_decay is not None:
            share = at(self.weight_decay, state.count)
            directions = decayed(share, chosen(self, self.where, trainables), trainables, directions)
        moments = {name: moments[name] for name in self.moments}
        updates = scaled(-at(self.learning_rate, state.count), directions)
        return updates, stored(state._replace(count=count, **moments), state)


class SGDState(NamedTuple):
    """State of :class:`SGD`.

    Attributes:
      velocity: one array a weight, of its shape, by default at least float32; ``()`` without momentum.
      count: how many steps were done, an int32 scalar.
    """

    velocity: Any
    count: jax.Array


class SGD(Descent):
    r"""Stochastic gradient descent.

    With gradient :math:`g`, learning rate :math:`\eta` and momentum :math:`\mu`, per weight:

    .. math::
        v &\leftarrow \mu v + g \\
        w &\leftarrow w - \eta v \qquad \text{or, with Nesterov,} \quad w - \eta (\mu v + g)

    The learning rate stands outside the velocity, so a change acts at once.

    Args:
      learning_rate, weight_decay, where: as for :class:`Descent`.
      momentum: a number in [0, 1], a leaf; ``None`` is plain gradient descent, without a velocity to store.
      nesterov: whether to look ahead along the velocity; static.
      velocity_dtype: of the stored velocity; by default the weight's, but at least float32. In bfloat16 it stops growing early:
        under a constant gradient of 1 and a momentum of 0.99 it ends at 75, not at 100.

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

    momentum: jax.Array | None = number(optional(fraction), default=None)
    nesterov: bool = switch(boolean, default=False)
    velocity_dtype: Any = switch(optional(floating_dtype), default=None)
    State = SGDState

    def __post_init__(self):
        super().__post_init__()
        if self.nesterov and self.momentum is None:
            self.refuse("nesterov looks ahead along the velocity, so it needs a momentum, got None.")

    def direction(self, gradients, state, count):
        velocity = summed(self.momentum, state.velocity, gradients)
        ahead = summed(self.momentum, velocity, gradients) if self.nesterov else velocity
        return ahead, {"velocity": velocity}


class LionState(NamedTuple):
    """State of :class:`Lion`.

    Attributes:
      first_moment: running average of the gradients, one array a weight, by default at least float32.
      count: how many steps were done, an int32 scalar.
    """

    first_moment: Any
    count: jax.Array


class Lion(Descent):
    r"""Follow the sign of a mixture of the gradient and its running average: every weight moves by the same amount.

    With gradient :math:`g` and learning rate :math:`\eta`, per weight:

    .. math::
        w &\leftarrow w - \eta\, \bigl(\operatorname{sign}(\beta_1 m + (1 - \beta_1) g) + \lambda w\bigr) \\
        m &\leftarrow \beta_2 m + (1 - \beta_2) g

    It stores half of what Adam does. Since its steps are longer, it wants a learning rate of a third to a tenth of Adam's, and
    a weight decay as many times larger.

    Args:
      learning_rate, weight_decay, where: as for :class:`Descent`.
      first_decay: :math:`\beta_1`, the share of the average in the mixture, in [0, 1); a leaf.
      second_decay: :math:`\beta_2`, what the average keeps, in [0, 1); a leaf.
      first_moment_dtype: of the stored average; by default the weight's, but at least float32. In bfloat16 it stops early: under a
        constant gradient of 1 it ends at 0.8.

    Raises:
      OptimizerError: on numbers out of range or not finite, and when gradients, state and trainables differ in
        structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer, weights = optim.Lion(0.1), {"w": jnp.array([1.0, 2.0])}
      >>> updates, state = optimizer.step({"w": jnp.array([1.0, -1e3])}, optimizer.init(weights), weights)
      >>> optim.apply_updates(weights, updates)
      {'w': Array([0.9, 2.1], dtype=float32)}

    Reference: Chen et al., *Symbolic Discovery of Optimization Algorithms*, NeurIPS (2023).
    """

    first_decay: jax.Array = number(decay, default=0.9)
    second_decay: jax.Array = number(decay, default=0.99)
    first_moment_dtype: Any = switch(optional(floating_dtype), default=None)
    State = LionState

    def direction(self, gradients, state, count):
        mixture = average(self.first_decay, state.first_moment, gradients)
        first = average(self.second_decay, state.first_moment, gradients)
        return jax.tree.map(jnp.sign, mixture), {"first_moment": first}


class AdagradState(NamedTuple):
    """State of :class:`Adagrad`.

    Attributes:
      sum_of_squares: one array a weight, by default at least float32.
      count: how many steps were done, an int32 scalar.
    """

    sum_of_squares: Any
    count: jax.Array


class Adagrad(Descent):
    r"""Divide the gradient by the root of the sum of all its squares so far.

    With gradient :math:`g` and learning rate :math:`\eta`, per weight:

    .. math::
        s &\leftarrow s + g^2 \\
        w &\leftarrow w - \eta\, g / (\sqrt s + \epsilon)

    Weights whose gradient is seldom other than zero, such as embeddings of rare words, keep a long step. The sum
    only grows, so all steps grow short in the end.

    Args:
      learning_rate, weight_decay, where: as for :class:`Descent`.
      initial_sum: where the sum begins, of at least 0, which tames the first steps; a leaf.
      epsilon: keeps the divisor from zero; above 0; a leaf.
      epsilon_inside: add it under the root instead, :math:`\sqrt{s + \epsilon}`, so that the step can be differentiated where
        all gradients so far were zero; static.
      sum_of_squares_dtype: of the stored sum; by default the weight's, but at least float32. In bfloat16 it stops growing once a
        square is less than 1/512 of it.

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

    initial_sum: jax.Array = number(at_least(0), default=0.1)
    epsilon: jax.Array = number(positive, default=1e-7)
    epsilon_inside: bool = switch(boolean, default=False)
    sum_of_squares_dtype: Any = switch(optional(floating_dtype), default=None)
    State = AdagradState

    def init(self, trainables):
        state = super().init(trainables)
        ones = jax.tree.map(jnp.ones_like, state.sum_of_squares)
        return state._replace(sum_of_squares=scaled(self.initial_sum, ones))

    def direction(self, gradients, state, count):
        total = summed(1, state.sum_of_squares, squares(gradients))
        return normalized(gradients, total, self.epsilon, self.epsilon_inside), {"sum_of_squares": total}


class RMSPropState(NamedTuple):
    """State of :class:`RMSProp`.

    Attributes:
      second_moment: running average of the squares of the gradients, one array a weight, by default at least float32.
      velocity: one array a weight, likewise; ``()`` without momentum.
      count: how many steps were done, an int32 scalar.
    """

    second_moment: Any
    velocity: Any
    count: jax.Array


class RMSProp(Descent):
    r"""Divide the gradient by the root of a running average of its square.

    With gradient :math:`g`, learning rate :math:`\eta` and, if there is one, momentum :math:`\mu`, per weight:

    .. math::
        v &\leftarrow \beta v + (1 - \beta) g^2 \\
        u &\leftarrow \mu u + g / (\sqrt v + \epsilon) \\
        w &\leftarrow w - \eta u

    The average begins at zero and is not corrected for that, so the first steps are :math:`1 / \sqrt{1 - \beta}` times as long.

    Args:
      learning_rate, weight_decay, where: as for :class:`Descent`.
      decay: :math:`\beta`, in [0, 1); a leaf.
      epsilon: keeps the divisor from zero; above 0; a leaf.
      momentum: a number in [0, 1], a leaf; ``None`` stores no velocity.
      epsilon_inside: add it under the root instead, :math:`\sqrt{v + \epsilon}`, so that the step can be differentiated where
        all gradients so far were zero; static.
      second_moment_dtype: of the stored average; by default the weight's, but at least float32. In bfloat16, a decay of 0.999
        rounds to 1, and the average would never forget.
      velocity_dtype: of the stored velocity; likewise. In bfloat16 it stops growing early, as that of :class:`SGD`.

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

    decay: jax.Array = number(decay, default=0.9)
    epsilon: jax.Array = number(positive, default=1e-8)
    momentum: jax.Array | None = number(optional(fraction), default=None)
    epsilon_inside: bool = switch(boolean, default=False)
    second_moment_dtype: Any = switch(optional(floating_dtype), default=None)
    velocity_dtype: Any = switch(optional(floating_dtype), default=None)
    State = RMSPropState

    def direction(self, gradients, state, count):
        second = average(self.decay, state.second_moment, squares(gradients))
        directions = normalized(gradients, second, self.epsilon, self.epsilon_inside)
        velocity = summed(self.momentum, state.velocity, directions)
        return velocity, {"second_moment": second, "velocity": velocity}


class AdamState(NamedTuple):
    """State of :class:`Adam` and :class:`AdamW`.

    Attributes:
      count: how many steps were done, an int32 scalar.
      first_moment: running average of the gradients, one array a weight, by default at least float32.
      second_moment: running average of their squares, likewise.
    """

    count: jax.Array
    first_moment: Any
    second_moment: Any


class Adam(Descent):
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
      learning_rate, weight_decay, where: as for :class:`Descent`.
      first_decay: :math:`\beta_1`, in [0, 1); a leaf.
      second_decay: :math:`\beta_2`, in [0, 1); a leaf.
      epsilon: keeps the divisor from zero; above 0; a leaf.
      epsilon_inside: add it under the root instead, :math:`\sqrt{\hat v + \epsilon}`, so that the step can be differentiated
        where all gradients so far were zero; static.
      nesterov: whether to look one step ahead; static.
      first_moment_dtype: of the stored average; by default the weight's, but at least float32. In bfloat16 it takes half the memory,
        and ends up to 2 % short of a constant gradient.
      second_moment_dtype: likewise. In bfloat16 0.999 rounds to 1, and the average would never forget.

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

    first_decay: jax.Array = number(decay, default=0.9)
    second_decay: jax.Array = number(decay, default=0.999)
    epsilon: jax.Array = number(positive, default=1e-8)
    epsilon_inside: bool = switch(boolean, default=False)
    nesterov: bool = switch(boolean, default=False)
    first_moment_dtype: Any = switch(optional(floating_dtype), default=None)
    second_moment_dtype: Any = switch(optional(floating_dtype), default=None)
    State = AdamState

    def direction(self, gradients, state, count):
        first = average(self.first_decay, state.first_moment, gradients)
        second = average(self.second_decay, state.second_moment, squares(gradients))
        mean = corrected(self.first_decay, count, first)
        mean_square = corrected(self.second_decay, count, second)
        if self.nesterov:
            ahead = corrected(self.first_decay, increment(count), first)
            mean = average(self.first_decay, ahead, corrected(self.first_decay, count, gradients))
        moments = {"first_moment": first, "second_moment": second}
        return normalized(mean, mean_square, self.epsilon, self.epsilon_inside), moments


class AdamW(Adam):
    r"""Adam that also pulls each weight towards zero, by a share of the weight itself: decoupled weight decay.

    With :math:`\hat m` and :math:`\hat v` as in :class:`Adam`, per weight:

    .. math::
        w \leftarrow w - \eta\, \bigl(\hat m / (\sqrt{\hat v} + \epsilon) + \lambda w\bigr)

    A penalty in the loss, or ``optim.WeightDecay`` before ``Adam``, would go through the averages instead: there, weights with
    large gradients are pulled less.

    Args:
      weight_decay: :math:`\lambda`, as for :class:`Descent`, by default 0.01. All others are as for :class:`Adam`.

    Raises:
      OptimizerError: as :class:`Adam`.

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

    weight_decay: jax.Array | Schedule | None = number(optional(rate), default=0.01)
