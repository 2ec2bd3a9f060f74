"""Transformations of gradients on their way to an optimizer, or of its updates: clipping, weight decay, scales; and ``Chain``, which puts them in a row."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import optional
from mlax_tutorial.nn.paths import Where
from mlax_tutorial.optim.moments import cast, scalar, scaled, wide
from mlax_tutorial.optim.optimizer import Optimizer, Transformation, increment, parts_of
from mlax_tutorial.optim.schedules import Schedule, at, rate
from mlax_tutorial.optim.tunable import at_least, number, positive, switch
from mlax_tutorial.optim.where import chosen, pattern

__all__ = [
    "ClipByGlobalNorm", "ClipByValue", "WeightDecay", "Scale", "ScaleState", "ScaleByTrustRatio", "Chain",
    "ChainState",
]  # fmt: skip


class ClipByGlobalNorm(Transformation):
    r"""Shorten all gradients by one factor, so that their common norm is at most ``maximum``; keep their direction.

    .. math::
        g \leftarrow g \cdot \min(1, c / \lVert g \rVert), \qquad
        \lVert g \rVert^2 = \sum_{\text{all weights}} \sum_i g_i^2

    The sum is formed in float32, of numbers that are divided by the largest, so that no square overflows. As with Optax, a gradient
    that is infinite somewhere gives NaN there and zeros elsewhere, and a NaN gives NaN everywhere. Inside ``jax.shard_map``, where
    a device sees only its shard, sum the gradients' squares over the devices yourself; under ``jax.jit`` nothing is to be done.

    Args:
      maximum: :math:`c`, above 0; a leaf.

    Raises:
      OptimizerError: on a number out of range, and when gradients and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> weights = gradients = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
      >>> optim.ClipByGlobalNorm(1.0).step(gradients, (), weights)[0]
      {'a': Array([0.6], dtype=float32), 'b': Array([0.8], dtype=float32)}

    Reference: Pascanu, Mikolov and Bengio, *On the difficulty of training recurrent neural networks*, ICML (2013).
    """

    maximum: jax.Array = number(positive)

    def transform(self, gradients, state, trainables):
        sizes = [jnp.abs(g) for g in jax.tree.leaves(gradients)]
        unit = _unit(sizes, self.maximum)
        one = scalar(unit)
        squares = sum(jnp.sum(jnp.square(size / one(size.dtype))).astype(jnp.float32) for size in sizes)
        short = squares <= jnp.square(self.maximum / unit)
        norm = jnp.sqrt(jnp.where(short, 1, squares))  # the root of zero has no slope
        factor = scalar(self.maximum / norm)

        def shortened(g):
            return jnp.where(short, g, g / one(g.dtype) * factor(g.dtype))

        return jax.tree.map(shortened, gradients), state


class ClipByValue(Transformation):
    r"""Cut each number of each gradient off at :math:`\pm c`.

    It stands before an optimizer in a ``Chain``.

    Args:
      maximum: :math:`c`, above 0; a leaf.

    Raises:
      OptimizerError: on a number out of range, and when gradients and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> weights = gradients = {"a": jnp.array([3.0, -0.5])}
      >>> optim.ClipByValue(1.0).step(gradients, (), weights)[0]
      {'a': Array([ 1. , -0.5], dtype=float32)}
    """

    maximum: jax.Array = number(positive)

    def transform(self, gradients, state, trainables):
        bound = scalar(self.maximum)
        return jax.tree.map(lambda g: jnp.clip(g, -bound(g.dtype), bound(g.dtype)), gradients), state


class WeightDecay(Transformation):
    r"""Add :math:`\lambda w` to the gradient of each chosen weight: the slope of the penalty :math:`\lambda |w|^2 / 2`.

    It stands before an optimizer in a ``Chain``, never after it. Before ``SGD``, weights then decay by :math:`\eta \lambda` in a step; before an
    optimizer that divides by the scale of gradients, the penalty is divided, too: there, ``AdamW`` is the cure.

    Args:
      weight_decay: :math:`\lambda`, of at least 0; a leaf.
      where: which weights decay: a pattern of whole paths, in which ``*`` stands for anything, ``"[0]*"``, say; or a function from a
        path, such as ``[3]['kernel']``, to whether it does: ``optim.kernels`` chooses all that enter products, the weights of
        attention and recurrent ones, too, which ``"*['kernel']"`` would miss. ``None`` is all. Static.

    Raises:
      OptimizerError: on a number out of range, if ``where`` chooses no weight, and when gradients and trainables differ in
        structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer = optim.Chain(optim.WeightDecay(0.1, where=optim.kernels), optim.SGD(1.0))
      >>> weights = {"kernel": jnp.ones(2), "bias": jnp.ones(2)}
      >>> nothing = {"kernel": jnp.zeros(2), "bias": jnp.zeros(2)}
      >>> updates, state = optimizer.step(nothing, optimizer.init(weights), weights)
      >>> optim.apply_updates(weights, updates)
      {'bias': Array([1., 1.], dtype=float32), 'kernel': Array([0.9, 0.9], dtype=float32)}

    Reference: Krogh and Hertz, *A Simple Weight Decay Can Improve Generalization*, NIPS (1991).
    """

    weight_decay: jax.Array = number(at_least(0, " (a schedule goes to the weight_decay of an optimizer)"))
    where: Where | None = switch(optional(pattern), default=None)

    def init(self, trainables):
        chosen(self, self.where, trainables)
        return super().init(trainables)

    def transform(self, gradients, state, trainables):
        return decayed(self.weight_decay, chosen(self, self.where, trainables), trainables, gradients), state


class ScaleState(NamedTuple):
    """State of :class:`Scale`.

    Attributes:
      count: how many steps were done, an int32 scalar.
    """

    count: jax.Array


class Scale(Transformation):
    r"""Multiply by a number: after an optimizer, by a learning rate that stands at the end.

    Args:
      factor: a number of at least 0, a leaf; or an ``optim.Schedule``.

    Raises:
      OptimizerError: on a number out of range, and when gradients and trainables differ in structure or shape.

    Example: LAMB, which is AdamW with steps of the size of each weight.
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> lamb = optim.Chain(optim.AdamW(1.0), optim.ScaleByTrustRatio(), optim.Scale(0.125))
      >>> weights, gradients = {"w": jnp.array([2.0])}, {"w": jnp.array([1e3])}
      >>> lamb.step(gradients, lamb.init(weights), weights)[0]
      {'w': Array([-0.25], dtype=float32)}
    """

    factor: jax.Array | Schedule = number(rate)
    State = ScaleState

    def init(self, trainables):
        self.check_trainables(trainables)
        return ScaleState(jnp.zeros((), jnp.int32))

    def transform(self, gradients, state, trainables):
        factor = at(self.factor, state.count)
        return scaled(factor, gradients), ScaleState(increment(state.count))


class ScaleByTrustRatio(Transformation):
    r"""Give each update the length of its weight, :math:`u \leftarrow u\, \lVert w \rVert / \lVert u \rVert`, for each array by itself.

    It stands after an optimizer in a ``Chain``, whose learning rate then does nothing: ``Scale`` follows. After ``AdamW`` that is LAMB,
    after ``SGD`` LARS. Where a weight or an update is zero, it stays as it is.

    Raises:
      OptimizerError: when gradients and trainables differ in structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optim.ScaleByTrustRatio().step({"w": jnp.array([3.0, 4.0])}, (), {"w": jnp.array([0.0, 1.0])})[0]
      {'w': Array([0.6, 0.8], dtype=float32)}

    Reference: You et al., *Large Batch Optimization for Deep Learning: Training BERT in 76 minutes*, ICLR (2020).
    """

    def transform(self, gradients, state, trainables):
        def one(weight, update):
            units = [_unit([jnp.abs(x)]) for x in (weight, update)]
            relative, direction = (x / cast(unit, x.dtype) for x, unit in zip((weight, update), units))
            squares = [jnp.sum(jnp.square(jnp.abs(x))) for x in (relative, direction)]
            both = (squares[0] > 0) & (squares[1] > 0)
            # The root of zero has no slope, not even where nothing comes of it.
            ratio = jnp.sqrt(jnp.where(both, squares[0] / jnp.where(both, squares[1], 1), 1))
            ratio = ratio * cast(units[0], ratio.dtype)
            return jnp.where(both, cast(ratio, update.dtype) * direction, update)

        return jax.tree.map(one, wide(trainables, trainables), gradients), state


def _unit(sizes: list[Any], least: Any = 1.2e-38) -> jax.Array:
    """The largest number, a float32 scalar by which others are divided, so that no square overflows and few vanish."""
    largest = [jnp.max(size, initial=0).astype(jnp.float32) for size in sizes]
    unit = functools.reduce(jnp.maximum, largest, jnp.asarray(least, jnp.float32))
    return jax.lax.stop_gradient(
        jnp.minimum(unit, 1e37)
    )  # XLA multiplies by its reciprocal, which must not be 0


def decayed(weight_decay: Any, decays: Any, trainables: Any, directions: Any) -> Any:
    """Add ``weight_decay`` times each weight that ``decays``, a tree of ``bool``, chooses."""
    share = scalar(weight_decay)

    def one(decays, weight, direction):
        return direction + share(direction.dtype) * cast(weight, direction.dtype) if decays else direction

    return jax.tree.map(one, decays, trainables, directions)


def parts(value) -> tuple[Transformation, ...]:
    """Transformations, and one optimizer among them."""
    for index, part in enumerate(value):
        if not isinstance(part, Transformation):
            got = f"number {index} is a {type(part).__name__}"
            raise ValueError(f"must be transformations and an optimizer, but {got}")
    if sum(isinstance(part, Optimizer) for part in value) != 1:
        raise ValueError("must hold exactly one optimizer, which takes gradients and gives updates")
    *_, last = value
    for part in value:
        if isinstance(part, Optimizer) and part is not last:
            for inner in parts_of(part, lambda one: getattr(one, "follows_weights", False)):
                got = f"{type(inner).__name__} holds what the weights will be, and {last!r} would change its updates"
                raise ValueError(f"{got}: put {type(inner).__name__} around the Chain")
    kinds = [isinstance(part, Optimizer) for part in value]
    if any(isinstance(part, WeightDecay) for part in value[kinds.index(True) :]):
        why = "added to its updates, weights would grow"
        raise ValueError(f"must hold WeightDecay before the optimizer: {why}. For decoupled decay, use AdamW")
    return tuple(value)


class ChainState(NamedTuple):
    """State of :class:`Chain`.

    Attributes:
      inner: the states of the parts, a tuple.
    """

    inner: tuple


class Chain(Optimizer):
    """Hand gradients through transformations, one after the other, to an optimizer, and its updates through those that come after it.

    Args:
      *transformations: transformations, such as ``ClipByGlobalNorm`` and ``WeightDecay``, one optimizer, and transformations, such as
        ``ScaleByTrustRatio`` and ``Scale``.
      parts: the same as a tuple, for ``dataclasses.replace(chain, parts=…)``.

    Raises:
      OptimizerError: if the parts are something else, or hold no optimizer or several; if something comes after ``MasterWeights`` or
        ``ExponentialMovingAverage``, whose states would no longer be those of the weights, or ``WeightDecay`` after the optimizer;
        and on a state of another chain.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer = optim.Chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.5))
      >>> weights, gradients = {"w": jnp.zeros(2)}, {"w": jnp.array([3.0, 4.0])}
      >>> updates, state = optimizer.step(gradients, optimizer.init(weights), weights)
      >>> updates
      {'w': Array([-0.3, -0.4], dtype=float32)}
    """

    parts: tuple[Transformation, ...] = number(parts)
    State = ChainState
    extra = property(lambda self: frozenset().union(*(part.extra for part in self.parts)))

    def __init__(self, *transformations: Transformation, parts: tuple[Transformation, ...] = ()):
        vars(self).update(parts=(*transformations, *parts))
        self.__post_init__()

    def init(self, trainables):
        return ChainState(tuple(part.init(trainables) for part in self.parts))

    def transform(self, gradients, state, trainables, **extra):
        states, acted = [], True
        for part, before in zip(self.parts, state.inner, strict=True):
            found, inner = part.go(gradients, before, trainables, extra)
            if acted is not True:  # what comes after an optimizer waits as it does
                found, inner = jax.tree.map(
                    functools.partial(jnp.where, acted), (found, inner), (gradients, before)
                )
            gradients = found
            states.append(inner)
            if isinstance(part, Optimizer):
                acted = part.acted(inner)
        return gradients, ChainState(tuple(states))

    def acted(self, state):
        states = zip(self.parts, state.inner)
        return next(part.acted(inner) for part, inner in states if isinstance(part, Optimizer))

    def __repr__(self):
        return f"Chain({', '.join(map(repr, self.parts))})"
