"""Answers to the exercise layers.embed."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.exercises.layers.embed import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    vocab_size: int
    embed_dim: int
    param_dtype: object = jnp.float32

    def init(self, key, x):
        shape = self.vocab_size, self.embed_dim
        return {"embed": jax.random.normal(key, shape, self.param_dtype) * self.embed_dim**-0.5}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        rows = trainables["embed"].at[x]
        return rows.get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False), non_trainables


@answers.wrong("read the last row")
class Clamps(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return trainables["embed"][x], non_trainables


@answers.wrong("Negative ids count from the end")
class Takes(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.take(trainables["embed"], x, axis=0), non_trainables


@answers.wrong("moved to its ends")
class Clips(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return trainables["embed"][jnp.clip(x, 0, self.vocab_size - 1)], non_trainables


@answers.wrong("should have a standard deviation of 0.25")
class Unscaled(Right):
    def init(self, key, x):
        return {"embed": jax.random.normal(key, (self.vocab_size, self.embed_dim), self.param_dtype)}, ()


@answers.wrong("should have the shape (400, 16)")
class Turned(Right):
    def init(self, key, x):
        shape = self.embed_dim, self.vocab_size
        return {"embed": jax.random.normal(key, shape, self.param_dtype) * self.embed_dim**-0.5}, ()


@answers.wrong("Negative ids count from the end")
class OnlyTheLargeOnes(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        nan = jnp.asarray(jnp.nan, table.dtype)
        return jnp.where((x < self.vocab_size)[..., None], table[x], nan), non_trainables


@answers.wrong("valid ids go from 0 to vocab_size - 1")
class OffByOne(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        inside = (x >= 0) & (x <= self.vocab_size)
        return jnp.where(inside[..., None], table[x], jnp.asarray(jnp.nan, table.dtype)), non_trainables


@answers.wrong("should have a standard deviation of 0.25")
class Truncated(Right):
    def init(self, key, x):
        shape = self.vocab_size, self.embed_dim
        table = jax.random.truncated_normal(key, -2, 2, shape, self.param_dtype)
        return {"embed": table * self.embed_dim**-0.5}, ()


@answers.wrong("as with a uniform distribution")
class Uniform(Right):
    def init(self, key, x):
        shape, limit = (self.vocab_size, self.embed_dim), (3 / self.embed_dim) ** 0.5
        return {"embed": jax.random.uniform(key, shape, self.param_dtype, -limit, limit)}, ()


@answers.wrong("With `param_dtype` float16, trainables['embed'] should be float16")
class DividesByNumPy(Right):
    def init(self, key, x):
        table = jax.random.normal(key, (self.vocab_size, self.embed_dim), self.param_dtype)
        return {"embed": table / np.sqrt(self.embed_dim)}, ()


@answers.wrong("the weights decide the dtype")
class ConvertsToTheField(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        rows, non_trainables = super().fwd(x, trainables, non_trainables)
        return rows.astype(self.param_dtype), non_trainables


# Wrong ones that look right


@answers.wrong("With `param_dtype` float16, trainables['embed'] should be float16")
class AlwaysFloat32(Right):
    def init(self, key, x):
        shape = self.vocab_size, self.embed_dim
        return {"embed": jax.random.normal(key, shape) * self.embed_dim**-0.5}, ()


@answers.wrong()
class ZerosOutside(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        rows = trainables["embed"].at[x]
        return rows.get(mode="fill", fill_value=0.0, wrap_negative_indices=False), non_trainables


@answers.wrong()
class ConstantKey(Right):
    def init(self, key, x):
        return super().init(jax.random.key(0), x)


# Right ones of unusual style


@answers.right
class ByWhere(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        inside = (x >= 0) & (x < self.vocab_size)
        rows = table[jnp.where(inside, x, 0)]
        return jnp.where(inside[..., None], rows, jnp.asarray(jnp.nan, table.dtype)), non_trainables


@answers.right
class TakesWhatIsMoved(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        moved = jnp.where(x < 0, self.vocab_size, x)
        return jnp.take(trainables["embed"], moved, axis=0, mode="fill", fill_value=jnp.nan), non_trainables


@answers.right
class AroundThePackage(nn.Layer):
    vocab_size: int
    embed_dim: int
    param_dtype: object = jnp.float32

    def init(self, key, x):
        return nn.Embed(self.vocab_size, self.embed_dim, param_dtype=self.param_dtype).init(key, x)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return nn.Embed(self.vocab_size, self.embed_dim).fwd(x, trainables, non_trainables)


@answers.wrong("rounded to half precision")
class DrawsInHalf(Right):
    def init(self, key, x):
        table = jax.random.normal(key, (self.vocab_size, self.embed_dim), jnp.float16) * self.embed_dim**-0.5
        return {"embed": table.astype(self.param_dtype)}, ()


answers.equivalent(
    "rows.get(mode='fill', fill_value=jnp.nan, wrap_negative_indices=False) -> rows.get(mode='fill', wrap_negative_indices=False)",
    because="of floats, NaN is what JAX fills with by default",
)
