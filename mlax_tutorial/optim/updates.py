"""``apply_updates``: add what an optimizer returned."""

from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.optim.optimizer import accumulator


def apply_updates(trainables: Any, updates: Any) -> Any:
    """Add ``updates`` to ``trainables``; pure. Works with the updates of any Optax optimizer, too.

    The sum is formed in float32 where the weights are of half precision, and rounded once.

    Args:
      trainables: the weights.
      updates: a tree of the same structure and shapes.

    Returns:
      The new weights, in the dtypes of the old.

    Raises:
      ValueError: if the structures differ.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optim.apply_updates({"bias": jnp.ones(2)}, {"bias": jnp.array([0.5, -0.5])})
      {'bias': Array([1.5, 0.5], dtype=float32)}
    """

    def add(weight, update):
        dtype = accumulator(weight.dtype)
        return (weight.astype(dtype) + jnp.asarray(update, dtype)).astype(weight.dtype)

    return jax.tree.map(add, trainables, updates)
