"""Optimizers round an optimizer: some weights frozen, others by groups, gradients accumulated, averages of the weights, copies in float32."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import accumulator
from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.nn.paths import Where
from mlax_tutorial.nn.rules import boolean
from mlax_tutorial.optim.moments import average, bias_correction, scalar, wide, zeros
from mlax_tutorial.optim.optimizer import Optimizer, Wrapper, apply_updates, increment, optimizer, parts_of
from mlax_tutorial.optim.schedules import Schedule, at, rate
from mlax_tutorial.optim.tunable import at_least, decay, number, switch, whole
from mlax_tutorial.optim.where import chosen, pattern

__all__ = [
    "Freeze", "FreezeState", "Groups", "GroupsState", "Accumulate", "AccumulateState",
    "ExponentialMovingAverage", "ExponentialMovingAverageState", "MasterWeights", "MasterWeightsState",
]  # fmt: skip


def without_averages(value: Any) -> Optimizer:
    """An optimizer that may see a part of the weights only."""

    if parts_of(optimizer(value), lambda part: isinstance(part, ExponentialMovingAverage)):
        mend = "put ExponentialMovingAverage around it"
        raise ValueError(f"must not average the weights, since it does not see all of them: {mend}")
    return value


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

    It keeps weights, not the non_trainables: in a frozen body, the statistics of a batch norm go on running, and its dropout
    goes on. Wrap the body in ``nn.Inference``, or in a ``forward`` call it with ``inference_mode=True``, and it stays as it is.

    Args:
      optimizer: trains the others.
      where: which weights are frozen: a pattern of whole paths, in which ``*`` stands for anything, ``"[0]*"``, say; or a
        function from a path, such as ``[3]['kernel']``, to whether it is, which counts by identity. Static.

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

    optimizer: Any = number(without_averages)
    where: Where = switch(pattern)
    State = FreezeState

    def init(self, trainables):
        self.check_trainables(trainables)
        trained = only(chosen(self, self.where, trainables), False, trainables)
        if (every := jax.tree.leaves(trainables)) and not jax.tree.leaves(trained):
            self.refuse(f"where must leave at least one weight to train, but chose all {len(every)}.")
        return FreezeState(self.optimizer.init(trained))

    def transform(self, gradients, state, trainables, **extra):
        frozen = chosen(self, self.where, trainables)
        trained, weights = only(frozen, False, gradients), only(frozen, False, trainables)
        updates, inner = self.optimizer.go(trained, state.inner, weights, extra)

        def either(frozen, zero, new):
            return zero if frozen else new

        return jax.tree.map(either, frozen, zeros(trainables), updates), FreezeState(inner)

    def used(self, gradients):
        return self.optimizer.used(only(chosen(self, self.where, gradients), False, gradients))


def only(groups: Any, group: Any, tree: Any) -> Any:
    """The tree with ``()`` in place of what is of another group; JAX sees no leaf there."""
    return jax.tree.map(lambda its, leaf: leaf if its == group else (), groups, tree)


class GroupsState(NamedTuple):
    """State of :class:`Groups`.

    Attributes:
      inner: the states of the optimizers, a tuple, with ``()`` in place of what belongs to the weights of others.
    """

    inner: tuple


class Groups(Optimizer):
    """Another optimizer, or another learning rate, for another part of the weights.

    Each optimizer sees its weights alone: the norm of a clipped gradient is that of its group.

    Args:
      groups: a dict from a pattern of whole paths, or a function from a path to ``bool``, to the optimizer of the weights that
        it chooses. Patterns are static. Each weight must be chosen exactly once. (To train some not at all, put ``Freeze`` round it.)

    Raises:
      OptimizerError: on a weight that no pattern chooses, or more than one; on a pattern that chooses none; and when gradients,
        state and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> weights = {"body": jnp.ones(2), "head": jnp.ones(2)}
      >>> optimizer = optim.Groups({"['body']*": optim.SGD(0.1), "['head']*": optim.Adam(0.5)})
      >>> updates, state = optimizer.step(weights, optimizer.init(weights), weights)
      >>> optim.apply_updates(weights, updates)
      {'body': Array([0.9, 0.9], dtype=float32), 'head': Array([0.5, 0.5], dtype=float32)}
    """

    patterns: tuple = switch(lambda value: tuple(map(pattern, value)))
    optimizers: tuple[Optimizer, ...] = number(lambda value: tuple(map(without_averages, value)))
    State = GroupsState
    extra = property(lambda self: frozenset().union(*(each.extra for each in self.optimizers)))

    def __init__(self, groups: dict | None = None, *, patterns: Sequence = (), optimizers: Sequence = ()):
        groups = dict(zip(patterns, optimizers, strict=True)) if groups is None else groups
        if not isinstance(groups, dict) or not groups:
            self.refuse(f"groups must be a dict from patterns to optimizers, got {show(groups)}.")
        vars(self).update(patterns=tuple(groups), optimizers=tuple(groups.values()))
        self.__post_init__()

    def init(self, trainables):
        self.check_trainables(trainables)
        parts = zip(self.optimizers, self._parts(trainables))
        return GroupsState(tuple(each.init(part) for each, part in parts))

    def transform(self, gradients, state, trainables, **extra):
        owners = self._owners(trainables)
        parts = self._parts(gradients, owners), state.inner, self._parts(trainables, owners)
        steps = [each.go(*part, extra) for each, *part in zip(self.optimizers, *parts, strict=True)]
        updates, states = zip(*steps)
        return jax.tree.map(lambda owner, *each: each[owner], owners, *updates), GroupsState(states)

    def used(self, gradients):
        return tuple(each.used(part) for each, part in zip(self.optimizers, self._parts(gradients)))

    def acted(self, state):
        acted = [each.acted(inner) for each, inner in zip(self.optimizers, state.inner)]
        return functools.reduce(jnp.logical_or, acted)

    def _parts(self, tree, owners=None):
        owners = owners or self._owners(tree)
        return [only(owners, index, tree) for index in range(len(self.patterns))]

    def _owners(self, tree):
        """For each weight the place of its optimizer."""
        answers = [chosen(self, where, tree) for where in self.patterns]

        def owner(path, *chooses):
            if sum(chooses) != 1:
                got = f"{sum(chooses)} of {show(self.patterns)} choose it"
                where = jax.tree_util.keystr(path)
                self.refuse(f"trainables{where} must be chosen by exactly one pattern, but {got}.")
            return chooses.index(True)

        return jax.tree_util.tree_map_with_path(owner, *answers)

    def __repr__(self):
        groups = (f"{show(where)}: {part!r}" for where, part in zip(self.patterns, self.optimizers))
        return f"Groups({{{', '.join(groups)}}})"


class AccumulateState(NamedTuple):
    """State of :class:`Accumulate`.

    Attributes:
      count: how many gradients are in the sum, an int32 scalar.
      total: their sum, each times its weight, one array a weight of the model, at least float32.
      weight: the sum of their weights, a float32 scalar.
      inner: the state of the optimizer.
    """

    count: jax.Array
    total: Any
    weight: jax.Array
    inner: Any


class Accumulate(Wrapper):
    """Collect the gradients of ``steps`` batches; then let an optimizer take one step with their mean.

    For batches of one size and a loss that is a mean over them, that is the step of one batch ``steps`` times as large, in the
    memory of a small one. Where they differ in size, say how much each counts, ``optimizer.step(…, weight=tokens)``, or to
    ``training.make_step``, ``weight=``. The updates between are zeros. Schedules, decay and averages, inside, around, or
    after it in a ``Chain``, count only the real steps; what comes before it there sees every gradient.

    Args:
      optimizer: takes the real steps.
      steps: how many gradients make one step; a whole number, a leaf.

    Raises:
      OptimizerError: on a number that is not whole, on a ``weight`` that is not one finite number of at least 0, and when
        gradients, state and trainables differ in structure or shape.

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
    State = AccumulateState
    extra = property(lambda self: self.optimizer.extra | {"weight"})

    def acted(self, state):
        return state.count == 0

    def init(self, trainables):
        inner = self.optimizer.init(trainables)
        return AccumulateState(jnp.zeros((), jnp.int32), zeros(trainables), jnp.zeros((), jnp.float32), inner)

    def transform(self, gradients, state, trainables, weight=1.0, **extra):
        try:
            weight = at_least(0)(weight)
        except ValueError as error:
            self.refuse(f"weight {error}, how much this batch counts, got {show(weight)}.")
        nothing, count = zeros(trainables), state.count + 1

        def add(total, gradient):
            # A batch without weight, of padding alone, say, may have a mean over nothing: NaN.
            weighted = scalar(weight)(total.dtype) * gradient.astype(total.dtype)
            return total + jnp.where(weight == 0, 0, weighted)

        total = jax.tree.map(add, state.total, gradients)
        weight = state.weight + weight

        def step():
            whole = scalar(jnp.where(weight > 0, weight, 1))
            mean = jax.tree.map(lambda t: t / whole(t.dtype), total)
            updates, inner = self.optimizer.go(mean, state.inner, trainables, extra)
            return updates, AccumulateState(jnp.zeros_like(count), nothing, jnp.zeros_like(weight), inner)

        def wait():
            return nothing, AccumulateState(count, total, weight, state.inner)

        return jax.lax.cond(count >= self.steps, step, wait)


