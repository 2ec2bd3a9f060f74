"""Answers to the exercise recurrent.gru."""

import dataclasses

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.recurrent.gru import GRUCell as Right
from mlax_tutorial.exercises.recurrent.gru import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def parts(carry, x, trainables):
    w = jax.tree.map(lambda leaf: leaf.astype(x.dtype), trainables)
    from_x = jnp.split(x @ w["input_kernel"] + w["bias"], 3, axis=-1)
    from_h = jnp.split(carry @ w["recurrent_kernel"], 3, axis=-1)
    return from_x, from_h, w


@answers.wrong("The update gate is the wrong way round")
class Turned(Right):
    def step(self, carry, x, trainables):
        (xr, xz, xn), (hr, hz, hn), w = parts(carry, x, trainables)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * (hn + w["recurrent_bias"]))
        h = z * n + (1 - z) * carry
        return h, h


@answers.wrong("multiplies h before the product")
class ResetsFirst(Right):
    def step(self, carry, x, trainables):
        (xr, xz, xn), (hr, hz, _), w = parts(carry, x, trainables)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        kernel = w["recurrent_kernel"][:, 2 * self.features :]
        n = jnp.tanh(xn + (r * carry) @ kernel + w["recurrent_bias"])
        h = (1 - z) * n + z * carry
        return h, h


@answers.wrong("are swapped")
class Swapped(Right):
    def step(self, carry, x, trainables):
        (xz, xr, xn), (hz, hr, hn), w = parts(carry, x, trainables)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * (hn + w["recurrent_bias"]))
        h = (1 - z) * n + z * carry
        return h, h


@answers.wrong("`recurrent_bias` stands outside")
class BiasOutside(Right):
    def step(self, carry, x, trainables):
        (xr, xz, xn), (hr, hz, hn), w = parts(carry, x, trainables)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * hn + w["recurrent_bias"])
        h = (1 - z) * n + z * carry
        return h, h


@answers.wrong("`recurrent_bias` is missing")
class WithoutBias(Right):
    def step(self, carry, x, trainables):
        (xr, xz, xn), (hr, hz, hn), _ = parts(carry, x, trainables)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        h = (1 - z) * jnp.tanh(xn + r * hn) + z * carry
        return h, h


@answers.wrong("should return the pair `(state, output)`")
class OnlyState(Right):
    def step(self, carry, x, trainables):
        return super().step(carry, x, trainables)[0]


@answers.wrong("should be a dict with input_kernel")
class OtherNames(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return {"kernel": trainables["input_kernel"]}, ()


@answers.wrong("should have the shape (2, 6)")
class OneBlock(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables | {"recurrent_kernel": trainables["recurrent_kernel"][:, :2]}, ()


@answers.wrong("draw each with a key of its own")
class OneKey(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        block = trainables["recurrent_kernel"][:, : self.features]
        return trainables | {"recurrent_kernel": jnp.hstack([block] * 3)}, ()


@answers.wrong('`trainables["input_kernel"]` is constant')
class OnesForX(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables | {"input_kernel": jnp.ones_like(trainables["input_kernel"])}, ()


@answers.wrong('`trainables["recurrent_kernel"]` is constant')
class OnesForH(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables | {"recurrent_kernel": jnp.ones_like(trainables["recurrent_kernel"])}, ()


@answers.wrong("*dtype outside*")
class AlwaysFloat32(Right):
    def init(self, key, x):
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), super().init(key, x))


@answers.wrong()
class StopsTheState(Right):
    def step(self, carry, x, trainables):
        return carry, super().step(carry, x, trainables)[1]


@answers.wrong("No gradient reaches `h`")
class StopsTheGradient(Right):
    def step(self, carry, x, trainables):
        return super().step(jax.lax.stop_gradient(carry), x, trainables)


@answers.wrong("No gradient reaches `recurrent_bias`")
class FixedBias(Right):
    def step(self, carry, x, trainables):
        fixed = jax.lax.stop_gradient(trainables["recurrent_bias"])
        return super().step(carry, x, trainables | {"recurrent_bias": fixed})


@answers.wrong()
class OneBatchAxis(Right):
    def init_carry(self, x):
        return jnp.zeros((x.shape[0], self.features), x.dtype)


# Right ones of unusual style


@answers.right
class AroundThePackage(nn.Cell):
    features: int

    def init(self, key, x):
        return nn.GRUCell(self.features).init(key, x)

    def init_carry(self, x):
        return nn.GRUCell(self.features).init_carry(x)

    def step(self, carry, x, trainables):
        return nn.GRUCell(self.features).step(carry, x, trainables)


@answers.right
@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class WithoutTheBase:
    features: int

    def init(self, key, x):
        return Right(self.features).init(key, x)

    def init_carry(self, x):
        return Right(self.features).init_carry(x)

    def step(self, carry, x, trainables):
        return Right(self.features).step(carry, x, trainables)


@answers.right
class OneProduct(Right):
    def step(self, carry, x, trainables):
        m = self.features
        w = jax.tree.map(lambda leaf: leaf.astype(x.dtype), trainables)
        a = x @ w["input_kernel"] + w["bias"]
        b = carry @ w["recurrent_kernel"]
        r, z = jnp.split(jax.nn.sigmoid(a[..., : 2 * m] + b[..., : 2 * m]), 2, axis=-1)
        n = jnp.tanh(a[..., 2 * m :] + r * (b[..., 2 * m :] + w["recurrent_bias"]))
        h = n + z * (carry - n)
        return h, h
