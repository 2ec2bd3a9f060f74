"""``viz.model``: a model as blocks, each to be opened: shapes, dtypes, weights, bytes, FLOPs, and random keys.

`look` traces one call of the model, and nothing is computed. While it does, each layer in the model notes what it is given
and what it returns, and puts its name on the equations that it asks for, with ``jax.named_scope``. So every equation of the
program belongs to one block, whatever kind of container called it, a class of the reader's own included. The markup is
made in `page`.
"""

import collections
import contextlib
import dataclasses
import inspect
import itertools
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata

from mlax_tutorial.inspection import costs
from mlax_tutorial.viz.figures.model import page

_MARK = "block "  # in front of the names that layers put on their equations
_TRACES = itertools.count()
# It moved from jax.core in JAX 0.9.
_trace_state = getattr(jax.extend.core, "get_opaque_trace_state", None) or jax.core.get_opaque_trace_state


@dataclasses.dataclass(frozen=True)
class Array:
    """A weight, or a non-trainable array.

    Attributes:
      path: its place in the trees of the whole model, such as ``[1]['kernel']``.
      role: ``"trainable"`` or ``"non-trainable"``.
      kind: ``float32[784,512]``.
    """

    path: str
    role: str
    kind: str
    numbers: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class Visit:
    """One call of a block.

    Attributes:
      given: what it was given, in words: ``float32[128,784]``.
      returned: what it returned.
      source: where the input comes from: ``"input"`` for what its container was given, the place of another block in it,
        ``"computed"``, or ``""`` inside another transformation, a loop, say.
      key: whether it was given a random key.
    """

    given: str
    returned: str
    source: str = ""
    key: bool = False


@dataclasses.dataclass(frozen=True)
class Block:
    """A layer of a model.

    Attributes:
      place: what its container calls it, such as ``[0]`` or ``.shortcut``; the model's name at the root.
      title: the layer in words: ``Linear(512)``, and of a container the bare class.
      visits: its calls, in order; none if the trace never came here.
      arrays: those of this block that are no child's.
      numbers, bytes: of all trainables and non-trainables in it, each array counted once.
      trainables: how many trainable numbers there are among them.
      flops, transcendentals: of the forward pass, its children's included.
      own_flops: those of its own equations.
      operations: the primitives of its own equations, and how many equations.
      times: how often it runs for each time that its container runs, because of a loop.
      splits: into how many keys it splits, each time that it does.
      draws: how many random numbers it draws itself.
      children: the layers in it.
    """

    place: str
    title: str
    visits: tuple[Visit, ...]
    arrays: tuple[Array, ...]
    numbers: int
    bytes: int
    trainables: int
    flops: int
    transcendentals: int
    own_flops: int
    operations: tuple[tuple[str, int], ...] = ()
    times: int = 1
    splits: tuple[int, ...] = ()
    draws: int = 0
    uncounted: tuple[str, ...] = ()
    children: tuple["Block", ...] = ()

    @property
    def key(self) -> bool:
        """Whether any call was given a random key."""
        return any(visit.key for visit in self.visits)


class Model:
    """A model that was looked at; a notebook shows blocks that open, a terminal a listing."""

    def __init__(self, root: Block):
        self.root = root

    def _repr_html_(self):
        return page.write(self.root)

    def __repr__(self):
        return page.listing(self.root)


def model(model: Any, x: Any, *, inference_mode: bool = False, name: str = "model", **inputs) -> Model:
    """Show a model as blocks, each opening to its parts: what flows in and out, weights, bytes, FLOPs, random keys.

    The model may be any layer of this library, or an object of your own that has ``init`` and ``fwd`` like one. One call
    of its ``init`` and its ``fwd`` is traced; nothing is computed, so the model may be larger than your memory. FLOPs are
    those of the forward pass, counted by :mod:`mlax_tutorial.inspection.costs`. A block that is given a random key says so,
    and a container says into how many keys it splits its own.

    Args:
      model: the layer.
      x: an input, or a ``jax.ShapeDtypeStruct``.
      inference_mode: how to call it.
      name: what to call the model.
      **inputs: further inputs, if the model takes any.

    Returns:
      A `Model`: as the last expression of a cell, blocks that open and close by a click, a tap or the Enter key. The bars
      show each block's share of the bytes and of the FLOPs.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, viz
      >>> net = nn.Series(nn.Linear(8), nn.F(jnp.tanh), nn.Residual(nn.Linear(8)))
      >>> viz.model(net, jnp.ones((2, 4)))
      model  Series, float32[2,4] -> float32[2,8], 96 numbers, 384 B, 416 FLOPs
        [0]  Linear(8), float32[2,4] -> float32[2,8], 32 numbers, 128 B, 128 FLOPs
        [1]  F(tanh), float32[2,8] -> float32[2,8], 16 FLOPs
        [2]  Residual, float32[2,8] -> float32[2,8], 64 numbers, 256 B, 272 FLOPs
          .layer  Linear(8), float32[2,8] -> float32[2,8], 64 numbers, 256 B, 256 FLOPs
    """
    return Model(look(model, x, inference_mode=inference_mode, name=name, **inputs))


