"""What ``forward`` of a :class:`Composite` gets, and what a call of a child does: in ``fwd``, in ``init`` and in ``decode``."""

from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.arrays import canonical, steps
from mlax_tutorial.nn.capture import Captured, apply
from mlax_tutorial.nn.errors import describe, located
from mlax_tutorial.nn.layer import Layer, abstract, wants
from mlax_tutorial.nn.places import gather, parts, spread

# It moved from jax.core in JAX 0.9.
_trace_state = getattr(jax.extend.core, "get_opaque_trace_state", None) or jax.core.get_opaque_trace_state


class Call:
    """What ``forward`` gets: the children of a Composite, ready to be applied. Made by ``fwd``, not by hand.

    ``call.child(x)`` applies a child; ``call.child(x, inference_mode=True)`` in inference, whatever the model does: a teacher, or
    a body with frozen batch norm.

    Attributes:
      inference_mode: a Python ``bool``.
      place: how many steps of its sequence came before each step of ``x``, int32, ``(..., length)``: 0, 1, 2 and so on in
        ``fwd``; in ``decode``, each row goes on from its own place.

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
        self.inference_mode = run.inference_mode

    @property
    def place(self):
        return self._run.places

    def takes(self, inputs: dict) -> dict:
        """Those of ``inputs`` that this child takes."""
        return {name: value for name, value in inputs.items() if name in self._node.inputs}

    def note(self, name: str, value: Any) -> None:
        """Show a value, an auxiliary loss, say, to whoever looks: :func:`notes`, :func:`capture`, the loss of a training step.

        Nothing else sees it, and where nobody looks, it costs nothing under ``jax.jit``.
        """
        self._run.note(name, value)

    def __call__(self, x=None, **inputs):
        if not isinstance(self._node, Layer):
            held = f"no layer but holds some, {self._names}"
            self._run.layer.refuse(f"call{self._place} is {held}: call one of them.")
        return self._run.call(self._place, self._node, self._method, x, inputs)

    def __getattr__(self, name):
        run, node, place = self._run, self._node, self._place
        if isinstance(node, dict) and name in node:
            return Call(run, node[name], f"{place}.{name}")
        own = getattr(node, name, None) if isinstance(node, Layer) else None
        if callable(own) and not isinstance(own, Layer):
            return Call(run, node, place, name)
        if name == "key" and not place:  # not a method, which would hide a child of this name
            return run.fresh_key
        field = None if place else getattr(run.layer, name, None)
        if field == ():
            return Call(run, (), f".{name}")  # a tuple of layers may have none
        found = "" if isinstance(node, Layer) else f"; it has {self._names}"
        mend = f". Declare it in the class, {name}: nn.Layer" if isinstance(field, Layer) else ""
        raise AttributeError(f"{type(run.layer).__name__}: call{place} has no layer {name!r}{found}{mend}.")

    def __getitem__(self, index):
        return (dict(zip(self._node, self)) if isinstance(self._node, dict) else tuple(self))[index]

    def __len__(self):
        return sum(1 for _ in self)

    def __iter__(self):
        if isinstance(self._node, Layer):
            mend = f"apply it whole, call{self._place}(x), or make the field a tuple of layers"
            self._run.layer.refuse(f"call{self._place} is one layer, {type(self._node).__name__}: {mend}.")
        return (Call(self._run, node, self._place + part) for part, node in parts(self._node))

    @property
    def _names(self):
        return ", ".join(part.lstrip(".") for part, _ in parts(self._node)) or "nothing"


class Run:
    """One run of ``forward``: the variables and keys of the children, by place. A subclass says what a call does."""

    inference_mode, place, x, found, spare, lost = False, None, None, None, None, ""

    def __init__(self, layer, **trees):
        self.layer, self.trace, self.keys, self.times = layer, _trace_state(), {}, {}
        for role, tree in trees.items():
            setattr(self, role, spread(layer, tree, role))

    def compute(self, forward, x, inputs):
        """What ``forward`` returns."""
        self.x = x
        y = forward(self.layer, Call(self, self.layer._tree), canonical(x), **canonical(inputs))
        if y is None:
            self.layer.refuse("forward must return the output, got None: end it with return …")
        return y

    @property
    def places(self):
        shape = steps(self.x)
        counted = jax.lax.broadcasted_iota(jnp.int32, shape, len(shape) - 1)
        return counted if self.place is None else counted + self.place[..., None]

    @property
    def inside(self):
        """Whether this is inside another transformation than ``forward``."""
        return _trace_state() != self.trace

    def refuse_inside(self, what, mend):
        if self.inside:
            self.layer.refuse(f"{what} was used inside another transformation: {mend}.")

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
        if not wants(draws, self.inference_mode):
            mend = 'look at call.inference_mode before, or say draws = "always"'
            refuse(f"draws in inference, which its class does not declare: {mend}.")
        self.refuse_inside("call.key()", "draw the key before it")
        key = self.next_key()
        self.layer.check_key(key)
        return key

    def note(self, name, value):
        if not isinstance(name, str) or not name:  # an empty one means the outputs, to nn.capture
            self.layer.refuse(
                f'call.note expects a name, "penalty", say, got {describe(name)}: name what you note.'
            )
        self.refuse_inside(f"call.note({name!r}, …)", "return the value, and note it out here")
        if self.found is not None:
            self.add(name, "", {("", name): value})

    def add(self, called, place, found):
        """Take over what was found at ``place``; what is ``called`` once more, with ``#2`` behind it."""
        self.times[called] = times = self.times.get(called, 0) + 1
        again = f"{place}#{times}" if times > 1 else place
        self.found |= {(again + path.removeprefix(place), name): found[path, name] for path, name in found}

    def call(self, place, layer, method, x, inputs):
        with located(place, layer):
            inference_mode = self.inference_mode
            if "inference_mode" in inputs:
                layer.check_inference_mode(inference_mode := inputs.pop("inference_mode"))
                inference_mode = bool(inference_mode)  # NumPy's True is not Python's
            y = self.apply(place, layer, method, x, inputs, inference_mode)
        # Out here, nothing of that would arrive.
        if self.inside and (reason := self.keeps(place, inference_mode)):
            where = "inside another transformation (jax.checkpoint, scan, vmap or jit)"
            mend = "use nn.Remat, nn.Stack, nn.Vmap or nn.Recurrent, or transform the whole layer"
            self.layer.refuse(f"call{place} was used {where}, but it {reason}, which would be lost: {mend}.")
        return y

    def keeps(self, place, inference_mode):
        """What a call of this child changes in this run, if anything."""
        if wants(self.layer._keyed.get(place), inference_mode):
            return "draws random numbers"
        updates = inference_mode is not True and jax.tree.leaves(self.non_trainables[place])
        return "updates its non_trainables" if updates else ""