class ExponentialMovingAverageState(NamedTuple):
    """State of :class:`ExponentialMovingAverage`.

    Attributes:
      average: of the weights, one array a weight, at least float32.
      inner: the state of the optimizer.
      count: how many steps were done, an int32 scalar.
    """

    average: Any
    inner: Any
    count: jax.Array


def decay_or_schedule(value):
    """A number in [0, 1), a schedule, or a function from the count to a number."""
    return rate(value) if callable(value) else decay(value)


class ExponentialMovingAverage(Wrapper):
    r"""Keep a running average of the weights beside those that an optimizer trains.

    After each step, :math:`a \leftarrow \beta a + (1 - \beta) w`, beginning at the first weights. Training goes on as without it;
    evaluate with ``state.average``, which has the structure of the trainables. It averages out what the last gradients did by chance.

    With ``bias_correction`` the average is of the trained weights alone: it begins at zero and is divided, as Adam's, by
    :math:`1 - \beta^t`, the sum of all shares. Otherwise the first weights, which are random, have the share :math:`\beta^t`. The
    same average, step by step, is :math:`a \leftarrow a + (w - a)(1 - \beta) / (1 - \beta^t)`, and so it is computed.

    Args:
      optimizer: trains the weights.
      decay: :math:`\beta`, in [0, 1); a leaf. The average spans about :math:`1 / (1 - \beta)` steps. Or a schedule, or a function
        of the number of steps done, ``lambda t: jnp.minimum(0.999, (1 + t) / (10 + t))``, say, to forget the first steps fast.
      bias_correction: whether to leave the first weights out, for a constant decay; static.

    Raises:
      OptimizerError: on a number out of range, on a correction of a scheduled decay, and when gradients, state and trainables
        differ in structure or shape.

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

    decay: jax.Array | Schedule = number(decay_or_schedule, default=0.999)
    bias_correction: bool = switch(boolean, default=False)
    State = ExponentialMovingAverageState
    follows_weights = True

    def __post_init__(self):
        super().__post_init__()
        if self.bias_correction and isinstance(self.decay, Schedule):
            self.refuse(
                "bias_correction is for a constant decay, got a schedule: let that begin at 0 instead."
            )

    def init(self, trainables):
        inner = self.optimizer.init(trainables)
        return ExponentialMovingAverageState(copies(trainables), inner, jnp.zeros((), jnp.int32))

    def transform(self, gradients, state, trainables, **extra):
        updates, inner = self.optimizer.go(gradients, state.inner, trainables, extra)
        new = wide(trainables, apply_updates(trainables, updates))
        acted = self.optimizer.acted(inner)
        count = jnp.where(acted, increment(state.count), state.count)
        decay = at(self.decay, state.count)
        if self.bias_correction:
            decay = 1 - (1 - decay) / bias_correction(decay, count)
        decay = jnp.where(acted, jnp.asarray(decay, jnp.float32), 1)
        return updates, ExponentialMovingAverageState(average(decay, state.average, new), inner, count)


def copies(trainables: Any) -> Any:
    """Copies that are at least float32. Arrays of their own, too: both may be donated to one step."""
    return jax.tree.map(
        lambda weight: jnp.array(weight, jax.dtypes.canonicalize_dtype(accumulator(weight.dtype)), copy=True),
        trainables,
    )


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
    changed by other means are set right again by the next step. A weight that is infinite or NaN stays so, since updates are added
    to it: that of a copy beyond the range of float16, say, whose largest number is 65,504.

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

    State = MasterWeightsState
    follows_weights = True

    def init(self, trainables):
        self.check_trainables(trainables)
        masters = copies(trainables)
        return MasterWeightsState(masters, self.optimizer.init(masters))

    def transform(self, gradients, state, trainables, **extra):
        updates, inner = self.optimizer.go(gradients, state.inner, state.masters, extra)
        masters = apply_updates(state.masters, updates)
        updates = jax.tree.map(lambda w, master: master - w.astype(master.dtype), trainables, masters)
        return updates, MasterWeightsState(masters, inner)
