"""What optimizers are made of: running averages of gradients, how they begin, go on and are stored.

What is not a state here, gradients and directions, is at least float32 (:func:`wide`), and so is the arithmetic.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.numeric import accumulator


def zeros(trainables: Any, dtype: Any = None, wide: bool = False) -> Any:
    """Zeros of the shapes and the sharding of the trainables.

    Their dtype is ``dtype``, or else that of each weight, which ``wide`` makes at least float32.
    """

    def one(weight):
        return jnp.zeros_like(weight, dtype or (accumulator(weight.dtype) if wide else weight.dtype))

    return jax.tree.map(one, trainables)


def wide(trainables: Any, tree: Any) -> Any:
    """A tree like the trainables in the dtypes of theirs, but at least float32."""
    return jax.tree.map(lambda weight, leaf: jnp.asarray(leaf, accumulator(weight.dtype)), trainables, tree)


def average(decay, old: Any, new: Any) -> Any:
    r"""Exponential moving averages, :math:`a \leftarrow \beta a + (1 - \beta) x`, in the dtypes of ``new``."""

    @functools.cache
    def shares(dtype):  # once for all weights: computed for each, they take a third of the time to trace
        share = jnp.asarray(decay, dtype)
        return share, 1 - share

    def one(old, new):
        kept, added = shares(new.dtype)
        return kept * old.astype(new.dtype) + added * new

    return jax.tree.map(one, old, new)


def accelerated(momentum, velocity: Any, directions: Any) -> Any:
    r"""A velocity that goes on: :math:`\mu v + d`, in the dtypes of ``directions``."""

    def one(velocity, direction):
        return jnp.asarray(momentum, direction.dtype) * velocity.astype(direction.dtype) + direction

    return jax.tree.map(one, velocity, directions)


def bias_correction(decay, count) -> jax.Array:
    r"""What an average that began at zero must be divided by: :math:`1 - \beta^t`, a float32 scalar.

    In this form the power is not rounded before it is subtracted from 1. It gains less than a digit: the error that
    remains is that of :math:`\beta` itself, as float32 stores it.
    """
    return -jnp.expm1(count.astype(jnp.float32) * jnp.log1p(decay - 1))


def corrected(decay, count, averages: Any) -> Any:
    """Averages of ``count`` steps, freed from the zero that they began at."""
    correction = bias_correction(decay, count)
    return jax.tree.map(lambda average: average / correction.astype(average.dtype), averages)


def normalized(directions: Any, squares: Any, epsilon, inside: bool) -> Any:
    """Directions divided by the roots of ``squares``, which ``epsilon`` keeps from zero."""

    def one(direction, square):
        keep = jnp.asarray(epsilon, direction.dtype)
        return direction / (jnp.sqrt(square + keep) if inside else jnp.sqrt(square) + keep)

    return jax.tree.map(one, directions, squares)


def stored(new: Any, old: Any) -> Any:
    """The state that a step made, rounded to the dtypes of the old one."""
    return jax.tree.map(lambda new, old: new.astype(old.dtype), new, old)
