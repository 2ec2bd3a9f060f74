"""``WeightDecay``: add a share of each weight to its gradient."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import optional
from mlax_tutorial.optim.optimizer import Transformation
from mlax_tutorial.optim.paths import chosen, pattern
from mlax_tutorial.optim.tunable import at_least, number, switch


class WeightDecay(Transformation):
    r"""Add :math:`\lambda w` to the gradient of each chosen weight: the slope of the penalty :math:`\lambda |w|^2 / 2`.

    It stands before an optimizer in a ``Chain``. Before ``SGD``, weights then decay by :math:`\eta \lambda` in a step; before an
    optimizer that divides by the scale of gradients, the penalty is divided, too: there, ``AdamW`` is the cure.

    Args:
      weight_decay: :math:`\lambda`, of at least 0; a leaf.
      where: which weights decay: a pattern of whole paths, in which ``*`` stands for anything, ``"*['kernel']"``, say; or a
        function from a path, such as ``[3]['kernel']``, to whether it does, which counts by value. ``None`` is all. Static.

    Raises:
      OptimizerError: on a number out of range, if ``where`` chooses no weight, and when gradients and trainables differ in
        structure or shape.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optimizer = optim.Chain(optim.WeightDecay(0.1, where=lambda path: "bias" not in path), optim.SGD(1.0))
      >>> weights = {"kernel": jnp.ones(2), "bias": jnp.ones(2)}
      >>> nothing = {"kernel": jnp.zeros(2), "bias": jnp.zeros(2)}
      >>> updates, state = optimizer.step(nothing, optimizer.init(weights), weights)
      >>> optim.apply_updates(weights, updates)
      {'bias': Array([1., 1.], dtype=float32), 'kernel': Array([0.9, 0.9], dtype=float32)}

    Reference: Krogh and Hertz, *A Simple Weight Decay Can Improve Generalization*, NIPS (1991).
    """

    weight_decay: jax.Array = number(at_least(0))
    where: str | Callable[[str], bool] | None = switch(optional(pattern), default=None)

    def init(self, trainables):
        chosen(self, self.where, trainables)
        return super().init(trainables)

    def step(self, gradients, state, trainables):
        return decayed(self, trainables, self.check_step(gradients, state, trainables)), state


def decayed(owner: Any, trainables: Any, directions: Any) -> Any:
    """Add ``owner.weight_decay`` times each weight that ``owner.where`` chooses."""

    def one(weight, direction, decays):
        dtype = direction.dtype
        return (
            direction + jnp.asarray(owner.weight_decay, dtype) * weight.astype(dtype) if decays else direction
        )

    return jax.tree.map(one, trainables, directions, chosen(owner, owner.where, trainables))
