"""``Chain``: transformations of gradients, and the optimizer that they end in."""

from typing import NamedTuple

from mlax_tutorial.optim.optimizer import Optimizer, Transformation
from mlax_tutorial.optim.tunable import number


def parts(value) -> tuple[Transformation, ...]:
    """Transformations, then one optimizer."""
    for index, part in enumerate(value):
        last = index == len(value) - 1
        if not isinstance(part, Transformation):
            raise ValueError(
                f"must be transformations and an optimizer, but number {index} is a {type(part).__name__}"
            )
        if isinstance(part, Optimizer) != last:
            raise ValueError(
                "must end in their only optimizer: its updates are against the gradients, and what comes after "
                "would take them for gradients"
            )
    if not value:
        raise ValueError("must end in an optimizer")
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
      *parts: transformations, such as ``ClipByGlobalNorm``, ``ClipByValue`` and ``WeightDecay``; the last part is an optimizer.

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

    def __init__(self, *parts: Transformation):
        object.__setattr__(self, "parts", parts)
        self.__post_init__()

    def init(self, trainables):
        return ChainState(tuple(part.init(trainables) for part in self.parts))

    def step(self, gradients, state, trainables):
        self.check_state(state, ChainState)
        if len(state.inner) != len(self.parts):
            self.refuse(
                f"state.inner expects one state for each of {len(self.parts)} parts, got {len(state.inner)}: init and "
                "step must be of the same optimizer."
            )
        states = []
        for part, inner in zip(self.parts, state.inner):
            gradients, inner = part.step(gradients, inner, trainables)
            states.append(inner)
        return gradients, ChainState(tuple(states))

    def __repr__(self):
        return f"Chain({', '.join(map(repr, self.parts))})"
