"""Answers to the exercise normalization.group_norm."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.normalization.group_norm import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def standardize(x, axes):
    x = x - jnp.mean(x, axes, keepdims=True)
    return x / jnp.sqrt(jnp.mean(x**2, axes, keepdims=True) + 1e-5)


class Right(nn.Layer):
    groups: int

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        return self.normalize(wide).astype(x.dtype), non_trainables

    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups)
        return standardize(split, (-4, -3, -1)).reshape(x.shape)


@answers.wrong("every second channel")
class Strided(Right):
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], x.shape[-1] // self.groups, self.groups)
        return standardize(split, (-4, -3, -2)).reshape(x.shape)


@answers.wrong("the number of groups comes first in the split")
class SizeForNumber(Right):
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], x.shape[-1] // self.groups, self.groups)
        return standardize(split, (-4, -3, -1)).reshape(x.shape)


@answers.wrong("examples of the batch share a mean")
class OverTheBatch(Right):
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups)
        return standardize(split, tuple(i for i in range(split.ndim) if i != split.ndim - 2)).reshape(x.shape)


@answers.wrong("this is layer norm over three axes")
class AllChannels(Right):
    def normalize(self, x):
        return standardize(x, (-3, -2, -1))


@answers.wrong("Each place has a mean of its own")
class EachPlace(Right):
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups)
        return standardize(split, -1).reshape(x.shape)


@answers.wrong("this is instance norm")
class EachChannel(Right):
    def normalize(self, x):
        return standardize(x, (-3, -2))


@answers.wrong("count the axes from the end")
class OneBatchAxis(Right):
    def normalize(self, x):
        batch, height, width, channels = x.shape
        split = x.reshape(batch, height, width, self.groups, channels // self.groups)
        return standardize(split, (1, 2, 4)).reshape(x.shape)


@answers.wrong("count the axes from the end")
class FromTheFront(Right):
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups)
        return standardize(split, (1, 2, 4)).reshape(x.shape)


@answers.wrong("should have the shape of x")
class StaysSplit(Right):
    def normalize(self, x):
        return standardize(x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups), (-4, -3, -1))


@answers.wrong("infinite in float16")
class Narrow(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.normalize(x), non_trainables


# Wrong ones that look right


@answers.wrong("*any batch axes*")
class NotForAnEmptyBatch(Right):
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], self.groups, -1)
        return standardize(split, (-4, -3, -1)).reshape(x.shape)


@answers.wrong("*dtype outside*")
class StaysWide(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.normalize(x.astype(jnp.promote_types(x.dtype, jnp.float32))), non_trainables


@answers.wrong("take their number from `self.groups`")
class TwoGroups(Right):
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], 2, x.shape[-1] // 2)
        return standardize(split, (-4, -3, -1)).reshape(x.shape)


class ByFormula(Right):
    def normalize(self, x):
        split, axes = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups), (-4, -3, -1)
        mean, variance = split.mean(axes, keepdims=True), split.var(axes, keepdims=True)
        return self.formula(split, mean, variance).reshape(x.shape)


@answers.wrong("Epsilon is missing")
class NoEpsilon(ByFormula):
    def formula(self, x, mean, variance):
        return (x - mean) / jnp.sqrt(variance)


@answers.wrong("under the square root")
class EpsilonOutside(ByFormula):
    def formula(self, x, mean, variance):
        return (x - mean) / (jnp.sqrt(variance) + 1e-5)


@answers.wrong("loses its digits")
class OnePass(ByFormula):
    def formula(self, x, mean, variance):
        square = jnp.mean(x**2, (-4, -3, -1), keepdims=True)
        return (x - mean) / jnp.sqrt(jnp.maximum(square - mean**2, 0) + 1e-5)


@answers.wrong("not the gradient by x")
class VarianceFixed(ByFormula):
    def formula(self, x, mean, variance):
        return (x - mean) / jnp.sqrt(jax.lax.stop_gradient(variance) + 1e-5)


@answers.wrong("The variance is unbiased")
class Unbiased(ByFormula):
    def formula(self, x, mean, variance):
        count = x.shape[-4] * x.shape[-3] * x.shape[-1]
        return (x - mean) / jnp.sqrt(variance * count / (count - 1) + 1e-5)


@answers.wrong("loses its digits")
class ByJax(Right):  # `jax.nn.standardize` takes one pass by default
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups)
        return jax.nn.standardize(split, (-4, -3, -1)).reshape(x.shape)


@answers.wrong("something is rounded on the way")
class DividesInHalf(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        split = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups)
        wide, axes = split.astype(jnp.promote_types(x.dtype, jnp.float32)), (-4, -3, -1)
        mean, variance = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
        y = (split - mean.astype(x.dtype)) * jax.lax.rsqrt(variance + 1e-5).astype(x.dtype)
        return y.reshape(x.shape), non_trainables


# Right ones of unusual style


@answers.right
class ByJaxWithItsVariance(Right):
    def normalize(self, x):
        split, axes = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups), (-4, -3, -1)
        variance = split.var(axes, keepdims=True)
        return jax.nn.standardize(split, axes, variance=variance).reshape(x.shape)


@answers.right
class GroupsInFront(Right):
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups)
        front = standardize(jnp.moveaxis(split, -2, -4), (-1, -2, -3))
        return jnp.moveaxis(front, -4, -2).reshape(x.shape)


@answers.right
class ByVmap(Right):
    def normalize(self, x):
        split = x.reshape(*x.shape[:-1], self.groups, x.shape[-1] // self.groups)
        return jax.vmap(lambda part: standardize(part, (-3, -2, -1)), -2, -2)(split).reshape(x.shape)


@answers.right
class AroundThePackage(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return nn.GroupNorm(self.groups, axes=3).fwd(x, trainables, non_trainables)


@answers.right
class PartByPart(Right):
    def normalize(self, x):
        parts = jnp.split(x, self.groups, axis=-1)
        return jnp.concatenate([standardize(part, (-3, -2, -1)) for part in parts], axis=-1)


@answers.right
class WithNegativeAxesCounted(Right):
    def normalize(self, x):
        split = jnp.reshape(x, (*x.shape[:-1], self.groups, x.shape[-1] // self.groups))
        mean = split.mean((-4, -3, -1), keepdims=True)
        variance = split.var((-4, -3, -1), keepdims=True)
        return jnp.reshape((split - mean) / jnp.sqrt(variance + 1e-5), x.shape)
