"""Choosing weights by their paths."""

from collections.abc import Callable
from typing import Any

import jax

from mlax_tutorial.optim.tunable import OptimizerError


def chosen(owner: Any, where: Callable[[str], bool] | None, trainables: Any) -> Any:
    """Ask ``where`` about the path of each weight; return the answers, a tree of ``bool``.

    Paths are as ``jax.tree_util.keystr`` writes them, and as ``nn.summary`` and errors show them: ``[3]['kernel']``.

    Args:
      owner: the optimizer that asks, for the error.
      where: from the path to whether the weight is meant; ``None`` means all.
      trainables: the weights.

    Raises:
      OptimizerError: if there are weights, and none is chosen. A misspelt name would otherwise do nothing.
    """
    if where is None:
        return jax.tree.map(lambda weight: True, trainables)
    leaves, structure = jax.tree_util.tree_flatten_with_path(trainables)
    paths = [jax.tree_util.keystr(path) for path, _ in leaves]
    answers = [bool(where(path)) for path in paths]
    if paths and not any(answers):
        shown = ", ".join(paths[:4]) + (", …" if len(paths) > 4 else "")
        raise OptimizerError(
            f"{type(owner).__name__}: where must choose at least one weight, but chose none of {len(paths)}: "
            f"their paths are {shown}."
        )
    return jax.tree.unflatten(structure, answers)
