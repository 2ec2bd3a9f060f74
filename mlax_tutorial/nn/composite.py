"""``Composite``: a layer made of layers, put together by a function of your own."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.errors import describe, locate, located
from mlax_tutorial.nn.layer import Layer, abstract, mend_layer, outline
from mlax_tutorial.nn.numeric import canonical

# It moved from jax.core in JAX 0.9.
_trace_state = getattr(jax.extend.core, "get_opaque_trace_state", None) or jax.core.get_opaque_trace_state


def calls_once(forward):
    """Marks a ``forward`` that calls no child twice, so that no key is kept for that."""
    forward.calls_once = True
    return forward


class Container(Layer):
    """Base of layers that hold others, ``_flat`` by place, and hand on what these need."""

    draws = False

    # Cached, for each call of each child asks for them.

    @functools.cached_property
    def needs_key(self):
        needs = {self.draws, *(layer.needs_key for layer in self._flat.values())}
        return "always" if "always" in needs else any(needs)

    @functools.cached_property
    def inputs(self):
        return frozenset().union(*(layer.inputs for layer in self._flat.values()))

    decodes = property(lambda self: all(layer.decodes is not False for layer in self._flat.values()))

    _stepwise = property(lambda self: self._flat)  # what gets steps in decode: all

    def check_decodes(self):
        if type(self).decodes is False or self.draws == "always":
            super().check_decodes()
        for place, layer in self._stepwise.items():
            with located(place, layer):
                layer.check_decodes()

    def init(self, key, x, **inputs):
        # Phase one passes abstract values through the whole model once, and notes what each leaf is given.
        # Phase two makes the variables. Were each container to run its children's init and fwd by itself,
        # the work would double with every level of nesting.
        self.check_init_key(key)
        self.check_inputs(x, inputs)
        return self._build(outline(self, x, inputs, key), "", key)


class Composite(Container):
    """Base of layers that are made of other layers. List them as fields and write ``forward``.

    ``forward(self, call, x, **inputs)`` returns the output. In it, ``call.attention(x)`` applies the child in the
    field ``attention``, ``call.blocks[2](x)`` the third of a tuple of layers, and ``call.embed.attend(x)`` another
    method of a child that is written like ``fwd``. Each gets its own variables and, if it draws random numbers,
    its own key; a child that is called twice shares its weights between the calls, but never its key.

    The trainables are a dict with one entry a child, ``()`` where a child has none; a field that is a tuple of layers
    gives a tuple. Likewise the non-trainables. If no child has any, the whole is ``()``.

    A layer is a description: one object in two fields is two layers, with weights of their own. To share weights, call one
    child twice. A child may be called under ``jax.vmap``, ``jax.grad``, ``jax.lax.scan`` and the like, if it draws nothing
    and updates nothing.

    A class that says ``draws = True`` draws random numbers in ``forward`` itself: ``call.key()`` is a fresh key each
    time. It does so in training; after ``draws = "always"``, in inference, too. Children that follow from other
    hyperparameters are what :meth:`children` returns.

    Outside, a Composite is a layer like any other: ``init``, ``fwd``, hashable, static. It decodes if its class says
    ``decodes = True``: then all of its children must (or those of which it gives the names, ``decodes = ("decoder",)``; the
    others are then applied by ``fwd``, to all that they are given), and what ``forward`` does besides must treat each step by
    itself, or by its place, which ``call.position`` tells: the number of steps that came before this input.

    Raises:
      LayerError: on variables of another model, on an input that ``forward`` does not take, when a child was never
        called, when one that draws or updates is called inside another transformation (see :class:`Stack` and
        :class:`Remat`), and whatever a child finds wrong, with its place in front: ``model.attention.query.Linear: …``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> class Gated(nn.Composite):
      ...     value: nn.Layer
      ...     gate: nn.Layer
      ...     def forward(self, call, x):
      ...         return call.value(x) * jax.nn.sigmoid(call.gate(x))
      >>> model, x = Gated(nn.Linear(3), gate=nn.Linear(3)), jnp.ones((2, 4))
      >>> trainables, non_trainables = model.init(jax.random.key(0), x)
      >>> jax.tree.map(jnp.shape, trainables)
      {'gate': {'kernel': (4, 3)}, 'value': {'kernel': (4, 3)}}
      >>> model.fwd(x, trainables, non_trainables)[0].shape
      (2, 3)
    """

    decodes = False  # what forward does besides may mix steps

    # What a Call has of its own.
    _reserved = frozenset("takes inference_mode position _run _node _place _method _names _items".split())

    def __post_init__(self):
        super().__post_init__()
        self._hold(self._children())
        further = list(inspect.signature(self.forward).parameters.values())[2:]
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in further):
            vars(self)["inputs"] = frozenset(parameter.name for parameter in further)

    def _hold(self, tree):
        """Take the layers of ``tree`` for children; if they are others than the fields say, for the sake of equality, too."""
        if tree != getattr(self, "_tree", tree):
            value = (self._value, *_flatten(tree).items())
            vars(self).update(_value=value, _hash=hash(value))
        vars(self).update(_tree=tree, _flat=_flatten(tree))
        for place, layer in self._flat.items():
            if not isinstance(layer, Layer):
                self.refuse(f"{place.lstrip('.')} must be a layer, got {describe(layer)}{mend_layer(layer)}.")
        keyed = {place: layer.needs_key for place, layer in self._flat.items() if layer.needs_key}
        vars(self)["_keyed"] = keyed

    def _children(self) -> Any:
        """The children as they stand in the variables: a dict or a tuple, nested, with layers as leaves."""
        as_layers = (Layer, "Layer", "nn.Layer")
        declared = {field.name for field in dataclasses.fields(self) if field.type in as_layers}
        fields, made = {name: getattr(self, name) for name in self._fields}, self.children()
        if both := made.keys() & fields.keys():
            self.refuse(f"children returns {min(both)!r}, which is a field: rename it.")
        held = {name: value for name, value in fields.items() if name in declared or _has_layers(value)}
        return held | made

    def children(self) -> dict[str, Layer]:
        """Layers, or tuples of layers, beside those in fields; called once, when the Composite is built.

        Example:
          >>> from mlax_tutorial import nn
          >>> class Perceptron(nn.Composite):
          ...     sizes: tuple[int, ...]
          ...     def children(self):
          ...         return {"linear": tuple(nn.Linear(size) for size in self.sizes)}
          ...     def forward(self, call, x):
          ...         for linear in call.linear:
          ...             x = jax.nn.relu(linear(x))
          ...         return x
          >>> import jax, jax.numpy as jnp
          >>> jax.tree.map(jnp.shape, Perceptron((8, 3)).init(jax.random.key(0), jnp.ones(2))[0])
          {'linear': ({'kernel': (2, 8)}, {'kernel': (8, 3)})}
        """
        return {}

    @property
    def _stepwise(self):
        names = type(self).decodes
        some = {name: self._tree[name] for name in names} if isinstance(names, tuple) else self._tree
        return _flatten(some)

    def forward(self, call: "Call", x: Any, **inputs) -> Any:
        """Compute the output; ``call`` stands for ``self`` with variables and keys in place.

        Args:
          call: the children, ready to be applied. ``call.inference_mode`` is a Python ``bool``.
          x: the input.
          **inputs: further inputs, which are the other parameters of the subclass' ``forward``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define forward")

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        self._check_names(inputs)
        run = _Apply(self, trainables, non_trainables, key, inference_mode)
        y = self._forward(run, x, inputs)
        updated = gather(self._tree, run.non_trainables)
        return y, updated if run.found is None else Captured(updated, run.found)

    def decode(self, x, trainables, non_trainables, cache, **inputs):
        if type(self).decodes is False:
            self.check_decodes()
        self._check_names(inputs)
        position, steps = 0, 0
        if self._counts_steps:
            if not isinstance(cache, dict) or "position" not in cache:
                wanted = "what init_cache made, or the last decode returned"
                self.refuse(f"cache expects {wanted}, got {describe(cache)}.")
            position, steps = cache["position"], self.steps(x)
            cache = {name: value for name, value in cache.items() if name != "position"} or ()
        run = _Decode(self, trainables, non_trainables, cache, position)
        y = self._forward(run, x, inputs)
        return y, self._join_cache(gather(self._tree, run.cache), position + steps)

    def steps(self, x) -> int:
        """How many steps of a sequence ``x`` holds: the size of its axis before the last, or of the last one of integers."""
        x = jax.tree.leaves(x)[0]
        return x.shape[-1 if jnp.issubdtype(x.dtype, jnp.integer) else -2]

    @property
    def _counts_steps(self):
        declared = type(self).decodes
        return bool(declared) and not isinstance(declared, property)  # a Series has no use for its place

    def _join_cache(self, cache, position):
        return {"position": position, **(cache or {})} if self._counts_steps else cache

    def _forward(self, run, x, inputs):
        y = self.forward(Call(run, self._tree), canonical(x), **canonical(inputs))
        if y is None:
            self.refuse("forward must return the output, got None: end it with return …")
        return y

    def _outline(self, records, path, key, x, **inputs):
        self._check_names(inputs)
        run = _Outline(self, records, path, key)
        y = self._forward(run, x, inputs)
        for place, layer in self._flat.items():
            if place not in run.variables:
                what = f"{place.lstrip('.')} ({layer!r}) when it trains, so its sizes are unknown"
                self.refuse(f"forward never calls {what}: call it, or take the field away.")
        return y, *_gather_pairs(self._tree, run.variables)

    def _build(self, records, path, key):
        keys = zip(self._flat.items(), jax.random.split(key, len(self._flat)))
        built = {place: layer._build(records, path + place, key) for (place, layer), key in keys}
        return _gather_pairs(self._tree, built)

    def _build_cache(self, records, path, length):
        caches = dict.fromkeys(self._flat, ())
        for place, layer in self._stepwise.items():
            with located(place, layer):
                caches[place] = layer._build_cache(records, path + place, length)
        return self._join_cache(gather(self._tree, caches), jnp.zeros((), jnp.int32))