class Forward(Run):
    """``fwd``, in training or in inference."""

    def __init__(self, layer, trainables, non_trainables, key, inference_mode):
        if isinstance(non_trainables, Captured):
            self.found, self.wanted, non_trainables = {}, non_trainables.wanted, non_trainables.tree
        super().__init__(layer, trainables=trainables, non_trainables=non_trainables)
        # NumPy's True is not Python's, which is what "is not True" asks for; a traced one is for layers that do not look at it.
        self.inference_mode = bool(inference_mode) if isinstance(inference_mode, np.bool_) else inference_mode
        places = [place for place, need in layer._keyed.items() if wants(need, self.inference_mode)]
        if key is not None and (places or wants(layer.draws, self.inference_mode)):
            layer.check_key(key)
            if layer.draws or not getattr(layer.forward, "calls_once", False):
                *keys, self.spare = jax.random.split(key, len(places) + 1)
            else:  # each split is a program of its own: of thirteen in an encoder, this leaves four
                keys = jax.random.split(key, len(places)) if len(places) > 1 else [key]
            self.keys = dict(zip(places, keys))

    def keeps(self, place, inference_mode):
        return super().keeps(place, inference_mode) or (f"notes {self.lost}" if self.lost else "")

    def result(self, forward, x, inputs):
        """What ``fwd`` returns, of one ``forward`` or another."""
        y, layer = self.compute(forward, x, inputs), self.layer
        updated = gather(layer._tree, self.non_trainables)
        return y, updated if self.found is None else Captured(updated, self.found, self.wanted)

    def apply(self, place, layer, method, x, inputs, inference_mode):
        given, options = self.non_trainables[place], {"key": None, "inference_mode": inference_mode, **inputs}
        if wants(self.layer._keyed.get(place), inference_mode):
            options["key"] = self.keys.pop(place) if place in self.keys else self.next_key()
        inside = self.inside
        captures = self.found is not None and not (inside and self.wanted == "")  # outputs are left out there
        given = Captured(given, {}, self.wanted) if captures else given
        y, updated = apply(layer, place, method, x, self.trainables[place], given, **options)
        if not inside:  # what comes out in there is not of this trace, and in inference as it was
            self.non_trainables[place] = updated.tree if captures else updated
        self.lost = captures and inside and ", ".join(sorted({repr(name) for _, name in updated.found}))
        if captures and not inside:
            self.add(place, place, updated.found)
        return y


class Outline(Forward):
    """Phase one of ``init``: which shapes each child is given."""

    def __init__(self, layer, records, path, key):
        Run.__init__(self, layer)
        self.records, self.path, self.spare = records, path, key
        self.trainables, self.non_trainables = {}, {}

    def apply(self, place, layer, method, x, inputs, inference_mode):
        # Shapes are all that outlives the trace of a call: the numbers do not count, and keys may be used again.
        variables = self.trainables, self.non_trainables
        if place in self.trainables:
            for role in variables:
                role[place] = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), role[place])
            y = super().apply(place, layer, method, x, inputs, inference_mode)
        elif method != "fwd":
            layer.refuse(f"{method} comes before the layer itself is called: its sizes are unknown yet.")
        else:
            y, *made = layer._outline(self.records, self.path + place, self.spare, x, **inputs)
            self.trainables[place], self.non_trainables[place] = made
        for role in variables:
            role[place] = jax.tree.map(abstract, role[place])
        return y

    def next_key(self):
        return self.spare


class Decode(Run):
    """``decode``: in inference, with a cache."""

    inference_mode = True

    def __init__(self, layer, trainables, non_trainables, cache, place):
        super().__init__(layer, trainables=trainables, non_trainables=non_trainables, cache=cache)
        self.used, self.place = set(), place

    def keeps(self, place, inference_mode):
        return super().keeps(place, True) or (jax.tree.leaves(self.cache[place]) and "updates its cache")

    def apply(self, place, layer, method, x, inputs, inference_mode):
        variables = self.trainables[place], self.non_trainables[place]
        if method != "fwd" or place not in self.layer._stepwise:
            return getattr(layer, method)(x, *variables, inference_mode=True, **inputs)[0]
        if place in self.used and jax.tree.leaves(self.cache[place]):
            layer.refuse("is called twice, but has one cache: make it two layers to decode.")
        self.used.add(place)
        result = layer.decode(x, *variables, self.cache[place], **inputs)
        y, self.cache[place] = layer.check_pair("decode", result)
        return y