def look(model: Any, x: Any, *, inference_mode: bool = False, name: str = "model", **inputs) -> Block:
    """As `model`, but returns the bare `Block` of the root."""
    if not (callable(getattr(model, "init", None)) and callable(getattr(model, "fwd", None))):
        raise TypeError(f"viz.model: a layer has the methods init and fwd; got {type(model).__name__}.")
    x, inputs = jax.tree.map(_spec, (x, inputs))
    key = jax.eval_shape(lambda: jax.random.key(0))
    variables = jax.eval_shape(lambda key, x, inputs: model.init(key, x, **inputs), key, x, inputs)
    options = {"inference_mode": inference_mode, "key": key if _wants_key(model, inference_mode) else None}
    options = {option: value for option, value in options.items() if _takes(model.fwd, option)}

    root, arrays = _Node(name, model), []
    for role, tree in zip(("trainable", "non-trainable"), variables, strict=True):
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            arrays.append(_array(jax.tree_util.keystr(path), role, leaf))
    numbers = iter(range(len(arrays)))
    owned = jax.tree.map(lambda _: next(numbers), tuple(variables))

    def call(key, x, variables, inputs):
        given = options | ({"key": key} if options.get("key") is not None else {})
        recorder = _Recorder(root, owned)
        with recorder.watching(model):
            return recorder.run(root, model.fwd, (x, *variables), {**given, **inputs}, owned)

    # What JAX keeps of earlier traces has no names of blocks. With a setting that never was before it traces anew. The notes
    # hold tracers for longer than their trace, which is no leak: they are gone when this returns.
    anew = set_xla_metadata(looked_at=str(next(_TRACES)))
    with anew, jax.check_tracer_leaks(False), jax.debug_key_reuse(False):
        program = jax.make_jaxpr(call)(key, x, variables, inputs)
    _complete(root)
    for item in costs.itemize(program):
        node, times = root, 1
        for scope, entered in item.scopes:
            child = scope.startswith(_MARK) and node.children.get(scope.removeprefix(_MARK))
            if child:
                node, times = child, entered
                node.entered = max(node.entered, times)
        node.items.append(item)
    return _block(root, arrays, 1)


class _Node:
    """A layer while it is looked at."""

    def __init__(self, place, layer):
        self.place, self.layer = place, layer
        self.children, self.visits, self.items = {}, [], []
        self.owned: set[int] = set()
        self.entered = 0
        self.parts = [] if layer is None else _parts(layer)

    def child(self, place, layer):
        if place not in self.children:
            self.children[place] = _Node(place, layer)
        return self.children[place]


class _Recorder:
    """Notes what layers are given and return, while a model is traced."""

    def __init__(self, root, owned):
        self.stack = [(root, owned, owned, [], None)]

    @contextlib.contextmanager
    def watching(self, model):
        """Put a method that takes notes in front of the methods of every layer in the model, in this object alone."""
        set_ones = []
        try:
            for layer in _all_layers(model):
                for name in _methods(layer):
                    with contextlib.suppress(
                        AttributeError, TypeError
                    ):  # no room for it: its container's equations
                        method = getattr(layer, name)
                        object.__setattr__(layer, name, self._noting(layer, method))
                        set_ones.append((layer, name))
            yield
        finally:
            for layer, name in set_ones:
                object.__delattr__(layer, name)

    def _noting(self, layer, method):
        def noting(*args, **kwargs):
            parent, given, owned, _, _ = self.stack[-1]
            if parent.layer is layer:  # a method that calls another one of the same layer
                return method(*args, **kwargs)
            variables = _variables(args, kwargs)
            place = self._place(parent, layer, variables, given)
            belongs = _belonging(place, variables, given, owned)
            node = parent.child(place, layer)
            with jax.named_scope(_MARK + place):
                return self.run(node, method, args, kwargs, belongs)

        return noting

    def run(self, node, method, args, kwargs, owned):
        x = args[0] if args else kwargs.get("x")
        key = kwargs.get("key")
        source = self._source(x) if len(self.stack) > 1 or node is not self.stack[0][0] else ""
        visit = len(node.visits)
        node.visits.append(None)  # in the order in which they begin
        node.owned.update(jax.tree.leaves(owned))
        self.stack.append((node, _variables(args, kwargs), owned, [("input", x)], _trace_state()))
        try:
            result = method(*args, **kwargs)
        finally:
            self.stack.pop()
        y = result[0] if isinstance(result, tuple) and len(result) == 2 else result
        if self.stack:
            self.stack[-1][3].append((node.place, y))
        node.visits[visit] = Visit(_words(x), _words(y), source, key is not None)
        return result

    def _source(self, x):
        leaves = jax.tree.leaves(x)
        *_, made, trace = self.stack[-1]
        for place, value in reversed(made):
            others = jax.tree.leaves(value)
            if leaves and len(leaves) == len(others) and all(map(lambda a, b: a is b, leaves, others)):
                return place
        return "computed" if trace == _trace_state() else ""

    def _place(self, parent, layer, variables, given):
        """What the container calls this layer: one object may stand in several places."""
        places = [place for place, part in parent.parts if part is layer]
        if not places:
            return next((place for place, part in _within(parent.layer) if part is layer), ".layer")
        fits = [place for place in places if _same_leaves(_at(given, place), variables)]
        fresh = [place for place in fits or places if place not in parent.children]
        return (fresh or fits or places)[0]


