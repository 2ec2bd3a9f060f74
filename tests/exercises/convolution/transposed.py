"""Answers to the exercise convolution.transposed."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.convolution.transposed import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)
NUMBERS = ("NHWC", "HWIO", "NHWC")


def convolve(x, kernel, stride):
    return lax.conv_general_dilated(x, kernel, (stride, stride), "VALID", dimension_numbers=NUMBERS)


def to_shape(x, shape):
    return jnp.pad(x, [(0, wanted - size) for size, wanted in zip(x.shape, shape)])


@answers.wrong("rotated by 180 degrees")
def plain_call(y, kernel, stride, shape):
    x = lax.conv_transpose(y, kernel.swapaxes(2, 3), (stride, stride), "VALID", dimension_numbers=NUMBERS)
    return to_shape(x, shape)


@answers.wrong("leaves some inputs out at the end")
def too_small(y, kernel, stride, shape):
    return lax.conv_transpose(y, kernel, (stride, stride), "VALID", dimension_numbers=NUMBERS, transpose_kernel=True)  # fmt: skip


@answers.wrong("Unpack it")
def tuple_of_one(y, kernel, stride, shape):
    return jax.vjp(lambda x: convolve(x, kernel, stride), jnp.zeros(shape, y.dtype))[1](y)


@answers.wrong("it does not average")
def averages(y, kernel, stride, shape):
    return tuple_of_one(y, kernel, stride, shape)[0] / stride**2


@answers.wrong("`return` missing")
def no_return(y, kernel, stride, shape):
    jax.linear_transpose(lambda x: convolve(x, kernel, stride), jax.ShapeDtypeStruct(shape, y.dtype))(y)


@answers.wrong()
def the_kernel_s_gradient(y, kernel, stride, shape):
    return jax.vjp(lambda k: convolve(jnp.ones(shape), k, stride), kernel)[1](y)[0]


@answers.wrong()
def first_stride_only(y, kernel, stride, shape):
    x = jax.image.resize(y, (shape[0], shape[1], shape[2], y.shape[-1]), "nearest")
    return convolve(
        jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), kernel[::-1, ::-1].swapaxes(2, 3), 1
    ).astype(y.dtype)


@answers.wrong()
def always_two(y, kernel, stride, shape):
    return tuple_of_one(y, kernel, 2, shape)[0]


@answers.wrong("No gradient reaches `kernel`")
def kernel_fixed(y, kernel, stride, shape):
    return tuple_of_one(y, lax.stop_gradient(kernel), stride, shape)[0]


@answers.wrong("No gradient reaches `y`")
def y_fixed(y, kernel, stride, shape):
    return tuple_of_one(lax.stop_gradient(y), kernel, stride, shape)[0]


@answers.wrong("Under `jax.grad`")
def through_numpy(y, kernel, stride, shape):
    return jnp.asarray(np.asarray(tuple_of_one(y, kernel, stride, shape)[0]))


@answers.right
def by_lhs_dilation(y, kernel, stride, shape):
    last = len(kernel) - 1
    pads = [(last, shape[axis] - (y.shape[axis] - 1) * stride - 1) for axis in (1, 2)]
    turned = kernel[::-1, ::-1].swapaxes(2, 3)
    return lax.conv_general_dilated(
        y, turned, (1, 1), pads, lhs_dilation=(stride, stride), dimension_numbers=NUMBERS
    )


@answers.right
def by_vjp(y, kernel, stride, shape):
    _, pullback = jax.vjp(lambda x: convolve(x, kernel, stride), jnp.zeros(shape, y.dtype))
    return pullback(y)[0]


@answers.right
def by_grad(y, kernel, stride, shape):
    return jax.grad(lambda x: jnp.vdot(convolve(x, kernel, stride), y))(jnp.zeros(shape, y.dtype))


@answers.wrong("With a window of 2 and a stride of 3 it raises")
def by_the_call(y, kernel, stride, shape):
    return to_shape(too_small(y, kernel, stride, shape), shape)


@answers.right
def by_the_call_cut(y, kernel, stride, shape):
    x = too_small(y, kernel, stride, shape)[:, : shape[1], : shape[2]]
    return to_shape(x, shape)


@answers.right
def by_dilated_zeros(y, kernel, stride, shape):
    spread = jnp.zeros((y.shape[0], *shape[1:3], y.shape[-1]), y.dtype)
    _, rows, columns, _ = y.shape
    spread = spread.at[:, : rows * stride : stride, : columns * stride : stride].set(y)
    last = len(kernel) - 1
    padded = jnp.pad(spread, ((0, 0), (last, 0), (last, 0), (0, 0)))
    return convolve(padded, kernel[::-1, ::-1].swapaxes(2, 3), 1)


@answers.right
@functools.partial(jax.jit, static_argnums=(2, 3))
def jitted(y, kernel, stride, shape):
    return by_vjp(y, kernel, stride, shape)


@answers.right
def by_copies(y, kernel, stride, shape):
    x, size = jnp.zeros(shape, y.dtype), kernel.shape[0]
    _, rows, columns, _ = y.shape
    for i in range(size):
        for j in range(size):
            rows_of, columns_of = jnp.arange(rows) * stride + i, jnp.arange(columns) * stride + j
            x = x.at[:, rows_of[:, None], columns_of].add(y @ kernel[i, j].T)
    return x
