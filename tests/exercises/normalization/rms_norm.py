"""Answers to the exercise normalization.rms_norm."""

import math

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.normalization.rms_norm import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    axes: int = 1

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        return self.divide(wide).astype(x.dtype), non_trainables

    def divide(self, x):
        axes = tuple(range(x.ndim - self.axes, x.ndim))
        return x / jnp.sqrt(jnp.mean(x**2, axes, keepdims=True) + 1e-5)


@answers.wrong("subtracts the mean first")
class Standardizes(Right):
    def divide(self, x):
        axes = tuple(range(-self.axes, 0))
        x = x - jnp.mean(x, axes, keepdims=True)
        return x / jnp.sqrt(jnp.mean(x**2, axes, keepdims=True) + 1e-5)


@answers.wrong("take its square root")
class WithoutRoot(Right):
    def divide(self, x):
        return x / (jnp.mean(x**2, tuple(range(-self.axes, 0)), keepdims=True) + 1e-5)


@answers.wrong("divides by the standard deviation")
class ByDeviation(Right):
    def divide(self, x):
        return x / jnp.sqrt(jnp.var(x, tuple(range(-self.axes, 0)), keepdims=True) + 1e-5)


@answers.wrong("not their sum")
class ByLength(Right):
    def divide(self, x):
        return x / jnp.sqrt(jnp.sum(x**2, tuple(range(-self.axes, 0)), keepdims=True) + 1e-5)


@answers.wrong("over the first axis")
class OverTheBatch(Right):
    def divide(self, x):
        return x / jnp.sqrt(jnp.mean(x**2, tuple(range(self.axes)), keepdims=True) + 1e-5)


@answers.wrong("This takes the last one alone")
class LastAxisOnly(Right):
    def divide(self, x):
        return x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-5)


@answers.wrong("the second axis from the end alone")
class AxesAsOneAxis(Right):
    def divide(self, x):
        return x / jnp.sqrt(jnp.mean(x**2, -self.axes, keepdims=True) + 1e-5)


@answers.wrong("Epsilon belongs under")
class EpsilonOutside(Right):
    def divide(self, x):
        return x / (jnp.sqrt(jnp.mean(x**2, tuple(range(-self.axes, 0)), keepdims=True)) + 1e-5)


@answers.wrong("Epsilon is missing")
class WithoutEpsilon(Right):
    def divide(self, x):
        return x / jnp.sqrt(jnp.mean(x**2, tuple(range(-self.axes, 0)), keepdims=True))


@answers.wrong("infinite in float16")
class InItsOwnDtype(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.divide(x), non_trainables


# Wrong ones that look right


@answers.wrong("*dtype outside*")
class StaysWide(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.divide(x.astype(jnp.promote_types(x.dtype, jnp.float32))), non_trainables


@answers.wrong("There are no trainables here")
class WithAScale(Right):
    def init(self, key, x):
        return {"scale": jnp.ones(x.shape[-1], x.dtype)}, ()


@answers.wrong()
class AlwaysFloat32(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.divide(x.astype(jnp.float32)).astype(x.dtype), non_trainables


@answers.wrong("not the gradient by x")
class StatisticsFixed(Right):
    def divide(self, x):
        axes = tuple(range(x.ndim - self.axes, x.ndim))
        return x / jax.lax.stop_gradient(jnp.sqrt(jnp.mean(x**2, axes, keepdims=True) + 1e-5))


@answers.wrong("With `inference_mode=True`")
class NothingInInference(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x if inference_mode else super().fwd(x, trainables, non_trainables)[0], non_trainables


@answers.wrong("is epsilon 1e-5")
class AnotherEpsilon(Right):
    def divide(self, x):
        axes = tuple(range(x.ndim - self.axes, x.ndim))
        return x / jnp.sqrt(jnp.mean(x**2, axes, keepdims=True) + 1e-6)


@answers.wrong("is epsilon 1e-5")
class EpsilonAsAFloor(Right):
    def divide(self, x):
        axes = tuple(range(x.ndim - self.axes, x.ndim))
        return x / jnp.sqrt(jnp.maximum(jnp.mean(x**2, axes, keepdims=True), 1e-5))


@answers.wrong()
class AllButTheFirst(Right):
    def divide(self, x):
        return x / jnp.sqrt(jnp.mean(x**2, tuple(range(1, x.ndim)), keepdims=True) + 1e-5)


@answers.wrong("something is rounded on the way")
class MultipliesInHalf(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        square = jnp.mean(wide**2, tuple(range(-self.axes, 0)), keepdims=True)
        return x * jax.lax.rsqrt(square + 1e-5).astype(x.dtype), non_trainables


# Right ones of unusual style


@answers.right
class BySquareRootOfTheMean(Right):
    def divide(self, x):
        square = jnp.mean(jnp.square(x), tuple(range(-self.axes, 0)), keepdims=True)
        return x * (1 / jnp.sqrt(square + 1e-5))


@answers.right
class ByTheNorm(Right):
    def divide(self, x):
        axes = tuple(range(-self.axes, 0))
        count = math.prod(x.shape[axis] for axis in axes)
        return x * jax.lax.rsqrt(jnp.linalg.vector_norm(x, axis=axes, keepdims=True) ** 2 / count + 1e-5)


@answers.right
class ByVmap(Right):
    def divide(self, x):
        def one(x):
            return x / jnp.sqrt(jnp.mean(x**2) + 1e-5)

        for _ in range(x.ndim - self.axes):
            one = jax.vmap(one)
        return one(x)


@answers.right
class AroundThePackage(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return nn.RMSNorm(axes=self.axes).fwd(x, trainables, non_trainables)


@answers.right
class BySums(Right):
    def divide(self, x):
        for _ in range(self.axes):
            x = x[None] if x.ndim == 0 else x
        axes = tuple(-1 - i for i in range(self.axes))
        count = 1
        for axis in axes:
            count *= x.shape[axis]
        return x * jax.lax.rsqrt(jnp.sum(x * x, axes, keepdims=True) / count + 1e-5)


@answers.right
class Flattened(Right):
    def divide(self, x):
        front = x.shape[: x.ndim - self.axes]
        flat = x.reshape(*front, math.prod(x.shape[len(front) :]))
        y = flat / jnp.sqrt(jnp.mean(jnp.square(flat), -1, keepdims=True) + 1e-5)
        return y.reshape(x.shape)
