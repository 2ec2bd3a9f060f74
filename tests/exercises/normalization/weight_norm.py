"""Answers to the exercise normalization.weight_norm."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.normalization.weight_norm import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def wide(x):
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


class Right(nn.Layer):
    out_features: int

    def init(self, key, x):
        draw = jax.nn.initializers.lecun_normal()
        direction = draw(key, (x.shape[-1], self.out_features), x.dtype)
        length = jnp.linalg.norm(wide(direction), axis=0)
        return {"direction": direction, "length": length.astype(x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        kernel = self.kernel(wide(trainables["direction"]), wide(trainables["length"]))
        return x @ kernel.astype(x.dtype), non_trainables

    def kernel(self, v, g):
        return g * v / jnp.linalg.norm(v, axis=0)


@answers.wrong("not divided by their lengths")
class NotDivided(Right):
    def kernel(self, v, g):
        return g * v


@answers.wrong("as it is")
class LengthIgnored(Right):
    def kernel(self, v, g):
        return v


@answers.wrong("that are learned are missing")
class UnitColumns(Right):
    def kernel(self, v, g):
        return v / jnp.linalg.norm(v, axis=0)


@answers.wrong("Each row is divided")
class Rows(Right):
    def kernel(self, v, g):
        return g * v / jnp.linalg.norm(v, axis=1, keepdims=True)


@answers.wrong("the length of all of it")
class WholeKernel(Right):
    def kernel(self, v, g):
        return g * v / jnp.sqrt(jnp.sum(v**2))


@answers.wrong("take the square root")
class Squares(Right):
    def kernel(self, v, g):
        return g * v / jnp.sum(v**2, axis=0)


@answers.wrong("The lengths begin as ones")
class BeginsAtOne(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables | {"length": jnp.ones(self.out_features, x.dtype)}, ()


@answers.wrong("should have the shape (3,)")
class RowLengths(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables | {"length": jnp.linalg.norm(trainables["direction"], axis=1)}, ()


@answers.wrong("*dtype outside*")
class Float32Weights(Right):
    def init(self, key, x):
        return super().init(key, x.astype(jnp.float32) if hasattr(x, "astype") else x)


# Wrong ones that look right


@answers.wrong()
class ConstantKey(Right):
    def init(self, key, x):
        return super().init(jax.random.key(0), x)


@answers.wrong()
class OutputStaysWide(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x @ self.kernel(wide(trainables["direction"]), wide(trainables["length"])), non_trainables


@answers.wrong("not the gradient by `direction`")
class LengthFixed(Right):
    def kernel(self, v, g):
        return g * v / jax.lax.stop_gradient(jnp.linalg.norm(v, axis=0))


@answers.wrong("not the gradient by `length`")
class LearnedLengthFixed(Right):
    def kernel(self, v, g):
        return super().kernel(v, jax.lax.stop_gradient(g))


@answers.wrong("not the gradient by `x`")
class InputFixed(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return super().fwd(jax.lax.stop_gradient(x), trainables, non_trainables)


@answers.wrong("add nothing to their length")
class WithEpsilon(Right):
    def kernel(self, v, g):
        return g * v / (jnp.linalg.norm(v, axis=0) + 1e-3)


@answers.wrong("In float16 the squares")
class NarrowLengths(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        v, g = trainables["direction"].astype(x.dtype), trainables["length"].astype(x.dtype)
        return x @ (g * v / jnp.sqrt(jnp.sum(v * v, axis=0))), non_trainables


@answers.wrong("should have a standard deviation of")
class DrawnByHe(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return {name: leaf * jnp.asarray(2**0.5, leaf.dtype) for name, leaf in trainables.items()}, ()


@answers.wrong()
class LengthsPositive(Right):
    def kernel(self, v, g):
        return super().kernel(v, jnp.abs(g))


# Right ones of unusual style


@answers.right
class DividesTheOutput(Right):
    def kernel(self, v, g):
        return v * (g * jax.lax.rsqrt(jnp.sum(jnp.square(v), axis=0)))


@answers.right
class Transposed(Right):
    def kernel(self, v, g):
        rows = v.T / jnp.sqrt(jnp.sum(v.T * v.T, axis=1, keepdims=True))
        return (rows * g[:, None]).T


@answers.right
class AroundLinear(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        kernel = self.kernel(wide(trainables["direction"]), wide(trainables["length"]))
        linear = nn.Linear(self.out_features)
        return linear.fwd(x, {"kernel": kernel.astype(x.dtype)}, non_trainables)


@answers.right
class ScalesTheOutput(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        v, g = wide(trainables["direction"]), wide(trainables["length"])
        factor = g / jnp.linalg.norm(v, axis=0)
        return x @ trainables["direction"].astype(x.dtype) * factor.astype(x.dtype), non_trainables


@answers.wrong()
class UnitDirections(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        v = trainables["direction"]
        return trainables | {"direction": (v / jnp.linalg.norm(v, axis=0)).astype(v.dtype)}, ()


answers.equivalent(
    "length.astype(jnp.promote_types(length.dtype, jnp.float32)) -> length",
    because="a length of half precision that is divided by a float32 is widened by itself",
)
