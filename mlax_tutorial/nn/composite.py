"""``Composite``: a layer made of layers, put together by a function of your own."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import steps
from mlax_tutorial.nn.call import Call, Decode, Forward, Outline
from mlax_tutorial.nn.errors import describe, located
from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.nn.layer import Layer, abstract, mend_layer, outline
from mlax_tutorial.nn.places import by_place, change, gather, has_layers


def calls_once(forward):
    """Marks a ``forward`` that calls no child twice, so that no key is kept for that."""
    forward.calls_once = True
    return forward


def entry(forward: Callable) -> Callable:
    """A further entry of a :class:`Composite`, beside ``forward`` and written like it: the encoder of an autoencoder, say.

    ``encode(self, call, x, **inputs)`` becomes a method that is called as ``fwd`` is: ``model.encode(x, trainables,
    non_trainables, key=None, inference_mode=False)`` returns ``(y, non_trainables)``. Inside of another Composite it is
    ``call.model.encode(x)``. An :class:`Inference`, a :class:`Remat`, a :class:`Vmap` or a ``precision.Policy`` around the model
    has the same entries. All children must be called by ``forward`` itself, which tells ``init`` their sizes.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> class Autoencoder(nn.Composite):
      ...     encoder: nn.Layer
      ...     decoder: nn.Layer
      ...     def forward(self, call, x):
      ...         return call.decoder(call.encoder(x))
      ...     @nn.entry
      ...     def encode(self, call, x):
      ...         return call.encoder(x)
      >>> model, x = Autoencoder(nn.Linear(2), nn.Linear(8)), jnp.ones((5, 8))
      >>> variables = model.init(jax.random.key(0), x)
      >>> model.encode(x, *variables)[0].shape
      (5, 2)
    """

    @functools.wraps(forward)
    def method(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        run = Forward(self, trainables, non_trainables, key, inference_mode)
        return run.result(forward, x, inputs)

    method.is_entry = True  # for a layer around this one
    del method.__wrapped__  # jax.jit asks for the method's own parameters
    return method


class Container(Layer):
    """Base of layers that hold others, ``_flat`` by place, and hand on what these need."""

    draws = False
    holds_layers = True

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
        if type(self).build_cache is not Layer.build_cache:
            mend = "write it, and decode, in a layer that it holds, or derive from nn.Layer"
            self.refuse(f"writes build_cache, but holds layers, so that its cache is theirs: {mend}.")
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
    and updates nothing; in inference, nothing is updated.

    A class that says ``draws = True`` draws random numbers in ``forward`` itself: ``call.key()`` is a fresh key each
    time. (Draw in float32 and convert then: JAX draws a bfloat16 normal from seven random bits.) It does so in training;
    after ``draws = "always"``, in inference, too. Children that follow from other hyperparameters are what :meth:`children`
    returns.

    Outside, a Composite is a layer like any other: ``init``, ``fwd``, hashable, static. It decodes if its class says
    ``decodes = True``: then all of its children must (or those of which it gives the names, ``decodes = ("decoder",)``; the
    others are then applied by ``fwd``, to all that they are given), and what ``forward`` does besides must treat each step by
    itself, or by its place, which ``call.place`` tells: how many steps of its sequence came before each step of ``x``.

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
    _reserved = frozenset("takes note inference_mode place _run _node _place _method _names _parts".split())

    # What stands in place of what children() returns (see nn.replace): pairs of a name and a layer, or a tuple of some.
    # An argument, so that dataclasses.replace hands it on.
    _replaced: tuple = dataclasses.field(default=(), kw_only=True)

    def __init_subclass__(cls, **options):
        if "__init__" in vars(cls):  # which knows nothing of it
            cls.__annotations__ = {**inspect.get_annotations(cls), "_replaced": tuple}
            cls._replaced = dataclasses.field(default=(), init=False)
        super().__init_subclass__(**options)
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature([one for one in parameters if one.name != "_replaced"])

    def __post_init__(self):
        super().__post_init__()
        tree = self._children()
        tree = tree | dict(self._replaced) if self._replaced else tree
        layers = by_place(tree)
        for place, layer in layers.items():
            if not isinstance(layer, Layer):
                self.refuse(f"{place.lstrip('.')} must be a layer, got {describe(layer)}{mend_layer(layer)}.")
        keyed = {place: layer.needs_key for place, layer in layers.items() if layer.needs_key}
        vars(self).update(_tree=tree, _flat=layers, _keyed=keyed)
        further = list(inspect.signature(self.forward).parameters.values())[2:]
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in further):
            vars(self)["inputs"] = frozenset(parameter.name for parameter in further)

    def _children(self) -> Any:
        """The children as they stand in the variables: a dict or a tuple, nested, with layers as leaves."""
        as_layers = (Layer, "Layer", "nn.Layer")
        declared = {field.name for field in dataclasses.fields(self) if field.type in as_layers}
        fields = {name: getattr(self, name) for name in self._fields}
        held = {name: value for name, value in fields.items() if name in declared or has_layers(value)}
        made = self.children() | dict(self._replaced)
        for name in made:
            if name in fields or hasattr(type(self), name):
                taken = "a field" if name in fields else "what layers have already"
                self.refuse(f"children returns {name!r}, which is {taken}: rename it.")
        vars(self).update(made)
        return held | made

    def with_children(self, function):
        tree, replaced = change(self._tree, function), dict(self._replaced)
        fields = {name: tree.pop(name) for name in self._fields if name in tree}
        kept = {name: made for name, made in tree.items() if name in replaced or made != self._tree[name]}
        return self._rebuilt(**fields, _replaced=tuple(kept.items()))

    def _shown(self):
        yield from super()._shown()
        yield from (f"{name}={show(made)}" for name, made in self._replaced)

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
        return by_place(some)

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
        run = Forward(self, trainables, non_trainables, key, inference_mode)
        return run.result(type(self).forward, x, inputs)

    def decode(self, x, trainables, non_trainables, cache, **inputs):
        if type(self).decodes is False:
            self.check_decodes()
        self._check_names(inputs)
        place = None
        if self._counts_steps:
            if not isinstance(cache, dict) or "place" not in cache:
                wanted = "what init_cache made, or the last decode returned"
                self.refuse(f"cache expects {wanted}, got {describe(cache)}.")
            place = cache["place"]
            cache = {name: value for name, value in cache.items() if name != "place"} or ()
        run = Decode(self, trainables, non_trainables, cache, place)
        y, cache = run.compute(type(self).forward, x, inputs), gather(self._tree, run.cache)
        return y, cache if place is None else {"place": place + steps(x)[-1], **(cache or {})}

    @property
    def _counts_steps(self):
        declared = type(self).decodes
        return bool(declared) and not isinstance(declared, property)  # a Series has no use for its place

    def _outline(self, records, path, key, x, **inputs):
        self._check_names(inputs)
        if self._counts_steps:
            records[path] = jax.tree.map(abstract, x), {}
        run = Outline(self, records, path, key)
        y = run.compute(type(self).forward, x, inputs)
        for place, layer in self._flat.items():
            if place not in run.trainables:
                what = f"{place.lstrip('.')} ({layer!r}) when it trains, so its sizes are unknown"
                self.refuse(f"forward never calls {what}: call it, or take the field away.")
        return y, gather(self._tree, run.trainables), gather(self._tree, run.non_trainables)

    def _build(self, records, path, key):
        keys = zip(self._flat.items(), jax.random.split(key, len(self._flat)))
        built = {place: layer._build(records, path + place, key) for (place, layer), key in keys}
        return tuple(gather(self._tree, {place: built[place][role] for place in built}) for role in (0, 1))

    def _build_cache(self, records, path, length):
        caches = dict.fromkeys(self._flat, ())
        for place, layer in self._stepwise.items():
            with located(place, layer):
                caches[place] = layer._build_cache(records, path + place, length)
        cache = gather(self._tree, caches)
        if not self._counts_steps:
            return cache
        return {"place": jnp.zeros(steps(records[path][0])[:-1], jnp.int32), **(cache or {})}
