"""``Series``: layers one after the other; ``Parallel`` and ``Residual``: layers side by side."""

from typing import Annotated

import jax.numpy as jnp

from mlax_tutorial.nn.composite import Composite, Container, calls_once
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import Canonical, hyperparameter, show
from mlax_tutorial.nn.layer import Layer, abstract, mend_layer
from mlax_tutorial.nn.places import change


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

    def with_children(self, function):
        tree = change(self._tree, function)
        return self._rebuilt(layers=tuple(tree.values()) if self.names else tree)

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

    def _shown(self):
        return map("{}={!r}".format, self.names, self.layers) if self.names else map(repr, self.layers)


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


class Parallel(Sequence):
    """Apply layers to the same input; the outputs are a tuple, ``(y_0, y_1, …)``.

    Variables, keys and further inputs are as in :class:`Series`. An :class:`F` after it puts the outputs together.

    Args:
      *layers: the layers. Indexing and slicing work.
      **named: instead, layers with names; the outputs are a tuple all the same.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> branches = nn.Parallel(nn.Linear(2), nn.Linear(3))
      >>> model, x = nn.Series(branches, nn.F(lambda ys: jnp.concatenate(ys, axis=-1))), jnp.ones((5, 4))
      >>> model.fwd(x, *model.init(jax.random.key(0), x))[0].shape
      (5, 5)
    """

    decodes = Container.decodes

    @calls_once
    def forward(self, call, x, **inputs):
        return tuple(layer(x, **layer.takes(inputs)) for layer in call)


class Residual(Composite):
    """Add what a layer makes of the input to the input itself, :math:`y = x + f(x)`; shape ``(…) -> (…)``.

    Args:
      layer: the function :math:`f`; several layers make one by :class:`Series`.
      shortcut: what to make of the input before it is added, where :math:`f` changes its shape, for instance a
        ``Linear``; by default nothing.

    Raises:
      LayerError: if the two that are to be added differ in shape or dtype.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, x = nn.Residual(nn.F(jnp.sin)), jnp.zeros(3)
      >>> model.fwd(x, *model.init(jax.random.key(0), x))[0]
      Array([0., 0., 0.], dtype=float32)

    Reference: He, Zhang, Ren and Sun, *Deep Residual Learning for Image Recognition* (2016).
    """

    layer: Child
    shortcut: Child | None = None
    decodes = Container.decodes

    @calls_once
    def forward(self, call, x, **inputs):
        y = call.layer(x, **call.layer.takes(inputs))
        if self.shortcut is not None:
            x = call.shortcut(x, **call.shortcut.takes(inputs))
        self._check_alike(y, x)
        return jnp.asarray(x) + jnp.asarray(y)

    def _check_alike(self, y, x):
        self.check_array(y)
        self.check_array(x)
        if abstract(x) != abstract(y):
            mend = "let the layer keep the shape, or give a shortcut that changes it likewise"
            self.refuse(f"layer and shortcut must agree, got {describe(y)} and {describe(x)}: {mend}.")
