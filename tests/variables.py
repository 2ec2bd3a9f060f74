"""Variables of a layer that are of no particular numbers."""

import jax
import numpy as np


def any_variables(layer, x, **inputs):
    """The trees that ``init`` makes, filled by NumPy: to draw them takes the compiler longer than most tests."""
    types = jax.eval_shape(layer.init, jax.random.key(0), x, **inputs)
    draw = np.random.default_rng(0)
    return jax.tree.map(
        lambda leaf: jax.device_put(draw.uniform(0.2, 1.0, leaf.shape).astype(leaf.dtype)), types
    )
