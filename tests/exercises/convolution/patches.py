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


@answers.wrong("rotates the kernel")
class TurnedRound(Right):
    def output(self, x, kernel):
        return super().output(x, kernel[::-1, ::-1])


@answers.wrong("should have the shape (2, 2, 2, 3)")
class OutputsFirst(Right):
    def init(self, key, x):
        return {"kernel": draw(key, (self.out_channels, self.size, self.size, x.shape[-1]), x.dtype)}, ()


@answers.wrong("should have a standard deviation of")
class DrawnElsewhere(Right):
    def init(self, key, x):
        shape = (self.out_channels, self.size, self.size, x.shape[-1])
        return {"kernel": draw(key, shape, x.dtype).transpose(1, 2, 3, 0) * 3}, ()


@answers.wrong("*weights of another dtype*")
class Promotes(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.output(x, trainables["kernel"]), non_trainables


# Wrong ones that look right


@answers.wrong("should have a standard deviation of")
class DrawnForTheOutputs(Right):  # another number of inputs, hidden by the shape
    def init(self, key, x):
        shape = (self.out_channels, x.shape[-1], self.size, self.size)
        return {"kernel": draw(key, shape, x.dtype).transpose(2, 3, 1, 0)}, ()


@answers.wrong("expected (1, 1, 1, 1)")
class Squeezed(Right):
    def output(self, x, kernel):
        return jnp.squeeze(super().output(x, kernel))


@answers.wrong("No gradient reaches `x`")
class StopsTheGradient(Right):
    def output(self, x, kernel):
        return super().output(lax.stop_gradient(x), kernel)


@answers.wrong("this asks for `conv_general_dilated`")
class ThePatchesCall(Right):
    def output(self, x, kernel):
        windows = lax.conv_general_dilated_patches(
            x.reshape(-1, *x.shape[-3:]), (self.size,) * 2, (1, 1), "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip
        y = windows @ kernel.transpose(2, 0, 1, 3).reshape(-1, self.out_channels)
        return y.reshape(*x.shape[:-3], *y.shape[1:])


@answers.wrong()
class HeightForWidth(Right):
    def taps(self, x):
        height = x.shape[-3] - self.size + 1
        places = [(i, j) for i in range(self.size) for j in range(self.size)]
        return [x[..., i : i + height, j : j + height, :] for i, j in places]


@answers.wrong()
class OneBatchAxis(Right):
    def taps(self, x):
        height, width = x.shape[1] - self.size + 1, x.shape[2] - self.size + 1
        places = [(i, j) for i in range(self.size) for j in range(self.size)]
        return [x[:, i : i + height, j : j + width] for i, j in places]


@answers.wrong("*dtype outside*")
class AlwaysFloat32(Right):
    def init(self, key, x):
        return {"kernel": draw(key, (self.size, self.size, x.shape[-1], self.out_channels))}, ()


# Right ones of unusual style


@answers.right
class ByScan(Right):
    def output(self, x, kernel):
        height, width = x.shape[-3] - self.size + 1, x.shape[-2] - self.size + 1

        def add(y, place):
            i, j = place // self.size, place % self.size
            rows = lax.dynamic_slice_in_dim(x, i, height, x.ndim - 3)
            return y + lax.dynamic_slice_in_dim(rows, j, width, x.ndim - 2) @ kernel[i, j], None

        y = jnp.zeros((*x.shape[:-3], height, width, self.out_channels), x.dtype)
        return lax.scan(add, y, jnp.arange(self.size**2))[0]


@answers.right
class ByVmap(Right):
    def output(self, x, kernel):
        height, width = x.shape[-3] - self.size + 1, x.shape[-2] - self.size + 1

        def image(x):
            def at(i, j):
                return jnp.tensordot(
                    lax.dynamic_slice(x, (i, j, 0), (*kernel.shape[:2], x.shape[-1])), kernel, 3
                )

            return jax.vmap(jax.vmap(at, (None, 0)), (0, None))(jnp.arange(height), jnp.arange(width))

        for _ in x.shape[:-3]:
            image = jax.vmap(image)
        return image(x)


@answers.right
class SumOfProducts(Right):
    def output(self, x, kernel):
        weights = kernel.reshape(-1, *kernel.shape[2:])
        return sum(tap @ weight for tap, weight in zip(self.taps(x), weights))


@answers.right
class Rolled(Right):
    def output(self, x, kernel):
        height, width = x.shape[-3] - self.size + 1, x.shape[-2] - self.size + 1
        y = 0
        for i in range(self.size):
            for j in range(self.size):
                y = y + jnp.roll(x, (-i, -j), (-3, -2)) @ kernel[i, j]
        return y[..., :height, :width, :]


@answers.right
class SumsInFloat32(Right):
    def output(self, x, kernel):
        windows, rows = jnp.concatenate(self.taps(x), -1), kernel.reshape(-1, self.out_channels)
        wide = jnp.promote_types(x.dtype, jnp.float32)
        return jnp.matmul(windows, rows, preferred_element_type=wide).astype(x.dtype)


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