class Call:
    """What ``forward`` gets: the children of a Composite, ready to be applied. Made by ``fwd``, not by hand.

    Attributes:
      inference_mode: a Python ``bool``.
      position: how many steps came before this input: 0 in ``fwd``; in ``decode`` an int32 scalar, which may be traced.

    Example:
      >>> from mlax_tutorial import nn
      >>> class Twice(nn.Composite):
      ...     layers: tuple
      ...     def forward(self, call, x, **inputs):
      ...         for layer in call.layers:
      ...             x = layer(x, **layer.takes(inputs))
      ...         return x
      >>> Twice((nn.Flatten(2), nn.Dropout(0.5)))
      Twice((Flatten(2), Dropout(0.5)))
    """

    def __init__(self, run, node, place="", method="fwd"):
        self._run, self._node, self._place, self._method = run, node, place, method
        self.inference_mode, self.position = run.inference_mode, run.position

    def takes(self, inputs: dict) -> dict:
        """Those of ``inputs`` that this child takes."""
        return {name: value for name, value in inputs.items() if name in self._node.inputs}

    def __call__(self, x=None, **inputs):
        if not isinstance(self._node, Layer):
            held = f"no layer but holds some, {self._names}"
            self._run.layer.refuse(f"call{self._place} is {held}: call one of them.")
        return self._run.call(self._place, self._node, self._method, x, inputs)

    def __getattr__(self, name):
        if isinstance(self._node, dict) and name in self._node:
            return Call(self._run, self._node[name], f"{self._place}.{name}")
        own = getattr(self._node, name, None) if isinstance(self._node, Layer) else None
        if callable(own) and not isinstance(own, Layer):
            return Call(self._run, self._node, self._place, name)
        if name == "key" and not self._place:  # not a method, which would hide a child of this name
            return self._run.fresh_key
        field = None if self._place else getattr(self._run.layer, name, None)
        if field == ():
            return Call(self._run, (), f".{name}")  # a tuple of layers may have none
        found = "" if isinstance(self._node, Layer) else f"; it has {self._names}"
        mend = f". Declare it in the class, {name}: nn.Layer" if isinstance(field, Layer) else ""
        message = f"call{self._place} has no layer {name!r}{found}{mend}."
        raise AttributeError(f"{type(self._run.layer).__name__}: {message}")

    def __getitem__(self, index):
        return (dict(zip(self._node, self)) if isinstance(self._node, dict) else tuple(self))[index]

    def __len__(self):
        return len(self._items())

    def __iter__(self):
        return (Call(self._run, node, self._place + part) for part, node in self._items())

    @property
    def _names(self):
        return ", ".join(part.lstrip(".") for part, _ in _items(self._node)) or "nothing"

    def _items(self):
        if isinstance(self._node, Layer):
            mend = f"apply it whole, call{self._place}(x), or make the field a tuple of layers"
            self._run.layer.refuse(f"call{self._place} is one layer, {type(self._node).__name__}: {mend}.")
        return _items(self._node)


