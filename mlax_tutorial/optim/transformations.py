"""Transformations of gradients on their way to an optimizer: clipping, weight decay; and ``Chain``, which puts them in a row."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import optional
from mlax_tutorial.optim.optimizer import Optimizer, Transformation
from mlax_tutorial.optim.paths import chosen, pattern
from mlax_tutorial.optim.tunable import at_least, number, positive, switch


class ClipByGlobalNorm(Transformation):
    r"""Shorten all gradients by one factor, so that their common norm is at most ``maximum``; keep their direction.

    .. math::
        g \leftarrow g \cdot \min(1, c / \lVert g \rVert), \qquad
        \lVert g \rVert^2 = \sum_{\text{all weights}} \sum_i g_i^2

    The sum is formed in float32 for half precision; a norm beyond 1.8e19, whose square no float32 holds, gives zeros. It stands before an optimizer in a ``Chain``. Inside ``jax.shard_map``, where
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

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables)
        squares = sum(jnp.sum(jnp.square(g)).astype(jnp.float32) for g in jax.tree.leaves(gradients))
        too_long = squares > jnp.square(self.maximum)
        norm = jnp.sqrt(jnp.where(too_long, squares, 1))  # the root of zero has no slope
        factor = jnp.where(too_long, self.maximum / norm, 1)
        return jax.tree.map(lambda g: factor.astype(g.dtype) * g, gradients), state


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

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables)

        def clip(gradient):
            bound = jnp.asarray(self.maximum, gradient.dtype)
            return jnp.clip(gradient, -bound, bound)

        return jax.tree.map(clip, gradients), state


class WeightDecay(Transformation):
    r"""Add :math:`\lambda w` to the gradient of each chosen weight: the slope of the penalty :math:`\lambda |w|^2 / 2`.

    It stands before an optimizer in a ``Chain``. Before ``SGD``, weights then decay by :math:`\eta \lambda` in a step; before an
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

    weight_decay: jax.Array = number(at_least(0))
    where: str | Callable[[str], bool] | None = switch(optional(pattern), default=None)

    def step(self, gradients, state, trainables):
        return decayed(self, trainables, self.check_step(gradients, state, trainables)), state


def decayed(owner: Any, trainables: Any, directions: Any) -> Any:
    """Add ``owner.weight_decay`` times each weight that ``owner.where`` chooses."""

    def one(weight, direction, decays):
        decay = jnp.asarray(owner.weight_decay, direction.dtype)
        return direction + decay * weight.astype(direction.dtype) if decays else direction

    return jax.tree.map(one, trainables, directions, chosen(owner, owner.where, trainables))


def parts(value) -> tuple[Transformation, ...]:
    """Transformations, then one optimizer."""
    for index, part in enumerate(value):
        if not isinstance(part, Transformation):
            got = f"number {index} is a {type(part).__name__}"
            raise ValueError(f"must be transformations and an optimizer, but {got}")
    if [isinstance(part, Optimizer) for part in value] != [False] * (len(value) - 1) + [True]:
        why = "what comes after would take updates for gradients"
        raise ValueError(f"must end in their only optimizer: {why}")
    return tuple(value)


class ChainState(NamedTuple):
    """State of :class:`Chain`.

    Attributes:
      inner: the states of the parts, a tuple.
    """

    inner: tuple


class Chain(Optimizer):
    """Hand gradients through transformations, one after the other, to the optimizer at the end.

    Args:
      *transformations: transformations, such as ``ClipByGlobalNorm``, ``ClipByValue`` and ``WeightDecay``; the last one is an optimizer.
      parts: the same as a tuple, for ``dataclasses.replace(chain, parts=…)``.

    Raises:
      OptimizerError: if the parts are something else or in another order, and on a state of another chain.

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

    def __init__(self, *transformations: Transformation, parts: tuple[Transformation, ...] = ()):
        vars(self).update(parts=(*transformations, *parts))
        self.__post_init__()

    def init(self, trainables):
        return ChainState(tuple(part.init(trainables) for part in self.parts))

    def step(self, gradients, state, trainables):
        gradients = self.check_step(gradients, state, trainables, ChainState)
        states = []
        for part, inner in zip(self.parts, state.inner, strict=True):
            gradients, inner = part.step(gradients, inner, trainables)
            states.append(inner)
        return gradients, ChainState(tuple(states))

    def __repr__(self):
        return f"Chain({', '.join(map(repr, self.parts))})"
