"""``apply_updates``: add what an optimizer returned."""

from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.numeric import accumulator, is_floating
from mlax_tutorial.optim.paths import check_structure, refuse_layers


def apply_updates(trainables: Any, updates: Any) -> Any:
    """Add ``updates`` to ``trainables``; pure. Works with the updates of any Optax optimizer, too.

    The sum is formed in float32 where the weights are of half precision, and rounded once.

    Args:
      trainables: the weights.
      updates: a tree of the same structure and shapes.

    Returns:
      The new weights, in the dtypes of the old.

    Raises:
      ValueError: if the structures or the shapes differ.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optim.apply_updates({"bias": jnp.ones(2)}, {"bias": jnp.array([0.5, -0.5])})
      {'bias': Array([1.5, 0.5], dtype=float32)}
    """

    refuse_layers("apply_updates", trainables)
    mend = "updates and trainables must come from one model."
    check_structure("apply_updates: updates differ from the trainables", updates, trainables, mend)

    def add(path, weight, update):
        if not is_floating(weight):
            raise ValueError(
                f"apply_updates: trainables{jax.tree_util.keystr(path)} expects an array of floating-point numbers, got "
                f"{getattr(weight, 'dtype', type(weight).__name__)}: what gradients do not flow to belongs elsewhere."
            )
        if jnp.shape(update) != weight.shape:  # they would broadcast, and the weight might grow
            raise ValueError(
                f"apply_updates: updates{jax.tree_util.keystr(path)} expects shape {weight.shape}, that of the "
                f"weight, got {jnp.shape(update)}: updates and trainables must come from one model."
            )
        dtype = accumulator(weight.dtype)
        return (weight.astype(dtype) + jnp.asarray(update, dtype)).astype(weight.dtype)

    return jax.tree_util.tree_map_with_path(add, trainables, updates)
