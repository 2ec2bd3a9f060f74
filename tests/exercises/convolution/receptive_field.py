"""Answers to the exercise convolution.receptive_field."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.convolution.receptive_field import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("This adds the sizes")
def adds(layers):
    return sum(size for size, _, _ in layers)


@answers.wrong("This multiplies the sizes")
def multiplies(layers):
    return math.prod(size for size, _, _ in layers)


@answers.wrong("leaves the strides out")
def no_strides(layers):
    return 1 + sum(dilation * (size - 1) for size, _, dilation in layers)


@answers.wrong("leaves the dilation out")
def no_dilation(layers):
    field = apart = 1
    for size, stride, _ in layers:
        field += (size - 1) * apart
        apart *= stride
    return field


@answers.wrong("own stride does not widen its own window")
def own_stride(layers):
    field = apart = 1
    for size, stride, dilation in layers:
        apart *= stride
        field += dilation * (size - 1) * apart
    return field


@answers.wrong("in the wrong order")
def backwards(layers):
    field = apart = 1
    for size, stride, dilation in reversed(layers):
        field += dilation * (size - 1) * apart
        apart *= stride
    return field


@answers.wrong("Strides multiply")
def last_stride(layers):
    field = before = 1
    for size, stride, dilation in layers:
        field += dilation * (size - 1) * before
        before = stride
    return field


@answers.wrong("an output is the input")
def needs_one(layers):
    if not layers:
        return 0
    field = apart = 1
    for size, stride, dilation in layers:
        field += dilation * (size - 1) * apart
        apart *= stride
    return field


@answers.wrong("One integer is asked for")
def a_pair(layers):
    return no_strides(layers), 1


@answers.wrong("One integer is asked for")
def an_array(layers):
    return jnp.asarray(from_the_end(layers))


@answers.wrong("changes the list")
def empties_the_list(layers):
    field = 1
    while layers:
        size, stride, dilation = layers.pop()
        field = (field - 1) * stride + dilation * (size - 1) + 1
    return field


@answers.right
def by_sets(layers):
    seen = {0}
    for size, stride, dilation in reversed(layers):
        seen = {place * stride + i * dilation for place in seen for i in range(size)}
    return max(seen) - min(seen) + 1


@answers.right
def from_the_end(layers):
    field = 1
    for size, stride, dilation in layers[::-1]:
        field = (field - 1) * stride + dilation * (size - 1) + 1
    return field


@answers.right
def recursive(layers):
    if not layers:
        return 1
    *rest, (size, _, dilation) = layers
    return recursive(rest) + dilation * (size - 1) * math.prod(stride for _, stride, _ in rest)


@answers.right
def by_gradient(layers):
    def last(x):
        for size, stride, dilation in layers:
            kernel = jnp.ones((1, 1, size)) / size
            x = lax.conv_general_dilated(x, kernel, (stride,), "VALID", rhs_dilation=(dilation,))
        return x[0, 0, 0]

    span = jnp.nonzero(jax.grad(last)(jnp.ones((1, 1, 400)))[0, 0])[0]
    return int(span[-1] - span[0]) + 1


@answers.right
def by_numpy(layers):
    strides = np.cumprod([1] + [stride for _, stride, _ in layers])
    return 1 + np.sum(
        [dilation * (size - 1) * s for (size, _, dilation), s in zip(layers, strides)], dtype=int
    )
