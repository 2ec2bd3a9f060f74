"""Answers to the exercise precision.rms_norm."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.exercises.precision.rms_norm import RMSNorm, exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("The law *dtype outside* is broken")
class AsInTheChapter(nn.Layer):
    def init(self, key, x):
        return {"scale": jnp.ones(x.shape[-1])}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        mean = jnp.mean(x * x, axis=-1, keepdims=True)
        y = x / jnp.sqrt(mean + np.float32(1e-6))
        return y * trainables["scale"], non_trainables


@answers.wrong("The law *weights of another dtype* is broken")
class ScaleAsItComes(RMSNorm):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        mean = jnp.mean(wide * wide, axis=-1, keepdims=True)
        return x * jax.lax.rsqrt(mean + 1e-6).astype(x.dtype) * trainables["scale"], non_trainables


@answers.wrong("The square of 300 is infinite in float16")
class SquaresInHalf(RMSNorm):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = jnp.promote_types(x.dtype, jnp.float32)
        mean = jnp.mean(x * x, axis=-1, keepdims=True, dtype=wide)
        y = x * jax.lax.rsqrt(mean + 1e-6).astype(x.dtype)
        return y * trainables["scale"].astype(x.dtype), non_trainables


@answers.wrong("The result is wrong")
class OverTheBatch(RMSNorm):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = jnp.promote_types(x.dtype, jnp.float32)
        mean = jnp.mean(jnp.square(x.astype(wide)), axis=0, keepdims=True)
        y = x * jax.lax.rsqrt(mean + 1e-6).astype(x.dtype)
        return y * trainables["scale"].astype(x.dtype), non_trainables


@answers.wrong("The scale should begin as ones")
class ZerosAtFirst(RMSNorm):
    def init(self, key, x):
        return {"scale": jnp.zeros(x.shape[-1], x.dtype)}, ()


@answers.wrong("should make one trainable")
class AnotherName(RMSNorm):
    def init(self, key, x):
        return {"scaler": jnp.ones(x.shape[-1], x.dtype)}, ()


class OfTheMean(RMSNorm):
    """Written out, with one line to change."""

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        factor = self.factor(jnp.mean(wide * wide, axis=-1, keepdims=True), x.dtype)
        return x * factor.astype(x.dtype) * trainables["scale"].astype(x.dtype), non_trainables


@answers.wrong("A row of zeros gives NaN")
class WithoutEpsilon(OfTheMean):
    def factor(self, mean, dtype):
        return jax.lax.rsqrt(mean)


@answers.wrong("A small row comes out wrong")
class EpsilonOutside(OfTheMean):
    def factor(self, mean, dtype):
        return 1 / (jnp.sqrt(mean) + 1e-6)


@answers.wrong("The square of 300 is infinite in float16")
class NarrowMean(OfTheMean):
    def factor(self, mean, dtype):
        return jax.lax.rsqrt(mean.astype(dtype) + 1e-6)


# Right ones of unusual style, and wrong ones that look right


@answers.right
class DividesInFloat32(RMSNorm):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        y = wide / jnp.sqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
        return y.astype(x.dtype) * trainables["scale"].astype(x.dtype), non_trainables


@answers.right
class WithoutRsqrt(RMSNorm):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        root = jnp.sqrt(jnp.mean(wide**2, axis=-1, keepdims=True) + 1e-6)
        return (x / root.astype(x.dtype)) * trainables["scale"].astype(x.dtype), non_trainables


@answers.right
class ByMultiplication(RMSNorm):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        dtype, wide = x.dtype, jnp.promote_types(x.dtype, jnp.float32)
        squares = jnp.sum(jnp.square(x.astype(wide)), axis=-1, keepdims=True)
        factor = (squares / x.shape[-1] + 1e-6) ** -0.5
        return x * (factor.astype(dtype) * trainables["scale"].astype(dtype)), non_trainables


@answers.right
class ByEinsum(RMSNorm):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        mean = jnp.einsum("...i,...i->...", wide, wide)[..., None] / x.shape[-1]
        return x * jax.lax.rsqrt(mean + 1e-6).astype(x.dtype) * trainables["scale"].astype(
            x.dtype
        ), non_trainables


@answers.wrong()
class AlwaysFloat32(RMSNorm):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.float32)
        mean = jnp.mean(wide * wide, axis=-1, keepdims=True)
        y = wide * jax.lax.rsqrt(mean + 1e-6) * trainables["scale"].astype(jnp.float32)
        return y, non_trainables


@answers.wrong()
class AnotherEpsilon(RMSNorm):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        mean = jnp.mean(wide * wide, axis=-1, keepdims=True)
        return x * jax.lax.rsqrt(mean + 1e-2).astype(x.dtype) * trainables["scale"].astype(
            x.dtype
        ), non_trainables


class OfSquares(RMSNorm):
    """Written out, with the mean of the squares to change."""

    def mean(self, x):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        return jnp.mean(wide * wide, axis=-1, keepdims=True)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        y = x * jax.lax.rsqrt(self.mean(x) + 1e-6).astype(x.dtype)
        return y * trainables["scale"].astype(x.dtype), non_trainables


@answers.wrong("The result is wrong")
class QuarterOfTheSum(OfSquares):
    def mean(self, x):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        return jnp.sum(wide * wide, axis=-1, keepdims=True) / 4


@answers.wrong("convert x to float32 before you square it")
class SquaresOfBfloat16InHalf(OfSquares):
    def mean(self, x):
        x = x.astype(jnp.float32) if x.dtype == jnp.float16 else x
        return jnp.mean(x * x, axis=-1, keepdims=True, dtype=jnp.promote_types(x.dtype, jnp.float32))


@answers.wrong("is rounded to bfloat16 and then widened again")
class MeanInBfloat16(OfSquares):
    def mean(self, x):
        mean = super().mean(x)
        return mean.astype(x.dtype).astype(mean.dtype) if x.dtype == jnp.bfloat16 else mean


@answers.wrong("is rounded to bfloat16 and then widened again")
class RootInHalf(OfSquares):
    """The root is carried in half precision; 300 is small enough for it."""

    def mean(self, x):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32)) / x.shape[-1]
        root = jnp.sqrt(jnp.sum(wide * wide, axis=-1, keepdims=True)).astype(x.dtype)
        return jnp.square(root.astype(wide.dtype)) * x.shape[-1]


@answers.right
class ByVar(OfSquares):
    def mean(self, x):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        return jnp.var(wide, axis=-1, keepdims=True) + jnp.square(jnp.mean(wide, axis=-1, keepdims=True))


@answers.right
class NotBelowZero(OfSquares):
    def mean(self, x):
        return jnp.maximum(super().mean(x), 0)


answers.equivalent(
    "return ({'scale': jnp.ones(x.shape[-1], x.dtype)}, ()): rounded to float16",
    because="ones are exact in float16",
)
