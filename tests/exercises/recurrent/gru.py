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


@answers.wrong("Two blocks of the recurrent kernel are equal")
class OneKey(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        block = trainables["recurrent_kernel"][:, : self.features]
        return trainables | {"recurrent_kernel": jnp.hstack([block] * 3)}, ()


@answers.wrong("Two blocks of the input kernel are equal")
class SameGates(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        block = trainables["input_kernel"][:, : self.features]
        return trainables | {"input_kernel": jnp.tile(block, 3)}, ()


@answers.wrong("Two blocks of the recurrent kernel are equal")
class FirstAndLast(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        first, second, _ = jnp.split(trainables["recurrent_kernel"], 3, axis=1)
        return trainables | {"recurrent_kernel": jnp.hstack([first, second, first])}, ()


@answers.wrong("is not orthogonal")
class LargeStart(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        normal = jax.random.normal(jax.random.fold_in(key, 1), trainables["recurrent_kernel"].shape)
        return trainables | {"recurrent_kernel": 50 * normal.astype(x.dtype)}, ()


@answers.wrong("is not orthogonal")
class OneWideDraw(Right):
    """Rows of three blocks together are orthogonal, and no block is."""

    def init(self, key, x):
        trainables, _ = super().init(key, x)
        draw = jax.nn.initializers.orthogonal()
        shape = self.features, 3 * self.features
        return trainables | {"recurrent_kernel": draw(jax.random.fold_in(key, 1), shape, x.dtype)}, ()


@answers.wrong("should have a standard deviation of 0.125")
class NarrowInput(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables | {"input_kernel": 0.1 * trainables["input_kernel"]}, ()


@answers.wrong("A random key is used twice")
class OneKeyForBoth(Right):
    def init(self, key, x):
        m, lecun_normal = self.features, jax.nn.initializers.lecun_normal()
        keys = jax.random.split(key, 3)
        square = [jax.nn.initializers.orthogonal()(k, (m, m), x.dtype) for k in keys]
        return {
            "input_kernel": lecun_normal(keys[0], (x.shape[-1], 3 * m), x.dtype),
            "recurrent_kernel": jnp.hstack(square),
            "bias": jnp.zeros(3 * m, x.dtype),
            "recurrent_bias": jnp.zeros(m, x.dtype),
        }, ()


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
class GateByGate(Right):
    """Six kernels, each drawn by itself."""

    def init(self, key, x):
        m, n = self.features, x.shape[-1]
        keys = jax.random.split(key, 6)
        across, around = jax.nn.initializers.lecun_normal(), jax.nn.initializers.orthogonal()
        return {
            "input_kernel": jnp.concatenate([across(k, (n, m), x.dtype) for k in keys[:3]], axis=1),
            "recurrent_kernel": jnp.concatenate([around(k, (m, m), jnp.float32) for k in keys[3:]], axis=1).astype(x.dtype),
            "bias": jnp.zeros((3 * m,), x.dtype),
            "recurrent_bias": jnp.zeros((m,), x.dtype),
        }, ()  # fmt: skip


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