def _variables(args, kwargs):
    """The two trees among the arguments of ``fwd``."""
    given = list(args[1:3])
    for name in ("trainables", "non_trainables")[len(given) :]:
        given.append(kwargs.get(name, ()))
    return tuple(given)


def _belonging(place, variables, given, owned):
    """Which arrays of the model the ``variables`` of a child are, by number; they lie in ``given``, the container's."""
    leaves, numbers = jax.tree.leaves(given), jax.tree.leaves(owned)
    if len(leaves) == len(numbers):
        known = {id(leaf): number for leaf, number in zip(leaves, numbers)}
        found = [known.get(id(leaf)) for leaf in jax.tree.leaves(variables)]
        if None not in found:
            return jax.tree.unflatten(jax.tree.structure(variables), found)
    # Slices of them, in a loop, or of another dtype: the same tree in the same place, or the whole.
    for candidate in (_at(owned, place), owned):
        if jax.tree.structure(candidate) == jax.tree.structure(variables):
            return candidate
    return ()


def _at(pair, place):
    """What two trees hold at the place of a child."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        return ()
    found = []
    for tree in pair:
        for part in _steps(place):
            try:
                tree = tree[part]
            except (LookupError, TypeError):
                tree = ()
        found.append(tree)
    return tuple(found)


def _steps(place):
    for part in place.replace("[", ".[").split("."):
        if part.startswith("["):
            yield int(part[1:-1]) if part[1:-1].isdecimal() else part[1:-1].strip("'\"")
        elif part:
            yield part


def _same_leaves(one, two):
    one, two = jax.tree.leaves(one), jax.tree.leaves(two)
    return len(one) == len(two) and all(a is b for a, b in zip(one, two))


# What is a layer, and what it holds


def _is_layer(value):
    if isinstance(value, type) or hasattr(
        value, "init_carry"
    ):  # a cell takes steps; its layer calls no fwd of it
        return False
    return callable(getattr(value, "fwd", None)) and callable(getattr(value, "init", None))


def _methods(layer):
    """``fwd``, and other methods that are written like it."""
    names = ["fwd"]
    for name, method in inspect.getmembers(type(layer), inspect.isfunction):
        if not name.startswith("_") and name not in ("fwd", "decode"):
            if list(inspect.signature(method).parameters)[1:4] == ["x", "trainables", "non_trainables"]:
                names.append(name)
    return names


def _parts(layer):
    """The layers that a layer holds, each with its place."""
    known = getattr(layer, "_flat", None)  # a container of this library knows its own
    known = known if isinstance(known, dict) else {}
    parts = [(place or ".layer", part) for place, part in known.items()]
    seen = {id(part) for _, part in parts}
    for name, value in getattr(layer, "__dict__", {}).items():
        if name.startswith("_") if not known else name != "_layer":
            continue  # what a container says of itself counts; but a policy applies _layer, an adapted copy
        found = _layers_in(value, f".{name.lstrip('_')}")
        parts += [(place, part) for place, part in found if id(part) not in seen and part is not layer]
    return parts


def _layers_in(value, place):
    if _is_layer(value):
        return [(place, value)]
    if isinstance(value, (tuple, list)):
        return [found for i, item in enumerate(value) for found in _layers_in(item, f"{place}[{i}]")]
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in _layers_in(item, f"{place}[{key!r}]")]
    return []


def _all_layers(model):
    layers, left = {}, [model]
    while left:
        layer = left.pop()
        if id(layer) not in layers:
            layers[id(layer)] = layer
            left += [part for _, part in _parts(layer)]
    return layers.values()


def _within(layer, place="", depth=0):
    """The layers in a layer at any depth, with the whole way to them."""
    for part_place, part in _parts(layer) if depth < 20 else ():
        yield place + part_place, part
        yield from _within(part, place + part_place, depth + 1)


def _takes(function, name):
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _wants_key(model, inference_mode):
    need = getattr(model, "needs_key", _takes(model.fwd, "key"))
    return need == "always" or (bool(need) and not inference_mode)


# From notes to blocks


def _complete(root):
    """A part that JAX had traced before, in an equal layer on equal input, was not called again: its notes are the other's."""
    nodes = list(_every(root))
    for node in nodes:
        if node.children or not node.visits:
            continue
        for other in nodes:
            if other is not node and other.children and _alike(node, other):
                for place, child in other.children.items():
                    layer = dict(node.parts).get(place, child.layer)
                    node.children[place] = copied = _copy(child, layer)
                    if len(other.owned) == len(node.owned):
                        _own(copied, dict(zip(sorted(other.owned), sorted(node.owned))))
                break


