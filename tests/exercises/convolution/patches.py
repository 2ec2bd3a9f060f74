"""Answers to the exercise convolution.patches."""

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial import nn
from mlax_tutorial.exercises.convolution.patches import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)
draw = jax.nn.initializers.lecun_normal()


class Right(nn.Layer):
    out_channels: int
    size: int

    def init(self, key, x):
        return {"kernel": draw(key, (self.size, self.size, x.shape[-1], self.out_channels), x.dtype)}, ()

    def taps(self, x):
        height, width = x.shape[-3] - self.size + 1, x.shape[-2] - self.size + 1
        places = [(i, j) for i in range(self.size) for j in range(self.size)]
        return [x[..., i : i + height, j : j + width, :] for i, j in places]

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.output(x, trainables["kernel"].astype(x.dtype)), non_trainables

    def output(self, x, kernel):
        return jnp.concatenate(self.taps(x), axis=-1) @ kernel.reshape(-1, self.out_channels)


@answers.wrong("this asks for `conv_general_dilated`")
class TheCall(Right):
    def output(self, x, kernel):
        y = lax.conv_general_dilated(
            x.reshape(-1, *x.shape[-3:]), kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return y.reshape(*x.shape[:-3], *y.shape[1:])


@answers.wrong("another order than those of the kernel")
class Stacked(Right):
    def output(self, x, kernel):
        stacked = jnp.stack(self.taps(x), axis=-1)
        return stacked.reshape(*stacked.shape[:-2], -1) @ kernel.reshape(-1, self.out_channels)


@answers.wrong("no padding is wanted")
class Padded(Right):
    def output(self, x, kernel):
        rim = [(0, 0)] * (x.ndim - 3) + [(0, self.size - 1)] * 2 + [(0, 0)]
        return super().output(jnp.pad(x, rim), kernel)


@answers.wrong("Rows and columns of the window are swapped")
class ColumnsFirst(Right):
    def output(self, x, kernel):
        return super().output(x, kernel.swapaxes(0, 1))


@answers.wrong("turns the kernel round")
class TurnedRound(Right):
    def output(self, x, kernel):
        return super().output(x, kernel[::-1, ::-1])


@answers.wrong("should have the shape (2, 2, 2, 3)")
class OutputsFirst(Right):
    def init(self, key, x):
        return {"kernel": draw(key, (self.out_channels, self.size, self.size, x.shape[-1]), x.dtype)}, ()


@answers.wrong("The variance of the kernel is")
class DrawnElsewhere(Right):
    def init(self, key, x):
        shape = (self.out_channels, self.size, self.size, x.shape[-1])
        return {"kernel": draw(key, shape, x.dtype).transpose(1, 2, 3, 0) * 3}, ()


@answers.wrong("*weights of another dtype*")
class Promotes(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.output(x, trainables["kernel"]), non_trainables


# Wrong ones that look right


@answers.wrong()
class OneBatchAxis(Right):
    def taps(self, x):
        height, width = x.shape[1] - self.size + 1, x.shape[2] - self.size + 1
        places = [(i, j) for i in range(self.size) for j in range(self.size)]
        return [x[:, i : i + height, j : j + width] for i, j in places]


# Right ones of unusual style


@answers.right
class SumOfProducts(Right):
    def output(self, x, kernel):
        weights = kernel.reshape(-1, *kernel.shape[2:])
        return sum(tap @ weight for tap, weight in zip(self.taps(x), weights))


@answers.right
class ByEinsum(Right):
    def output(self, x, kernel):
        return jnp.einsum("t...i,tio->...o", jnp.stack(self.taps(x)), kernel.reshape(-1, *kernel.shape[2:]))


@answers.right
@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class WithoutTheBase:
    out_channels: int
    size: int

    def init(self, key, x):
        kernel = draw(key, (self.size * self.size * x.shape[-1], self.out_channels), x.dtype)
        return {"kernel": kernel.reshape(self.size, self.size, -1, self.out_channels)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        rows = jnp.arange(x.shape[-3] - self.size + 1)[:, None] + jnp.arange(self.size)
        columns = jnp.arange(x.shape[-2] - self.size + 1)[:, None] + jnp.arange(self.size)
        windows = x[..., rows[:, None, :, None], columns[None, :, None, :], :]
        kernel = trainables["kernel"].astype(x.dtype)
        return jnp.tensordot(windows, kernel, axes=3), non_trainables
