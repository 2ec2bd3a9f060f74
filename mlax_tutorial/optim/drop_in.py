"""Optimizers of Optax stand wherever ours do: how to tell them apart, and how to take a step with either."""

from typing import Any

from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.optim.optimizer import Optimizer, apply_updates


def check_optimizer(name: str, optimizer: Any) -> None:
    """Refuse what is no optimizer, a class or a mere transformation of gradients, say.

    Raises:
      ValueError: in the name of ``name``.
    """
    is_optax = hasattr(optimizer, "init") and hasattr(optimizer, "update") and not isinstance(optimizer, type)
    if not (isinstance(optimizer, Optimizer) or is_optax):
        wanted = "must be of mlax_tutorial.optim or of Optax"
        raise ValueError(f"{name}: optimizer {wanted}, got {show(optimizer)}.")


def advance(optimizer: Any, gradients: Any, state: Any, trainables: Any) -> tuple[Any, Any]:
    """One step of any optimizer: the new trainables and the new state; pure."""
    step = optimizer.step if isinstance(optimizer, Optimizer) else optimizer.update
    updates, state = step(gradients, state, trainables)
    return apply_updates(trainables, updates), state
