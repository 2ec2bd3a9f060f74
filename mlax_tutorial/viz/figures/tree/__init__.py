"""``viz.tree``: a pytree as JAX sees it, to be unfolded and folded: containers, leaves, shapes, dtypes, bytes.

`look` takes a tree apart one level at a time, by JAX's own registry, so containers of the reader's own are
looked into as well. `Tree` shows the result: in a notebook as a list that folds, without any script, in a
terminal as an indented listing. The markup is made in `page`.
"""

import dataclasses
import math
import re
import warnings
from typing import Any

import jax
import numpy as np

from mlax_tutorial.viz.figures.tree import page

DEEPEST = 40  # containers in containers; what lies deeper is counted, not shown


@dataclasses.dataclass(frozen=True)
class Node:
    """A container or a leaf of a tree.

    Attributes:
      key: what its container calls it, such as ``['kernel']``, ``[0]`` or ``.scale``; the tree's name at the root.
      kind: in words, ``dict`` or ``float32[3,2]``.
      is_leaf: whether JAX sees a leaf.
      children: of a container, in JAX's order.
      leaves: how many there are in it, itself included.
      numbers: how many numbers they hold.
      bytes: how much memory the numbers take.
      note: what else is to be said.
      wrong: whether JAX's transformations refuse it.
    """

    key: str
    kind: str
    is_leaf: bool
    children: tuple["Node", ...] = ()
    leaves: int = 0
    numbers: int = 0
    bytes: int = 0
    note: str = ""
    wrong: bool = False


class Tree:
    """A tree that was looked at; a notebook shows it as a list that folds, a terminal as a listing."""

    def __init__(self, root: Node):
        self.root = root

    def _repr_html_(self):
        return page.write(self.root)

    def __repr__(self):
        return page.listing(self.root)


def tree(tree: Any, name: str = "tree") -> Tree:
    """Show a pytree: its containers to be unfolded, its leaves with shape, dtype and bytes.

    Any pytree will do: parameters, gradients, the state of an optimizer, a batch, or the placeholders that
    ``jax.eval_shape`` returns. Nothing is computed and nothing copied. What is no array is shown, too, and
    marked where ``jax.jit`` would refuse it.

    Args:
      tree: any pytree.
      name: what to call it.

    Returns:
      A `Tree`: as the last expression of a cell it is a list whose containers open and close by a click, a tap
      or the Enter key. The bars show each part's share of the bytes.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> viz.tree({"kernel": jnp.ones((4, 3)), "bias": jnp.zeros(3), "mask": None}, "layer")
      layer  dict of 3, 2 leaves, 15 numbers, 60 B
        ['bias']  float32[3], 12 B
        ['kernel']  float32[4,3], 48 B
        ['mask']  None, no leaves
    """
    return Tree(look(tree, name))


def look(tree: Any, name: str = "tree") -> Node:
    """As `tree`, but returns the bare `Node` of the root."""
    with warnings.catch_warnings():  # JAX warns of generators as leaves; the node says so itself
        warnings.simplefilter("ignore", DeprecationWarning)
        return _look(tree, name, "", 0, {})


def _look(item, key, path, depth, seen):
    parts = _one_level(item)
    if parts is None:
        return _leaf(item, key, path, seen)
    if depth == DEEPEST and parts:
        inner = [_leaf(leaf, "", "", {}) for leaf in jax.tree.leaves(item)]
        note = "too deep to be shown"
        return _container(item, key, inner, note=note, hide=True)
    children = [_look(part, step, path + step, depth + 1, seen) for step, part in parts]
    return _container(item, key, children)


def _one_level(item):
    """The parts of a container with their keys, or None for a leaf."""
    flat, _ = jax.tree_util.tree_flatten_with_path(item, is_leaf=lambda part: part is not item)
    if len(flat) == 1 and flat[0][0] == ():
        return None
    return [(jax.tree_util.keystr(path), part) for path, part in flat]


