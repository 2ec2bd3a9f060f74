"""Answers to the exercise convolution.separable."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial import nn
from mlax_tutorial.exercises.convolution.separable import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)
draw = jax.nn.initializers.lecun_normal()


def convolve(x, kernel, padding="SAME", groups=1):
    y = lax.conv_general_dilated(
        x.reshape(-1, *x.shape[-3:]), kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )  # fmt: skip
    return y.reshape(*x.shape[:-3], *y.shape[1:])


class Right(nn.Layer):
    out_channels: int

    def init(self, key, x):
        first, second = jax.random.split(key)
        shapes = {"depthwise": (3, 3, 1, x.shape[-1]), "pointwise": (x.shape[-1], self.out_channels)}
        return {
            name: draw(key, shape, x.dtype) for key, (name, shape) in zip((first, second), shapes.items())
        }, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        weights = trainables["depthwise"].astype(x.dtype), trainables["pointwise"].astype(x.dtype)
        return self.output(x, *weights), non_trainables

    def output(self, x, depthwise, pointwise):
        return convolve(x, depthwise, groups=x.shape[-1]) @ pointwise


@answers.wrong("times the FLOPs")
class Dense(Right):
    def output(self, x, depthwise, pointwise):
        return convolve(x, depthwise[:, :, 0, :, None] * pointwise)


@answers.wrong("times the FLOPs")
class DiagonalKernel(Right):
    def output(self, x, depthwise, pointwise):
        diagonal = depthwise * jnp.eye(x.shape[-1], dtype=x.dtype)
        return convolve(x, diagonal) @ pointwise


@answers.wrong("The output is smaller than the input")
class Valid(Right):
    def output(self, x, depthwise, pointwise):
        return convolve(x, depthwise, "VALID", x.shape[-1]) @ pointwise


@answers.wrong("this is the pointwise product alone")
class OnlyPointwise(Right):
    def output(self, x, depthwise, pointwise):
        return x @ pointwise


@answers.wrong("There is a ReLU between")
class WithRelu(Right):
    def output(self, x, depthwise, pointwise):
        return jax.nn.relu(convolve(x, depthwise, groups=x.shape[-1])) @ pointwise


@answers.wrong("Rows and columns of the window are swapped")
class Swapped(Right):
    def output(self, x, depthwise, pointwise):
        return super().output(x, depthwise.swapaxes(0, 1), pointwise)


@answers.wrong("should have the shape (3, 3, 1, 3)")
class InputsThird(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables | {"depthwise": trainables["depthwise"].swapaxes(2, 3)}, ()


@answers.wrong("uses a key twice")
class OneKey(Right):
    def init(self, key, x):
        return {
            "depthwise": draw(key, (3, 3, 1, x.shape[-1]), x.dtype),
            "pointwise": draw(key, (x.shape[-1], self.out_channels), x.dtype),
        }, ()


@answers.wrong("uses a key twice")
class KeyUsedAndSplit(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables | {"depthwise": draw(key, (3, 3, 1, x.shape[-1]), x.dtype)}, ()


@answers.wrong("should have a standard deviation of")
class ReadsTheWrongInputs(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        depthwise = draw(jax.random.fold_in(key, 0), (3, 3, x.shape[-1], 1), x.dtype)
        return trainables | {"depthwise": depthwise.swapaxes(2, 3)}, ()


@answers.wrong("No gradient reaches `depthwise`")
class StopsTheGradient(Right):
    def output(self, x, depthwise, pointwise):
        return super().output(x, lax.stop_gradient(depthwise), pointwise)


@answers.wrong()
class WrapsAround(Right):
    def output(self, x, depthwise, pointwise):
        rim = [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)]
        padded = jnp.pad(x, rim, mode="wrap")
        return convolve(padded, depthwise, "VALID", x.shape[-1]) @ pointwise


@answers.wrong()
class OneBatchAxis(Right):
    def output(self, x, depthwise, pointwise):
        y = lax.conv_general_dilated(
            x,
            depthwise,
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=x.shape[-1],
        )
        return y @ pointwise


@answers.wrong("The output is wrong")
class RepeatsTheEdge(Right):
    def output(self, x, depthwise, pointwise):
        rim = [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)]
        return convolve(jnp.pad(x, rim, mode="edge"), depthwise, "VALID", x.shape[-1]) @ pointwise


@answers.wrong("The output is wrong")
class OneWindowForAllChannels(Right):
    def output(self, x, depthwise, pointwise):
        return super().output(x, jnp.broadcast_to(depthwise[..., :1], depthwise.shape), pointwise)


# Right ones of unusual style


@answers.right
class ByVmapOverChannels(Right):
    def output(self, x, depthwise, pointwise):
        def channel(image, kernel):
            return convolve(image[..., None], kernel[..., None])[..., 0]

        return jax.vmap(channel, (-1, -1), -1)(x, depthwise) @ pointwise


@answers.right
class NineProducts(Right):
    def output(self, x, depthwise, pointwise):
        height, width = x.shape[-3:-1]
        padded = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
        shifted = (
            padded[..., i : i + height, j : j + width, :] * depthwise[i, j]
            for i in range(3)
            for j in range(3)
        )
        return sum(shifted) @ pointwise


@answers.right
class TwoConvolutions(Right):
    def output(self, x, depthwise, pointwise):
        return convolve(convolve(x, depthwise, groups=x.shape[-1]), pointwise[None, None])


@answers.right
class OfThePackage(Right):
    def output(self, x, depthwise, pointwise):
        channels = x.shape[-1]
        layer = nn.Conv(channels, (3, 3), padding="SAME", groups=channels, kernel_spec="HWIO")
        return jnp.einsum("...i,io->...o", layer.fwd(x, {"kernel": depthwise}, ())[0], pointwise)


@answers.wrong("Both kernels hold the same random numbers")
class FoldsInOneNumber(Right):
    def init(self, key, x):
        shapes = {"depthwise": (3, 3, 1, x.shape[-1]), "pointwise": (x.shape[-1], self.out_channels)}
        return {name: draw(jax.random.fold_in(key, 0), shape, x.dtype) for name, shape in shapes.items()}, ()