class _Run:
    """One run of ``forward``: keeps variables and keys by the child's place."""

    inference_mode = False
    position = 0

    def __init__(self, layer, **trees):
        self.layer, self.trace, self.keys, self.spare = layer, _trace_state(), {}, None
        for role, tree in trees.items():
            setattr(self, role, spread(layer, tree, role))

    def split(self, key, layers):
        """A key for each of ``layers`` (by place), and a spare one for what is drawn besides."""
        if self.layer.draws or not getattr(self.layer.forward, "calls_once", False):
            *keys, self.spare = jax.random.split(key, len(layers) + 1)
        else:  # each split is a program of its own: of thirteen in an encoder, this leaves four
            keys = jax.random.split(key, len(layers)) if len(layers) > 1 else [key]
        self.keys = dict(zip(layers, keys))

    def wants_key(self, place):
        need = self.layer._keyed.get(place)
        return need and (need == "always" or self.inference_mode is not True)

    def key_for(self, place):
        if self.wants_key(place):
            return self.keys.pop(place) if place in self.keys else self.next_key()

    def next_key(self):
        if self.spare is not None:
            self.spare, key = jax.random.split(self.spare)
            return key

    def fresh_key(self):
        """A new key for ``forward`` itself."""
        draws, refuse = self.layer.draws, self.layer.refuse
        self.layer.check_inference_mode(self.inference_mode)
        if not draws:
            refuse("draws random numbers, which its class does not declare: say draws = True.")
        if draws != "always" and self.inference_mode is True:
            mend = 'look at call.inference_mode before, or say draws = "always"'
            refuse(f"draws in inference, which its class does not declare: {mend}.")
        if _trace_state() != self.trace:
            refuse("call.key() was used inside another transformation: draw the key before it.")
        key = self.next_key()
        self.layer.check_key(key)
        return key

    def call(self, place, layer, method, x, inputs):
        inside = _trace_state() != self.trace
        try:  # which costs nothing, unlike ``with``
            y = self.apply(place, layer, method, x, inputs, inside)
        except Exception as error:
            locate(error, place, layer)
            raise
        if inside and (reason := self.keeps(place)):  # out here, nothing of that would arrive
            where = "inside another transformation (jax.checkpoint, scan, vmap or jit)"
            mend = "use nn.Remat, nn.Stack or nn.Recurrent, or transform the whole layer"
            self.layer.refuse(f"call{place} was used {where}, but it {reason}, which would be lost: {mend}.")
        return y

    def keeps(self, place):
        """What a call of this child changes in this run, if anything."""
        if self.wants_key(place):
            return "draws random numbers"
        return "updates its non_trainables" if jax.tree.leaves(self.non_trainables.get(place)) else ""


