"""``Series``: layers one after the other."""

from typing import Annotated

from mlax_tutorial.nn.composite import Composite, Container, calls_once
from mlax_tutorial.nn.hyperparameters import Canonical, hyperparameter, show
from mlax_tutorial.nn.layer import Layer, mend_layer


def child(value) -> Layer:
    """A layer."""
    if not isinstance(value, Layer):
        raise ValueError(f"must be a layer{mend_layer(value)}")
    return value


Child = Annotated[Layer, Canonical(child)]


def children(value) -> tuple[Layer, ...]:
    """A tuple of layers."""
    for index, layer in enumerate(value):
        if not isinstance(layer, Layer):
            raise ValueError(f"must all be layers, but number {index} is {show(layer)}{mend_layer(layer)}")
    return tuple(value)


class Sequence(Composite):
    """Base of :class:`Series` and :class:`Parallel`: children in a tuple, or in a dict if they have names."""

    layers: tuple[Layer, ...] = hyperparameter(children)
    names: tuple[str, ...] | None = None

    def __init__(self, /, *layers: Layer, **named: Layer):
        if isinstance(named.get("layers"), (tuple, list)):  # from dataclasses.replace
            layers, names = named["layers"], named.get("names")
            layers, named = ((), dict(zip(names, layers, strict=True))) if names else (layers, {})
        if layers and named:
            message = f"name all layers or none, got {len(layers)} without a name"
            raise ValueError(f"{type(self).__name__}: {message}.")
        vars(self).update(layers=layers or tuple(named.values()), names=tuple(named) or None)
        self.__post_init__()

    def _children(self):
        return dict(zip(self.names, self.layers)) if self.names else self.layers

    def __getitem__(self, index):
        if isinstance(index, str) and index not in (self.names or ()):
            known = ", ".join(self.names) if self.names else "none, only places: [0]"
            raise KeyError(f"{type(self).__name__} has no layer {index!r}; its names are {known}")
        some = self._tree[index] if isinstance(index, str) else self.layers[index]
        if not isinstance(index, slice):
            return some
        return type(self)(**dict(zip(self.names[index], some))) if self.names else type(self)(*some)

    def __len__(self):
        return len(self.layers)

    def __repr__(self):
        shown = map(repr, self.layers)
        if self.names:
            shown = map("{}={}".format, self.names, shown)
        return f"{type(self).__name__}({', '.join(shown)})"


class Series(Sequence):
    """Apply layers one after the other; the output of each is the input of the next.

    The trainables are a tuple, one entry a layer, ``()`` where a layer has none; likewise the non-trainables.
    If no layer has any, the whole is ``()``. So ``trainables[3]`` belongs to ``model[3]``. Layers that are given
    by name make a dict: ``trainables["head"]`` belongs to ``model["head"]``. One object in two places is two layers, with
    weights of their own.

    Keys go to the layers that need one, each its own by ``jax.random.split``. Further inputs go to the
    layers that take an input of that name.

    Args:
      *layers: the layers. Indexing and slicing work: ``model[3]``, ``model[:2]``.
      **named: instead, layers with names, in the order in which they apply.

    Raises:
      LayerError: on trainables of another model, on an input that no layer takes, and whatever a layer
        finds wrong, with its place in front: ``model[3].Linear: …``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, x = nn.Series(nn.Linear(8), nn.Bias(), nn.F(jax.nn.relu), nn.Linear(2)), jnp.ones((5, 4))
      >>> trainables, non_trainables = model.init(jax.random.key(0), x)
      >>> jax.tree.map(jnp.shape, trainables)
      ({'kernel': (4, 8)}, {'bias': (8,)}, (), {'kernel': (8, 2)})
      >>> model.fwd(x, trainables, non_trainables)[0].shape
      (5, 2)
      >>> nn.Series(body=model[:3], head=nn.Linear(2))["head"]
      Linear(2)
    """

    decodes = Container.decodes

    @calls_once
    def forward(self, call, x, **inputs):
        for layer in call:
            x = layer(x, **layer.takes(inputs))
        return x
