"""What optimizers are made of: running averages of gradients, how they begin, go on and are stored.

What is not a state here, gradients and directions, is at least float32 (:func:`wide`), and so is the arithmetic. A number is
cast once for all weights of a dtype (:func:`scalar`): cast for each, it takes a third of the time to trace.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import accumulator


def scalar(number: Any) -> Callable[[Any], jax.Array]:
    """A function from a dtype to ``number`` as a scalar of it."""
    return functools.cache(lambda dtype: jnp.asarray(number, dtype))


def cast(leaf: Any, dtype: Any) -> jax.Array:
    """An array of that dtype, or of JAX's for it. What is one already costs nothing to trace."""
    done = isinstance(leaf, jax.Array) and leaf.dtype == dtype
    return leaf if done else jnp.asarray(leaf, jax.dtypes.canonicalize_dtype(dtype))


def zeros(trainables: Any, dtype: Any = None, real: bool = False) -> Any:
    """Zeros of the shapes and the sharding of the trainables, of ``dtype``, or else of theirs, but at least float32."""

    def one(weight):
        found = jax.dtypes.canonicalize_dtype(dtype or accumulator(weight.dtype))
        return jnp.zeros_like(weight, jnp.finfo(found).dtype if real else found)  # of complex64, float32

    return jax.tree.map(one, trainables)


def wide(trainables: Any, tree: Any) -> Any:
    """A tree like the trainables in the dtypes of theirs, but at least float32."""
    return jax.tree.map(lambda weight, leaf: cast(leaf, accumulator(weight.dtype)), trainables, tree)


def average(decay: Any, old: Any, new: Any) -> Any:
    r"""Exponential moving averages, :math:`a \leftarrow \beta a + (1 - \beta) x`, in the dtypes of ``new``."""
    kept = scalar(decay)
    added = functools.cache(lambda dtype: 1 - kept(dtype))
    return jax.tree.map(lambda a, x: kept(x.dtype) * cast(a, x.dtype) + added(x.dtype) * x, old, new)


def summed(kept: Any, old: Any, new: Any) -> Any:
    r"""Sums that go on, such as a velocity, :math:`\mu v + d`, in the dtypes of ``new``. If ``kept`` is ``None``, it is ``new`` alone."""
    if kept is None:
        return new
    kept = scalar(kept)
    return jax.tree.map(lambda a, x: kept(x.dtype) * cast(a, x.dtype) + x, old, new)


def scaled(factor: Any, tree: Any) -> Any:
    """Each leaf times ``factor``."""
    factor = scalar(factor)
    return jax.tree.map(lambda leaf: factor(leaf.dtype) * leaf, tree)


def squares(gradients: Any) -> Any:
    """The square of each number; of a complex one, that of its absolute value."""
    return jax.tree.map(lambda g: jnp.square(jnp.abs(g) if jnp.iscomplexobj(g) else g), gradients)


def bias_correction(decay: Any, count: Any) -> jax.Array:
    r"""What an average that began at zero must be divided by: :math:`1 - \beta^t`, a float32 scalar.

    In this form the power is not rounded before it is subtracted from 1. It gains less than a digit: the error that
    remains is that of :math:`\beta` itself, as float32 stores it.
    """
    return _correction(decay, count.astype(jnp.float32))


@jax.custom_jvp
def _correction(decay, count):
    return -jnp.expm1(count * jnp.log1p(decay - 1))


@_correction.defjvp
def _(primals, tangents):
    """By hand, since the logarithm of a decay of 0 has no derivative."""
    decay, count = primals
    return _correction(*primals), -count * decay ** jnp.maximum(count - 1, 0) * tangents[0]


def corrected(decay: Any, count: Any, averages: Any) -> Any:
    """Averages of ``count`` steps, freed from the zero that they began at."""
    correction = scalar(bias_correction(decay, count))
    return jax.tree.map(lambda average: average / correction(average.dtype), averages)


def normalized(directions: Any, squares: Any, epsilon: Any, inside: bool) -> Any:
    """Directions divided by the roots of ``squares``, which ``epsilon`` keeps from zero."""
    epsilon = scalar(epsilon)

    def root(square):
        keep = epsilon(square.dtype)
        return jnp.sqrt(square + keep) if inside else jnp.sqrt(square) + keep

    return jax.tree.map(lambda d, square: d / cast(root(square), d.dtype), directions, squares)


def stored(new: Any, old: Any) -> Any:
    """The state that a step made, rounded to the dtypes of the old one."""
    return jax.tree.map(lambda new, old: cast(new, old.dtype), new, old)
