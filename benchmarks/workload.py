"""What is measured, and who takes part."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import workloads

# These need no peer to be installed.
BY_HAND, OURS, PACKED = "by hand", "mlax_tutorial", "mlax_tutorial, packed"


@dataclasses.dataclass(frozen=True)
class Workload:
    """A training step that every contender writes in its own way.

    A contender is a function ``contender(weights, batch, tally)``. It builds its model and returns
    ``start(learning_rate)``, which makes a training run from the very weights given, a `loops.Run`. What ``start``
    needs to do only once in a program stands before it, so that five learning rates are traced as often as they would
    be there. ``tally()`` stands in the loss, to count traces.

    Attributes:
      name: of its file.
      about: what it is, in a few words.
      weights: makes the first weights, a tree of NumPy arrays.
      small: makes weights of fewer or smaller layers that fit the same batch: traces are counted on them, as their
        number does not depend on the sizes, and compiling does.
      batch: makes one batch, ``(x, labels)``, as NumPy arrays.
      contenders: by name, the hand-written one first: it is what the others are compared with.
      without_draws: the same without random numbers, if there are any: then losses are compared on these.
      learning_rate: with which it trains.
    """

    name: str
    about: str
    weights: Callable[[], Any]
    small: Callable[[], Any]
    batch: Callable[[], tuple]
    contenders: Mapping[str, Callable]
    without_draws: Mapping[str, Callable] | None = None
    learning_rate: float = 0.01


def all_workloads() -> dict[str, Workload]:
    """The workloads of `benchmarks/workloads/`, by name."""
    found = pkgutil.iter_modules(workloads.__path__)  # imports: benchmarks.workloads.*
    names = [f"{workloads.__name__}.{name}" for name in sorted(module.name for module in found)]
    modules = [importlib.import_module(name) for name in names]  # imports: benchmarks.workloads.*
    return {name.rpartition(".")[2]: module.WORKLOAD for name, module in zip(names, modules)}
