"""Answers to the exercise layers.tied."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.layers.tied import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    vocab_size: int
    embed_dim: int
    param_dtype: object = jnp.float32

    def init(self, key, x):
        return {"embed": jax.random.normal(key, (self.vocab_size, self.embed_dim), self.param_dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        return jnp.tanh(table[x]) @ table.T, non_trainables


@answers.wrong('should be a dict with "embed"')
class TwoTables(Right):
    def init(self, key, x):
        (table,) = super().init(key, x)[0].values()
        return {"embed": table, "head": table.T}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.tanh(trainables["embed"][x]) @ trainables["head"], non_trainables


@answers.wrong("between reading and writing is missing")
class NoTanh(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return trainables["embed"][x] @ trainables["embed"].T, non_trainables


@answers.wrong("behind the second product")
class LateTanh(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.tanh(trainables["embed"][x] @ trainables["embed"].T), non_trainables


@answers.wrong("The gradient of the writing does not arrive")
class FrozenHead(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        return jnp.tanh(table[x]) @ jax.lax.stop_gradient(table).T, non_trainables


@answers.wrong("The gradient of the reading does not arrive")
class FrozenTable(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        return jnp.tanh(jax.lax.stop_gradient(table)[x]) @ table.T, non_trainables


@answers.wrong("There are no non_trainables")
class HeadApart(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables, {"head": trainables["embed"].T}


@answers.wrong('`trainables["embed"]` is constant')
class Zeros(Right):
    def init(self, key, x):
        return {"embed": jnp.zeros((self.vocab_size, self.embed_dim), self.param_dtype)}, ()


@answers.wrong("should have a standard deviation of 1")
class ScaledLikeEmbed(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return {"embed": trainables["embed"] * self.embed_dim**-0.5}, ()


@answers.wrong("as with a uniform distribution")
class Uniform(Right):
    def init(self, key, x):
        shape, limit = (self.vocab_size, self.embed_dim), 3**0.5
        return {"embed": jax.random.uniform(key, shape, self.param_dtype, -limit, limit)}, ()


@answers.wrong("The mean of")
class Shifted(Right):
    def init(self, key, x):
        return {"embed": 0.5 + super().init(key, x)[0]["embed"]}, ()


# Wrong ones that look right


@answers.wrong("*dtype outside*")
class AlwaysFloat32(Right):
    def init(self, key, x):
        return {"embed": jax.random.normal(key, (self.vocab_size, self.embed_dim))}, ()


@answers.wrong()
class OneBatchAxis(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        return jnp.einsum("ble,ve->blv", jnp.tanh(table[x]), table), non_trainables


# Right ones of unusual style


@answers.right
class ByEinsum(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        return jnp.einsum("...e,ve->...v", jnp.tanh(table)[x], table), non_trainables


@answers.right
class ByOneHot(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        rows = jax.nn.one_hot(x, self.vocab_size, dtype=table.dtype) @ table
        return jnp.tanh(rows) @ table.T, non_trainables


@answers.right
class AroundThePackage(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        embed = nn.Embed(self.vocab_size, self.embed_dim)
        rows, _ = embed.fwd(x, trainables, ())
        return embed.attend(jnp.tanh(rows), trainables, non_trainables)


@answers.wrong("rounded to half precision")
class DrawsInHalf(Right):
    def init(self, key, x):
        table = jax.random.normal(key, (self.vocab_size, self.embed_dim), jnp.bfloat16)
        return {"embed": table.astype(self.param_dtype)}, ()