def _every(node):
    yield node
    for child in node.children.values():
        yield from _every(child)


def _alike(node, other):
    if node.layer is not other.layer and node.layer != other.layer:
        return False
    return node.visits[0].given == other.visits[0].given if other.visits else False


def _copy(node, layer):
    copied = _Node(node.place, layer)
    copied.visits, copied.owned = list(node.visits), set(node.owned)
    parts = dict(copied.parts)
    copied.children = {
        place: _copy(child, parts.get(place, child.layer)) for place, child in node.children.items()
    }
    return copied


def _own(node, renamed):
    node.owned = {renamed[number] for number in node.owned}
    for child in node.children.values():
        _own(child, renamed)


def _block(node, arrays, entered):
    at = node.entered or entered
    children = [_block(child, arrays, at) for child in node.children.values()]
    for place, part in node.parts:  # what was never called is shown, too
        if place not in node.children and not any(part is child.layer for child in node.children.values()):
            children.append(_block(_Node(place, part), arrays, at))
    own = node.owned.difference(*(child.owned for child in node.children.values()))
    held = [arrays[i] for i in sorted(node.owned)]
    operations, splits, draws = collections.Counter(), [], 0
    for item in node.items:
        name, out = item.equation.primitive.name, item.equation.outvars
        operations[name] += 1
        if name == "random_split":
            splits.append(int(np.prod(item.equation.params["shape"])))
        if name == "random_bits":
            draws += item.times * out[0].aval.size
    own_flops = sum(item.times * item.flops for item in node.items)
    functions = sum(item.times * item.transcendentals for item in node.items)
    uncounted = {item.equation.primitive.name for item in node.items if not item.counted}
    return Block(
        node.place,
        _title(node.layer, bool(children)),
        tuple(visit for visit in node.visits if visit is not None),
        tuple(arrays[i] for i in sorted(own)),
        sum(array.numbers for array in held),
        sum(array.bytes for array in held),
        sum(array.numbers for array in held if array.role == "trainable"),
        own_flops + sum(child.flops for child in children),
        functions + sum(child.transcendentals for child in children),
        own_flops,
        tuple(operations.items()),
        max(at // max(entered, 1), 1),
        tuple(splits),
        draws,
        tuple(sorted(uncounted)),
        tuple(children),
    )


def _title(layer, has_children):
    name = type(layer).__name__
    if has_children:
        depth = getattr(layer, "depth", None)
        return f"{name}(depth={depth})" if isinstance(depth, int) else name
    try:
        text = " ".join(repr(layer).split())
    except Exception:
        return name
    if not text.startswith(name) or "<" in text:  # the words of object, or functions among the parts
        return name
    return text if len(text) <= 60 else text[:57] + "..."


def _array(path, role, leaf):
    numbers = int(np.prod(leaf.shape))
    return Array(path or "the array", role, _words(leaf), numbers, numbers * leaf.dtype.itemsize)


def _spec(leaf):
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        leaf = jnp.asarray(leaf)
    extended = jnp.issubdtype(leaf.dtype, jax.dtypes.extended)
    dtype = leaf.dtype if extended else jax.dtypes.canonicalize_dtype(leaf.dtype)
    return jax.ShapeDtypeStruct(leaf.shape, dtype)


def _words(tree):
    """What an input or an output is, in few words."""
    leaves = jax.tree.leaves(tree)
    if len(leaves) != 1:
        shown = [_words(leaf) for leaf in leaves[:3]] + ["…"] * (len(leaves) > 3)
        return f"({', '.join(shown)})" if leaves else "nothing"
    leaf = leaves[0]
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return type(leaf).__name__
    return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
