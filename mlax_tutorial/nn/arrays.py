"""Arrays, numbers and dtypes: what layers and optimizers must decide alike."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.dtypes import canonicalize_dtype


def accumulator(dtype) -> Any:
    """The dtype in which sums and updates over ``dtype`` are formed by default: at least float32.

    >>> import jax.numpy as jnp
    >>> accumulator(jnp.bfloat16).name, accumulator(jnp.float64).name
    ('float32', 'float64')
    """
    return jnp.dtype("float32") if jnp.finfo(dtype).bits < 32 else jnp.dtype(dtype)


def real(value) -> float:
    """One real number, written in any way, as a Python ``float``.

    Raises:
      ValueError: on what ``float`` would take and nobody means: a bool, text, a complex number, an array with
        axes; and on what is no number, a traced value, say, or too large for one.

    >>> import numpy as np
    >>> real(1), real(np.float32(0.5))
    (1.0, 0.5)
    """
    dtype = getattr(value, "dtype", None)
    if isinstance(value, (bool, str, bytes)) or np.ndim(value) or (dtype is not None and not is_real(dtype)):
        raise ValueError("not one real number")
    try:
        return float(value)
    except (TypeError, OverflowError):
        raise ValueError("not a number") from None


def canonical(tree: Any) -> Any:
    """NumPy's arrays in a tree as JAX's, and outlines likewise, of a dtype that JAX has: a float64 is a float32, but under x64.

    ``astype`` and the like would warn of it. All else stays as it is.

    >>> import numpy as np
    >>> canonical((np.ones(2), "text"))
    (Array([1., 1.], dtype=float32), 'text')
    """

    def one(leaf):
        if isinstance(leaf, jax.ShapeDtypeStruct) and leaf.dtype == np.float64:
            return jax.ShapeDtypeStruct(leaf.shape, canonicalize_dtype(leaf.dtype), sharding=leaf.sharding)
        return jnp.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf

    return jax.tree.map(one, tree)


def varying_like(tree: Any, *others: Any) -> Any:
    """``tree`` itself; but inside ``jax.shard_map``, varying over all axes of the mesh over which something of ``others`` varies.

    What a scan carries must do so from the start, and not only once it has met the weights.
    """
    if not jax.sharding.get_abstract_mesh().manual_axes:
        return tree

    def one(leaf):
        for other in jax.tree.leaves(others):
            leaf = leaf + lax.full_like(other, 0, leaf.dtype, leaf.shape)
        return leaf

    return jax.tree.map(one, tree)


def steps(x: Any) -> tuple[int, ...]:
    """The shape of the steps that ``x`` holds, ``(..., length)``: integers are ids, all else has features besides.

    >>> import jax.numpy as jnp
    >>> steps(jnp.ones((2, 5), int)), steps(jnp.ones((2, 5, 8)))
    ((2, 5), (2, 5))
    """
    x = jax.tree.leaves(x)[0]
    return x.shape if jnp.issubdtype(x.dtype, jnp.integer) else x.shape[:-1]


def is_real(dtype) -> bool:
    """Whether numbers of ``dtype`` are real: integers or floating-point, neither bool nor complex nor keys."""
    return jnp.issubdtype(dtype, jnp.integer) or jnp.issubdtype(dtype, jnp.floating)


def is_array(leaf) -> bool:
    """Whether ``leaf`` is an array, or the outline of one."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def is_key(leaf) -> bool:
    """Whether ``leaf`` is an array of typed random keys, or the outline of one."""
    return is_array(leaf) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_bits(leaf):
    """Typed random keys as their bits, which are numbers; anything else as it is."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def is_floating(leaf) -> bool:
    """Whether ``leaf`` is an array, or the outline of one, of floating-point numbers."""
    return is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating)


def is_integer(leaf) -> bool:
    """Whether ``leaf`` is an array, or the outline of one, of integers."""
    return is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.integer)