def _container(item, key, children, note="", hide=False):
    name = type(item).__name__
    kind = "None" if item is None else f"{name} of {len(children)}" if children and not hide else name
    if not children and item is not None:
        kind = f"empty {name}" if type(item) in (dict, list, tuple) else name
    return Node(
        key,
        kind,
        is_leaf=False,
        children=() if hide else tuple(children),
        leaves=sum(child.leaves for child in children),
        numbers=sum(child.numbers for child in children),
        bytes=sum(child.bytes for child in children),
        note=note or _static(item),
    )


def _static(item):
    """The data of a container of one's own that is no child of it: part of the structure."""
    cls, data = jax.tree.structure(item).node_data() or (None, None)
    known = isinstance(item, (dict, list, tuple)) or item is None
    if known or cls is None or data is None or data == ():
        return ""
    if dataclasses.is_dataclass(cls):
        fields = [field.name for field in dataclasses.fields(cls) if field.metadata.get("static")]
        if fields and isinstance(data, tuple) and len(data) == len(fields):
            data = [f"{name}={_short(value)}" for name, value in zip(fields, data, strict=True)]
            return f"static: {', '.join(data)}"
    return f"static: {_short(data)}"


def _leaf(item, key, path, seen):
    if isinstance(item, (bool, int, float, complex)) and not isinstance(item, np.generic):
        return _number(item, key)
    if not (hasattr(item, "shape") and hasattr(item, "dtype")):
        return Node(key, _short(item), True, leaves=1, note=_refused(item), wrong=True)
    if item.dtype == jax.dtypes.float0:
        return Node(key, "float0", True, leaves=1, note="the gradient of an integer: no numbers")
    if not _computes(item.dtype):
        note = f"no dtype of JAX: {item.dtype}"
        return Node(key, type(item).__name__, True, leaves=1, note=note, wrong=True)
    shape = tuple(item.shape)
    numbers = math.prod(shape)
    notes = []
    if isinstance(item, (np.ndarray, np.generic)):
        notes.append("NumPy")
    elif isinstance(item, jax.ShapeDtypeStruct):
        notes.append("no values")
    elif isinstance(item, jax.core.Tracer):
        notes.append("a tracer")
    if isinstance(item, (jax.Array, np.ndarray)):
        if id(item) in seen:
            notes.append(f"the same array as {seen[id(item)] or 'the root'}")
        else:
            seen[id(item)] = path
    kind = f"{item.dtype}[{','.join(map(str, shape))}]"
    size = numbers * item.dtype.itemsize
    return Node(key, kind, True, leaves=1, numbers=numbers, bytes=size, note=", ".join(notes))


def _number(item, key):
    """A number of Python's. It becomes an array when it enters JAX."""
    kind = f"{type(item).__name__} {_short(item)}"
    try:
        dtype = jax.typeof(item).dtype
    except OverflowError:
        return Node(key, kind, True, leaves=1, note="too large for JAX's integers", wrong=True)
    note = f"becomes {dtype}[]"
    return Node(key, kind, True, leaves=1, numbers=1, bytes=dtype.itemsize, note=note)


def _computes(dtype) -> bool:
    return not isinstance(dtype, np.dtype) or dtype.kind in "biufcV" and dtype.names is None


def _refused(item) -> str:
    if hasattr(item, "__next__") or type(item).__name__ in ("dict_values", "dict_keys", "dict_items"):
        return "not looked into: make a list of it"
    if isinstance(item, (set, frozenset)):
        return "a set has no order, so it is no container to JAX"
    if isinstance(item, (str, bytes)) or item is ...:
        return "no array"
    if callable(item):
        return "no array: a function"
    for base in type(item).__mro__[1:-1]:
        if base in (dict, list, tuple):
            return f"a class derived from {base.__name__}, not registered"
    return "not registered"


def _short(value) -> str:
    """A value in a few words, the same in every run."""
    if callable(value) and hasattr(value, "__name__"):
        return f"{'class' if isinstance(value, type) else 'function'} {value.__name__}"
    try:
        text = repr(value)
    except Exception:
        text = type(value).__name__
    text = " ".join(re.sub(r" at 0x[0-9a-f]+", "", text).split())
    if re.fullmatch(r"<.*>", text):
        text = type(value).__name__
    return text if len(text) <= 48 else text[:45] + "..."
