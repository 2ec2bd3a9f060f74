"""Naming weights by their paths, and choosing them by name."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.optim.tunable import OptimizerError


def pattern(value) -> str | Callable[[str], bool]:
    """What chooses weights: a pattern of paths, or a function from a path to ``bool``."""
    if isinstance(value, str) or (callable(value) and not isinstance(value, (type, Layer))):
        return value
    raise ValueError("must be a pattern of paths, such as \"*['bias']\", or a function from a path to bool")


def kernels(path: str) -> bool:
    """Whether a path is that of weights that enter a product: a ready-made ``where``.

    Those are kernels, recurrent ones, too, and the ``query``, ``key``, ``value`` and ``out`` of attention; no biases, scales and
    embeddings. Only they should decay: a bias or a scale that is pulled towards zero does not make the function simpler.

    >>> kernels("[0]['kernel']"), kernels("[1]['query']"), kernels("[1]['query_bias']"), kernels("[2]['scale']")
    (True, True, False, False)
    """
    return re.search(r"kernel'\]$|\['(query|key|value|out)'\]$", path) is not None


def chosen(owner: Any, where: str | Callable[[str], bool] | None, trainables: Any) -> Any:
    """Ask ``where`` about the path of each weight; return the answers, a tree of ``bool``.

    Paths are as ``jax.tree_util.keystr`` writes them, and as ``nn.summary`` and errors show them: ``[3]['kernel']``.

    Args:
      owner: the optimizer that asks, for the error.
      where: a pattern, as for :func:`fits`, or a function from the path to whether the weight is meant; ``None`` means all.
      trainables: the weights.

    Raises:
      OptimizerError: if there are weights, and none is chosen. A misspelt name would otherwise do nothing.
    """
    if where is None:
        return jax.tree.map(lambda weight: True, trainables)
    paths, _, structure = flatten(trainables)
    answers = choose(type(owner).__name__, where, paths, "weight", OptimizerError)
    return jax.tree.unflatten(structure, answers)


def choose(name: str, where: str | Callable, paths: list[str], kind: str, error=ValueError) -> list[bool]:
    """For each path, whether ``where`` fits it; that it fits none is refused, in the name of ``name``."""
    answers = [fits(where, path) for path in paths]
    if paths and not any(answers):
        got = f"but chose none of {len(paths)}: their paths are {some(paths)}"
        raise error(f"{name}: where must choose at least one {kind}, {got}.")
    return answers


def flatten(tree: Any) -> tuple[list[str], list[Any], Any]:
    """The paths of the leaves, written by ``jax.tree_util.keystr``; the leaves; the structure."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    return [jax.tree_util.keystr(path) for path, _ in leaves], [leaf for _, leaf in leaves], structure


def fits(pattern: str | Callable[[str], bool], path: str) -> bool:
    """Whether a pattern fits a whole path.

    ``*`` stands for anything; all else, brackets too, for itself. A function from a path to whether
    it fits is a pattern, too, like the ``where`` of an optimizer.

    >>> fits("*['kernel']", "[3]['kernel']"), fits("['kernel']", "[3]['kernel']")
    (True, False)
    """
    if callable(pattern):
        return bool(pattern(path))
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), path, re.DOTALL) is not None


def refuse_layers(name: str, tree: Any, error: type[ValueError] = ValueError) -> None:
    """Refuse a model in place of its variables: JAX sees no leaf in it, so all would seem well, and nothing be done.

    Raises:
      ValueError: or what ``error`` is, in the name of ``name``.
    """
    for path, node in jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda node: isinstance(node, Layer)):
        if isinstance(node, Layer):
            where = f" at {jax.tree_util.keystr(path)}" if path else ""
            mend = "pass its variables, from trainables, non_trainables = model.init(key, x)"
            raise error(f"{name}: expects arrays{where}, got the layer {show(node)}: {mend}.")


def check_like(name: str, got, wanted, mend: str, of: Callable = jnp.shape, error=ValueError) -> None:
    """Refuse a tree of other containers or shapes than ``wanted``; or of what else ``of`` tells of a leaf.

    Raises:
      ValueError: or what ``error`` is, in the name of ``name``.
    """
    there, here = ({path: of(leaf) for path, leaf in zip(*flatten(tree)[:2])} for tree in (wanted, got))
    for path in [*there, *here]:
        if there.get(path) != here.get(path):
            wants, came = (found.get(path, "nothing") for found in (there, here))
            raise error(f"{name}{path} expects {wants}, got {came}: {mend}")
    if (wants := jax.tree.structure(wanted)) != (came := jax.tree.structure(got)):
        raise error(f"{name} expects the containers {wants}, got {came}: {mend}")


def some(paths: list[str]) -> str:
    """The first few, for an error."""
    return ", ".join(paths[:4]) + (", …" if len(paths) > 4 else "")
