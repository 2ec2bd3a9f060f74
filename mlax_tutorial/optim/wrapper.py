"""Base of optimizers that hold another one."""

from typing import Any

from mlax_tutorial.optim.optimizer import Optimizer
from mlax_tutorial.optim.tunable import number


def optimizer(value) -> Optimizer:
    """An optimizer of this package."""
    if not isinstance(value, Optimizer):
        raise ValueError("must be an optimizer of mlax_tutorial.optim")
    return value


class Wrapper(Optimizer):
    """Base of optimizers that hold another one, whose state is ``state.inner``."""

    optimizer: Any = number(optimizer)
