"""``where``: which weights an optimizer or a transformation means, chosen by their paths."""

from typing import Any

import jax

from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.paths import Where, choose, flatten
from mlax_tutorial.optim.tunable import OptimizerError

__all__ = ["kernels"]


def pattern(value) -> Where:
    """What chooses weights: a pattern of paths, or a function from a path to ``bool``."""
    if isinstance(value, str) or (callable(value) and not isinstance(value, (type, Layer))):
        return value
    raise ValueError("must be a pattern of paths, such as \"*['bias']\", or a function from a path to bool")


def kernels(path: str) -> bool:
    """Whether a path is that of weights that enter a product: a ready-made ``where``.

    A layer says so by their name, which ends in ``kernel``; biases, scales and embeddings have other names. Only kernels should
    decay: a bias or a scale that is pulled towards zero does not make the function simpler.

    >>> kernels("[0]['kernel']"), kernels("[1]['query_kernel']"), kernels("[1]['query_bias']"), kernels("[2]['scale']")
    (True, True, False, False)
    """
    return path.endswith(("kernel", "kernel']"))


def chosen(owner: Any, where: Where | None, trainables: Any) -> Any:
    """Ask ``where`` about the path of each weight; return the answers, a tree of ``bool``.

    Paths are as ``jax.tree_util.keystr`` writes them, and as ``nn.summary`` and errors show them: ``[3]['kernel']``.

    Args:
      owner: the optimizer that asks, for the error.
      where: a pattern, as ``nn.paths.fits`` takes it, or a function from the path to whether the weight is meant; ``None`` means
        all.
      trainables: the weights.

    Raises:
      OptimizerError: if there are weights, and none is chosen, for a misspelt name would otherwise do nothing; or if an index of
        the pattern counts in layers of different kinds.
    """
    if where is None:
        return jax.tree.map(lambda weight: True, trainables)
    paths, _, structure = flatten(trainables)
    answers = choose(type(owner).__name__, where, paths, "weight", OptimizerError)
    return jax.tree.unflatten(structure, answers)
