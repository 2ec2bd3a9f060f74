"""``Parallel`` and ``Residual``: layers side by side."""

import jax.numpy as jnp

from mlax_tutorial.nn.composite import Composite, Container, calls_once
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.layer import abstract
from mlax_tutorial.nn.series import Child, Sequence


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
