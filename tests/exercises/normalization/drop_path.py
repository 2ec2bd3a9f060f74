"""Answers to the exercise normalization.drop_path."""

import math

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.normalization.drop_path import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    rate: float
    axes: int = 1
    needs_key = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if inference_mode:
            return x, non_trainables
        return self.drop(x, key), non_trainables

    def drop(self, x, key):
        kept = jax.random.bernoulli(key, 1 - self.rate, self.mask_shape(x))
        return jnp.where(kept, x / (1 - self.rate), 0)

    def mask_shape(self, x):
        return (*x.shape[: x.ndim - self.axes], *(1,) * self.axes)


@answers.wrong("Each number is dropped by itself")
class Dropout(Right):
    def mask_shape(self, x):
        return x.shape


@answers.wrong("Whole features are dropped")
class Features(Right):
    def mask_shape(self, x):
        return x.shape[-1:]


@answers.wrong()  # nothing or everything, by the one draw
class AllTogether(Right):
    def mask_shape(self, x):
        return (1,) * x.ndim


@answers.wrong("divided by 1 - rate")
class NotScaled(Right):
    def drop(self, x, key):
        return jnp.where(jax.random.bernoulli(key, 1 - self.rate, self.mask_shape(x)), x, 0)


@answers.wrong("that of True")
class KeepsByTheRate(Right):
    def drop(self, x, key):
        kept = jax.random.bernoulli(key, self.rate, self.mask_shape(x))
        return jnp.where(kept, x / (1 - self.rate), 0)


@answers.wrong("is divided by the rate")
class DividesByTheRate(Right):
    def drop(self, x, key):
        return jnp.where(jax.random.bernoulli(key, 1 - self.rate, self.mask_shape(x)), x / self.rate, 0)


@answers.wrong("With `axes=2`")
class OneAxisAlways(Right):
    def mask_shape(self, x):
        return (*x.shape[:-1], 1)


@answers.wrong("two batch axes in front")
class FirstAxisOnly(Right):
    def mask_shape(self, x):
        return (x.shape[0], *(1,) * (x.ndim - 1))


@answers.wrong("*inference needs no key*")
class AlsoInInference(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return self.drop(x, key), non_trainables


@answers.wrong("In inference the layer should return x as it is")
class ScalesInInference(Right):  # as if training did not divide
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if inference_mode:
            return x * (1 - self.rate), non_trainables
        return self.drop(x, key), non_trainables


# Wrong ones that look right


@answers.wrong()
class OwnKey(Right):
    def drop(self, x, key):
        return super().drop(x, jax.random.key(0))


@answers.wrong("A share of 0.3")
class ABitTooMany(Right):
    def drop(self, x, key):
        kept = jax.random.bernoulli(key, 1 - 1.2 * self.rate, self.mask_shape(x))
        return jnp.where(kept, x / (1 - self.rate), 0)


@answers.wrong("A share of 0.3")
class ByEightLevels(Right):  # 0.25 lies between two of them, both of which are dropped
    def drop(self, x, key):
        levels = jax.random.randint(key, self.mask_shape(x), 0, 8)
        return jnp.where(levels / 8 > self.rate, x / (1 - self.rate), 0)


@answers.wrong()
class NothingDropped(Right):
    def drop(self, x, key):
        return x


@answers.wrong()
class NoKeySaid(Right):
    needs_key = False


@answers.wrong("not its gradient by x")
class StopsTheGradient(Right):
    def drop(self, x, key):
        return jax.lax.stop_gradient(super().drop(x, key))


@answers.wrong("exactly the rate")
class AlwaysTheSameNumber(Right):
    def drop(self, x, key):
        shape = self.mask_shape(x)
        order = jax.random.permutation(key, math.prod(shape))
        return jnp.where((order >= len(order) * self.rate).reshape(shape), x / (1 - self.rate), 0)


@answers.wrong("two batch axes in front")
class OneDrawForAll(Right):  # spread evenly over the examples
    def drop(self, x, key):
        shape = self.mask_shape(x)
        count = math.prod(shape)
        level = (jax.random.uniform(key) + jnp.arange(count) / max(count, 1)) % 1
        return jnp.where((level < 1 - self.rate).reshape(shape), x / (1 - self.rate), 0)


# Right ones of unusual style


@answers.right
class ByChoice(Right):
    def drop(self, x, key):
        factors = jnp.array([0, 1 / (1 - self.rate)], x.dtype)
        return x * jax.random.choice(
            key, factors, self.mask_shape(x), p=jnp.array([self.rate, 1 - self.rate])
        )


@answers.right
class KeyForEach(Right):
    def drop(self, x, key):
        flat = x.reshape(math.prod(x.shape[: x.ndim - self.axes]), *x.shape[x.ndim - self.axes :])

        def one(x, key):
            return jnp.where(jax.random.bernoulli(key, 1 - self.rate), x / (1 - self.rate), 0)

        return jax.vmap(one)(flat, jax.random.split(key, len(flat))).reshape(x.shape)


@answers.right
class ByUniform(Right):
    def drop(self, x, key):
        return jnp.where(jax.random.uniform(key, self.mask_shape(x)) >= self.rate, x, 0) / (1 - self.rate)


@answers.right
class ByProduct(Right):
    def drop(self, x, key):
        kept = jax.random.bernoulli(key, 1 - self.rate, self.mask_shape(x))
        return x * (kept / (1 - self.rate)).astype(x.dtype)


@answers.right
class AroundThePackage(Right):
    def drop(self, x, key):
        shared = tuple(range(-self.axes, 0))
        return nn.Dropout(self.rate, shared_axes=shared).fwd(x, (), (), key=key)[0]


@answers.right
class ByExpandDims(Right):
    def drop(self, x, key):
        kept = jax.random.bernoulli(key, 1 - self.rate, x.shape[: x.ndim - self.axes])
        kept = jnp.expand_dims(kept, tuple(range(-self.axes, 0)))
        return jnp.where(kept, x / (1 - self.rate), jnp.zeros_like(x))


@answers.right
class ByFloor(Right):
    def drop(self, x, key):
        level = jax.random.uniform(key, self.mask_shape(x))
        return x * jnp.floor(1 - self.rate + level).astype(x.dtype) / (1 - self.rate)


@answers.right
class ByBits(Right):
    def drop(self, x, key):
        bits = jax.random.bits(key, self.mask_shape(x), jnp.uint32)
        return jnp.where(bits >= jnp.uint32(self.rate * 2**32), x / (1 - self.rate), 0)


@answers.wrong()
class OneCondForAll(Right):
    def drop(self, x, key):
        dropped = jax.random.bernoulli(key, self.rate)
        return jax.lax.cond(dropped, lambda: jnp.zeros_like(x), lambda: x / (1 - self.rate))


@answers.wrong("has lost digits")
class RoundsInTraining(Right):
    def drop(self, x, key):
        return super().drop(x.astype(jnp.float16), key).astype(x.dtype)


@answers.wrong("has lost digits")
class RoundsInInference(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if inference_mode:
            return x.astype(jnp.bfloat16).astype(x.dtype), non_trainables
        return self.drop(x, key), non_trainables