class _Apply(_Run):
    def __init__(self, layer, trainables, non_trainables, key, inference_mode):
        capturing = isinstance(non_trainables, Captured)
        self.found = {} if capturing else None
        non_trainables = non_trainables.tree if capturing else non_trainables
        super().__init__(layer, trainables=trainables, non_trainables=non_trainables)
        # NumPy's True is not Python's, which is what "is not True" asks for; a traced one is for layers that do not look at it.
        self.inference_mode = bool(inference_mode) if isinstance(inference_mode, np.bool_) else inference_mode
        needing = [place for place in layer._keyed if self.wants_key(place)]
        draws = layer.draws == "always" or (layer.draws and self.inference_mode is not True)
        if key is not None and (needing or draws):
            layer.check_key(key)
            self.split(key, needing)

    def apply(self, place, layer, method, x, inputs, inside):
        trainables, given = self.trainables[place], self.non_trainables[place]
        captures = self.found is not None and not inside  # what is captured inside could not leave
        options = {"key": self.key_for(place), "inference_mode": self.inference_mode, **inputs}
        given = Captured(given, {}) if captures else given
        y, updated = apply(layer, place, method, x, trainables, given, **options)
        self.non_trainables[place] = updated.tree if captures else updated
        if captures:
            self.note(place, updated.found)
        return y

    def note(self, place, found):
        again = sum(other.partition("#")[0] == place for other in self.found)
        suffix = f"#{again + 1}" if again else ""  # of a child that is called once more
        self.found |= {place + suffix + other[len(place) :]: value for other, value in found.items()}


