"""``summary``: what a model holds, as a table."""

import math
from typing import Any, NamedTuple

import jax

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.layer import Layer, abstract
from mlax_tutorial.tables import Table


class Row(NamedTuple):
    """One array of a model."""

    path: str
    role: str
    shape: tuple[int, ...]
    dtype: str
    parameters: int
    bytes: int


class Summary(Table):
    """The arrays of a model, one :class:`Row` each; prints as a table, in a notebook as an HTML one."""

    _row, _caption, _style = Row, "Arrays of the model", "nn-summary"

    @property
    def parameters(self) -> int:
        """Number of trainable scalars."""
        return sum(row.parameters for row in self.rows if row.role == "trainable")


def summary(model: Layer, x: Any, **inputs) -> Summary:
    """Tabulate what ``model.init`` makes for an input like ``x``; nothing is computed or stored.

    Args:
      model: any layer.
      x: an array or a ``jax.ShapeDtypeStruct``.
      **inputs: the further inputs, if the model takes any.

    Returns:
      A :class:`Summary`: per array its path, role, shape, dtype, number of parameters and bytes.

    Raises:
      LayerError: if ``x`` is no array (a shape alone, say), and whatever ``init`` finds wrong.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> nn.summary(nn.Series(nn.Linear(3), nn.Bias()), jax.ShapeDtypeStruct((1, 4), jnp.float32))
      path           role       shape   dtype    parameters  bytes
      ------------------------------------------------------------
      [0]['kernel']  trainable  (4, 3)  float32          12     48
      [1]['bias']    trainable  (3,)    float32           3     12
      ------------------------------------------------------------
      total                                              15     60
    """
    if not isinstance(model, Layer):
        raise TypeError(f"summary: model must be a layer, got {describe(model)}: summary(model, x).")
    model.check_inputs(x, inputs)
    key, specs = jax.eval_shape(lambda: jax.random.key(0)), jax.tree.map(abstract, (x, inputs))
    variables = jax.eval_shape(lambda key, x, inputs: model.init(key, x, **inputs), key, *specs)
    rows = []
    for role, tree in zip(("trainable", "non-trainable"), variables):
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            size = math.prod(leaf.shape)
            where = jax.tree_util.keystr(path)
            rows.append(Row(where, role, leaf.shape, str(leaf.dtype), size, size * leaf.dtype.itemsize))
    return Summary(tuple(rows))
