"""What a value is: an array, random keys, or anything else, in two words."""

import jax
import jax.numpy as jnp
import numpy as np


def is_key(value):
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def is_array(value):
    return isinstance(value, (jax.Array, np.ndarray))


def kind(value):
    """What a value is, with an article: ``a jax.Array``, ``a list``."""
    if isinstance(value, jax.core.Tracer):
        return "a tracer"
    if isinstance(value, jax.Array):
        return "a jax.Array"
    if isinstance(value, np.ndarray):
        return "a NumPy array"
    if isinstance(value, np.generic):
        return "a NumPy scalar"
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