class _Outline(_Run):
    def __init__(self, layer, records, path, key):
        super().__init__(layer)
        self.records, self.path = records, path
        self.variables, self.non_trainables = {}, {}
        self.split(key, layer._flat)

    def apply(self, place, layer, method, x, inputs, inside):
        if place not in self.variables:
            if method != "fwd":
                layer.refuse(f"{method} comes before the layer itself is called: its sizes are unknown yet.")
            # A scan would use the other one in each round.
            key = jax.random.key(0) if inside else self.keys.pop(place)
            y, *variables = layer._outline(self.records, self.path + place, key, x, **inputs)
        else:
            # Shapes are all that outlives the trace of a call: the numbers do not count.
            given = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), self.variables[place])
            options = {"key": self.key_for(place), "inference_mode": False, **inputs}
            y, updated = apply(layer, place, method, x, *given, **options)
            variables = given[0], updated
        self.variables[place] = jax.tree.map(abstract, tuple(variables))
        self.non_trainables[place] = self.variables[place][1]
        return y


class _Decode(_Run):
    inference_mode = True

    def __init__(self, layer, trainables, non_trainables, cache, position):
        super().__init__(layer, trainables=trainables, non_trainables=non_trainables, cache=cache)
        self.used, self.position = set(), position

    def keeps(self, place):
        return super().keeps(place) or ("updates its cache" if jax.tree.leaves(self.cache[place]) else "")

    def apply(self, place, layer, method, x, inputs, inside):
        variables = self.trainables[place], self.non_trainables[place]
        if method != "fwd" or place not in self.layer._stepwise:
            return getattr(layer, method)(x, *variables, inference_mode=True, **inputs)[0]
        if place in self.used and jax.tree.leaves(self.cache[place]):
            layer.refuse("is called twice, but has one cache: make it two layers to decode.")
        self.used.add(place)
        y, self.cache[place] = layer.decode(x, *variables, self.cache[place], **inputs)
        return y


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Captured:
    """Non-trainables on their way through a model whose layers' outputs are captured, and what was found by now."""

    tree: Any
    found: dict[str, Any]


