"""What optimizers are made of: running averages of gradients, how they begin, go on and are stored; and the descent."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.numeric import accumulator


def zeros(trainables: Any, dtype: Any = None, wide: bool = False) -> Any:
    """Zeros of the shapes and the sharding of the trainables.

    Their dtype is ``dtype``, or else that of each weight, which ``wide`` makes at least float32.
    """

    def one(weight):
        return jnp.zeros_like(weight, dtype or (accumulator(weight.dtype) if wide else weight.dtype))

    return jax.tree.map(one, trainables)


def average(decay, trainables: Any, moments: Any, gradients: Any) -> Any:
    r"""Exponential moving averages, :math:`m \leftarrow \beta m + (1 - \beta) g`, not yet rounded for the state."""
    return jax.tree.map(functools.partial(_average, decay), trainables, moments, gradients)


def average_squares(decay, trainables: Any, moments: Any, gradients: Any) -> Any:
    r"""The same of squares: :math:`v \leftarrow \beta v + (1 - \beta) g^2`."""
    return jax.tree.map(functools.partial(_average, decay, power=2), trainables, moments, gradients)


def bias_correction(decay, count) -> jax.Array:
    r"""What an average that began at zero must be divided by: :math:`1 - \beta^t`, a float32 scalar.

    In this form, which does not subtract nearly equal numbers: for :math:`\beta = 0.999` and small :math:`t`, the difference
    would have three good digits in float32.
    """
    return -jnp.expm1(count.astype(jnp.float32) * jnp.log1p(decay - 1))


def stored(new: Any, old: Any) -> Any:
    """What a step made, rounded to the dtypes of the state."""
    return jax.tree.map(lambda new, old: new.astype(old.dtype), new, old)


def root(second, epsilon, inside: bool):
    """The root of a second moment, kept from zero by ``epsilon``."""
    return jnp.sqrt(second + epsilon) if inside else jnp.sqrt(second) + epsilon


def descend(learning_rate, trainables: Any, directions: Any) -> Any:
    """The updates: against the directions, by the learning rate; at least float32."""

    def one(weight, direction):
        dtype = accumulator(weight.dtype)
        return -learning_rate.astype(dtype) * direction.astype(dtype)

    return jax.tree.map(one, trainables, directions)


def _average(decay, weight, moment, gradient, power=1):
    dtype = accumulator(weight.dtype)
    decay, moment, gradient = decay.astype(dtype), moment.astype(dtype), gradient.astype(dtype)
    return decay * moment + (1 - decay) * (gradient if power == 1 else jnp.square(gradient))
