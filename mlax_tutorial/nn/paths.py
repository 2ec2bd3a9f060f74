"""The leaves of a tree by their paths, which `jax.tree_util.keystr` writes, and choosing among them."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.nn.layer import Layer

Where = str | Callable[[str], bool]


def choose(name: str, where: Where, paths: list[str], kind: str, error=ValueError) -> list[bool]:
    """For each path, whether ``where`` fits it; that it fits none, or layers of different kinds, is refused, in the name of ``name``."""
    answers = [fits(where, path) for path in paths]
    if paths and not any(answers):
        got = f"but chose none of {len(paths)}: their paths are {some(paths)}"
        raise error(f"{name}: where must choose at least one {kind}, {got}.")
    if mistake := ambiguous(where, [path for path, chosen in zip(paths, answers) if chosen]):
        raise error(f"{name}: where, {show(where)}, {mistake}.")
    return answers


def ambiguous(pattern: Where, paths: list[str]) -> str:
    """What is wrong with a pattern whose index counts in layers of different kinds, if it does; else nothing.

    So it is where a ``*`` stands directly before an index, and what it swallows differs in more than indices. Whether ``[0]`` and
    ``[1]`` are two equal blocks or two kinds of layers, paths do not tell, nor what stands in them: of equal blocks, the first
    may well have a projection more.

    >>> ambiguous("*[4]['kernel']", ["[4]['kernel']", "[2]['mlp'][4]['kernel']"])
    "fits layers of different kinds, [4]['kernel'] and [2]['mlp'][4]['kernel']: write [4]['kernel'] or [*]['mlp'][4]['kernel']"
    >>> ambiguous("*['mlp'][4]['kernel']", ["[0]['mlp'][4]['kernel']", "[2]['mlp'][4]['kernel']"])
    ''
    """
    for star in [] if callable(pattern) else re.finditer(r"\*(?=\[\d)", pattern):
        before, after = pattern[: star.start()], pattern[star.end() :]
        expression = f"{_expression(before)}(.*?){_expression(after)}"
        kinds = {}
        for path in paths:
            swallowed = re.fullmatch(expression, path, re.DOTALL)[1]
            kinds.setdefault(re.sub(r"\[\d+\]", "[*]", swallowed), path)
        if len(kinds) > 1:
            one, two = [*kinds][:2]
            ways = f"write {before}{one}{after} or {before}{two}{after}"
            return f"fits layers of different kinds, {kinds[one]} and {kinds[two]}: {ways}"
    return ""


def flatten(tree: Any) -> tuple[list[str], list[Any], Any]:
    """The paths of the leaves, written by ``jax.tree_util.keystr``; the leaves; the structure."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    return [jax.tree_util.keystr(path) for path, _ in leaves], [leaf for _, leaf in leaves], structure


def fits(pattern: Where, path: str) -> bool:
    """Whether a pattern fits a whole path.

    ``*`` stands for anything; all else, brackets too, for itself. A function from a path to whether
    it fits is a pattern, too, like the ``where`` of an optimizer.

    >>> fits("*['kernel']", "[3]['kernel']"), fits("['kernel']", "[3]['kernel']")
    (True, False)
    """
    if callable(pattern):
        return bool(pattern(path))
    return re.fullmatch(_expression(pattern), path, re.DOTALL) is not None


def _expression(pattern):
    return ".*?".join(map(re.escape, pattern.split("*")))


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
    (leaves, structure), (others, other) = jax.tree.flatten(wanted), jax.tree.flatten(got)
    if structure == other and [*map(of, leaves)] == [*map(of, others)]:
        return  # naming the leaves would take a tenth of the time to trace
    there, here = ({path: of(leaf) for path, leaf in zip(*flatten(tree)[:2])} for tree in (wanted, got))
    for path in [*there, *here]:
        wants, came = there.get(path, "nothing"), here.get(path, "nothing")
        if wants != came:
            raise error(f"{name}{path} expects {wants}, got {came}: {mend}")
    raise error(f"{name} expects the containers {structure}, got {other}: {mend}")


def some(paths: list[str]) -> str:
    """The first few, for an error."""
    return ", ".join(paths[:4]) + (", …" if len(paths) > 4 else "")