def apply(layer: Layer, place: str, method: str, x, trainables, non_trainables, **options) -> tuple[Any, Any]:
    """Call a child; where outputs are captured, note its own and those of the layers in it."""
    if not isinstance(non_trainables, Captured):
        return layer.check_pair(method, getattr(layer, method)(x, trainables, non_trainables, **options))
    given = non_trainables if isinstance(layer, Container) else non_trainables.tree
    y, updated = layer.check_pair(method, getattr(layer, method)(x, trainables, given, **options))
    if not isinstance(updated, Captured):
        updated = Captured(updated, {})
    inner = {place + other: value for other, value in updated.found.items()}
    return y, Captured(updated.tree, {place: y, **inner})


def capture(model: Layer) -> Callable:
    """``model.fwd``, which also returns what each layer inside gave: ``(y, non_trainables), captured``; pure.

    ``captured`` is a dict by the path of the layer, as errors show it. The layers of a :class:`Stack` stand there together,
    with the depth as a leading axis; a layer that is called again, as ``"…#2"``. What is called inside a
    transformation of one's own is left out.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, x = nn.Series(nn.Linear(3), nn.Residual(nn.F(jnp.tanh))), jnp.ones((2, 4))
      >>> trainables, non_trainables = model.init(jax.random.key(0), x)
      >>> (y, non_trainables), captured = nn.capture(model)(x, trainables, non_trainables, inference_mode=True)
      >>> jax.tree.map(jnp.shape, captured)
      {'[0]': (2, 3), '[1]': (2, 3), '[1].layer': (2, 3)}
    """

    def fwd(x, trainables, non_trainables, **options):
        y, updated = apply(model, "", "fwd", x, trainables, Captured(non_trainables, {}), **options)
        return (y, updated.tree), {path: value for path, value in updated.found.items() if path}

    return fwd


def _has_layers(value):
    """Whether a field holds children: a layer, or a tuple with some, which may be nested."""
    return isinstance(value, Layer) or (isinstance(value, tuple) and any(map(_has_layers, value)))


def _items(tree):
    """The parts of a dict or a tuple of layers, each with what a path calls it."""
    if isinstance(tree, dict):
        return [(f".{name}", child) for name, child in tree.items()]
    return [(f"[{index}]", child) for index, child in enumerate(tree)]


def _flatten(tree, place=""):
    if not isinstance(tree, (dict, tuple)):
        return {place: tree}
    return {at: layer for part, child in _items(tree) for at, layer in _flatten(child, place + part).items()}


def gather(tree, by_place, place=""):
    """Put variables by place into the shape of ``tree``; ``()`` for a container that has none."""
    if isinstance(tree, Layer):
        return by_place[place]
    children = tuple([gather(child, by_place, place + part) for part, child in _items(tree)])
    if all(map(_is_empty, children)):
        return ()
    return dict(zip(tree, children)) if isinstance(tree, dict) else children


def _gather_pairs(tree, by_place):
    """The same for trainables and non-trainables together."""
    return tuple(gather(tree, {place: pair[role] for place, pair in by_place.items()}) for role in (0, 1))


def spread(layer, variables, role):
    """The inverse of ``gather``."""
    return dict(_spread(layer, layer._tree, variables, role))


def _spread(layer, tree, variables, role, place=""):
    # No inner function that calls itself: such a cycle would keep the variables of each call until Python collects garbage.
    if isinstance(tree, Layer):
        yield place, variables
        return
    parts, kind = dict(_items(tree)), dict if isinstance(tree, dict) else tuple
    given = dict(_items(variables)) if isinstance(variables, kind) else {}
    given = dict.fromkeys(parts, ()) if _is_empty(variables) else given
    if given.keys() != parts.keys():
        wanted = f"a tuple with one entry for each of {len(tree)} layers"
        wanted = f"a dict with keys {sorted(tree)}" if kind is dict else wanted
        layer.refuse_variables(role, wanted, variables, place)
    for part, child in parts.items():
        yield from _spread(layer, child, given[part], role, place + part)


def _is_empty(variables):
    return isinstance(variables, tuple) and not variables
