"""The children of a container: a tree of layers, in dicts and tuples; and their variables, by place.

A *place* is where a child stands, as errors write it: ``.attention``, ``[2]``, ``.blocks[0]``.
"""

from collections.abc import Callable
from typing import Any

from mlax_tutorial.nn.layer import Layer


def parts(tree: Any) -> list[tuple[str, Any]]:
    """The parts of a dict or a tuple of layers, each with what a place calls it."""
    if isinstance(tree, dict):
        return [(f".{name}", child) for name, child in tree.items()]
    return [(f"[{index}]", child) for index, child in enumerate(tree)]


def has_layers(value: Any) -> bool:
    """Whether a field holds children: a layer, or a tuple with some, which may be nested."""
    return isinstance(value, Layer) or (isinstance(value, tuple) and any(map(has_layers, value)))


def change(tree: Any, function: Callable[[str, Any], Any], place: str = "") -> Any:
    """The same tree with ``function(place, leaf)`` for each leaf, a layer."""
    if not isinstance(tree, (dict, tuple)):
        return function(place, tree)
    children = [change(child, function, place + part) for part, child in parts(tree)]
    return dict(zip(tree, children)) if isinstance(tree, dict) else tuple(children)


def by_place(tree: Any) -> dict[str, Layer]:
    """The layers of a tree by their places."""
    found = {}
    change(tree, found.__setitem__)
    return found


def gather(tree: Any, variables: dict[str, Any], place: str = "") -> Any:
    """Put variables by place into the shape of ``tree``; ``()`` for a container that has none."""
    if isinstance(tree, Layer):
        return variables[place]
    children = tuple([gather(child, variables, place + part) for part, child in parts(tree)])
    if all(map(_is_empty, children)):
        return ()
    return dict(zip(tree, children)) if isinstance(tree, dict) else children


def spread(layer: Layer, variables: Any, role: str) -> dict[str, Any]:
    """The inverse of :func:`gather`, for the children of ``layer``."""
    return dict(_spread(layer, layer._tree, variables, role))


def _spread(layer, tree, variables, role, place=""):
    # No inner function that calls itself: such a cycle would keep the variables of each call until Python collects garbage.
    if isinstance(tree, Layer):
        yield place, variables
        return
    wanted, kind = dict(parts(tree)), dict if isinstance(tree, dict) else tuple
    given = dict(parts(variables)) if isinstance(variables, kind) else {}
    given = dict.fromkeys(wanted, ()) if _is_empty(variables) else given
    if given.keys() != wanted.keys():
        of_tuple = f"a tuple with one entry for each of {len(tree)} layers"
        form = f"a dict with keys {sorted(tree)}" if kind is dict else of_tuple
        layer.refuse_variables(role, form, variables, place)
    for part, child in wanted.items():
        yield from _spread(layer, child, given[part], role, place + part)


def _is_empty(variables):
    return isinstance(variables, tuple) and not variables
