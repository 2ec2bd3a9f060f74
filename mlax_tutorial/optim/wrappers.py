"""Optimizers round an optimizer: some weights frozen, gradients accumulated, averages of the weights, copies in float32."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.numeric import accumulator
from mlax_tutorial.optim.moments import average, wide, zeros
from mlax_tutorial.optim.optimizer import Wrapper, apply_updates
from mlax_tutorial.optim.paths import chosen, pattern
from mlax_tutorial.optim.tunable import decay, number, switch, whole


class FreezeState(NamedTuple):
    """State of :class:`Freeze`.

    Attributes:
      inner: the state of the optimizer, with ``()`` in place of what belongs to a frozen weight.
    """

    inner: Any


class Freeze(Wrapper):
    """Leave the chosen weights as they are, and let an optimizer train the others.

    The optimizer does not see what is frozen, so it stores nothing for it, and neither decay nor the norm of a clipped
    gradient take it in. Under ``jax.jit``, gradients of frozen weights are not even computed.

    Args:
      optimizer: trains the others.
      where: which weights are frozen: a pattern of whole paths, in which ``*`` stands for anything, ``"[0]*"``, say; or a
        function from a path, such as ``[3]['kernel']``, to whether it is, which counts by value. Static.

    Raises:
      OptimizerError: if ``where`` chooses no weight or all, and when gradients, state and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> weights = {"body": jnp.ones(2), "head": jnp.ones(2)}
      >>> optimizer = optim.Freeze(optim.SGD(0.1, momentum=0.9), where="['body']*")
      >>> state = optimizer.init(weights)
      >>> updates, state = optimizer.step(weights, state, weights)
      >>> optim.apply_updates(weights, updates)
      {'body': Array([1., 1.], dtype=float32), 'head': Array([0.9, 0.9], dtype=float32)}
      >>> state.inner.velocity
      {'body': (), 'head': Array([1., 1.], dtype=float32)}
    """

    where: str | Callable[[str], bool] = switch(pattern)

    def init(self, trainables):
        self.check_trainables(trainables)
        frozen = chosen(self, self.where, trainables)
        if (answers := jax.tree.leaves(frozen)) and all(answers):
            self.refuse(f"where must leave at least one weight to train, but chose all {len(answers)}.")
        return FreezeState(self.optimizer.init(_free(frozen, trainables)))

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, FreezeState)
        frozen = chosen(self, self.where, trainables)
        updates, inner = self.optimizer.step(_free(frozen, gradients), state.inner, _free(frozen, trainables))
        nothing = zeros(trainables, wide=True)
        updates = jax.tree.map(lambda frozen, zero, new: zero if frozen else new, frozen, nothing, updates)
        return updates, FreezeState(inner)

    def used(self, gradients):
        return self.optimizer.used(_free(chosen(self, self.where, gradients), gradients))


def _free(frozen, tree):
    """The tree with ``()`` in place of what is frozen; JAX sees no leaf there."""
    return jax.tree.map(lambda frozen, leaf: () if frozen else leaf, frozen, tree)


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
