"""Optimizers of Optax stand wherever ours do: how to tell them apart, and how to take a step with either."""

from collections.abc import Callable
from typing import Any

import jax

from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.optim.optimizer import Optimizer
from mlax_tutorial.optim.updates import apply_updates


def check_optimizer(name: str, optimizer: Any) -> None:
    """Refuse what is no optimizer, a class or a mere transformation of gradients, say.

    Raises:
      ValueError: in the name of ``name``.
    """
    is_optax = hasattr(optimizer, "init") and hasattr(optimizer, "update") and not isinstance(optimizer, type)
    if not (isinstance(optimizer, Optimizer) or is_optax):
        raise ValueError(
            f"{name}: optimizer must be of mlax_tutorial.optim or of Optax, got {show(optimizer)}."
        )


def advance(optimizer: Any, gradients: Any, state: Any, trainables: Any) -> tuple[Any, Any]:
    """One step of any optimizer: the new trainables and the new state; pure."""
    step = optimizer.step if isinstance(optimizer, Optimizer) else optimizer.update
    updates, state = step(gradients, state, trainables)
    return apply_updates(trainables, updates), state


def compile_step(name: str, step: Callable) -> Callable:
    """Compile ``step(optimizer, trainables, non_trainables, state, …)`` for any optimizer; ``name`` made it.

    The old variables and the old state are donated.
    """
    donated = ("trainables", "non_trainables", "state")
    with_ours = jax.jit(step, donate_argnames=donated)
    # An optimizer of Optax is a pair of functions, not of arrays, so it is static.
    with_optax = jax.jit(step, donate_argnames=donated, static_argnames="optimizer")

    def either(optimizer, *args):
        check_optimizer(name, optimizer)
        return (with_ours if isinstance(optimizer, Optimizer) else with_optax)(optimizer, *args)

    return either
