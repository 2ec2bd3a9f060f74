"""Answers to the exercise layers.lora."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.layers.lora import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    out_features: int
    rank: int

    def init(self, key, x):
        draw = jax.nn.initializers.lecun_normal()
        key_kernel, key_a = jax.random.split(key)
        kernel = draw(key_kernel, (x.shape[-1], self.out_features), x.dtype)
        a = draw(key_a, (x.shape[-1], self.rank), x.dtype)
        return {"a": a, "b": jnp.zeros((self.rank, self.out_features), x.dtype)}, {"kernel": kernel}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        leaves = trainables["a"], trainables["b"], non_trainables["kernel"]
        a, b, kernel = (leaf.astype(x.dtype) for leaf in leaves)
        return self.output(x, a, b, kernel), non_trainables

    def output(self, x, a, b, kernel):
        return x @ kernel + (x @ a) @ b / self.rank


@answers.wrong("should be divided by the rank")
class NoScale(Right):
    def output(self, x, a, b, kernel):
        return x @ kernel + (x @ a) @ b


@answers.wrong("the frozen kernel alone")
class OnlyKernel(Right):
    def output(self, x, a, b, kernel):
        return x @ kernel


@answers.wrong("the low-rank part alone")
class OnlyLowRank(Right):
    def output(self, x, a, b, kernel):
        return (x @ a) @ b / self.rank


@answers.wrong("multiplies `a` by `b` first")
class MergesFirst(Right):
    def output(self, x, a, b, kernel):
        return x @ (kernel + a @ b / self.rank)


@answers.wrong("joins `a` to the kernel")
class CopiesTheKernel(Right):
    def output(self, x, a, b, kernel):
        both = x @ jnp.concatenate([kernel, a], axis=1)
        return both[..., : self.out_features] + both[..., self.out_features :] @ b / self.rank


@answers.right
class ByEinsum(Right):
    def output(self, x, a, b, kernel):
        return x @ kernel + jnp.einsum("...i,ir,ro->...o", x, a, b) / self.rank


@answers.wrong("multiplies `a` by `b` first")
class MergesUnderJit(Right):
    def output(self, x, a, b, kernel):
        return x @ (kernel + jax.jit(jnp.matmul)(a, b) / self.rank)


@answers.wrong("multiplies `a` by `b` first")
class MergesBySums(Right):
    def output(self, x, a, b, kernel):
        return x @ (kernel + (a[:, :, None] * b[None]).sum(1) / self.rank)


@answers.wrong("whatever the rank")
class AlwaysTwo(Right):
    def output(self, x, a, b, kernel):
        return x @ kernel + (x @ a) @ b / 2


@answers.wrong("should begin at zero")
class BothDrawn(Right):
    def init(self, key, x):
        trainables, non_trainables = super().init(key, x)
        return {"a": trainables["a"], "b": trainables["b"] + 0.01}, non_trainables


@answers.wrong("nothing would ever learn")
class BothZero(Right):
    def init(self, key, x):
        trainables, non_trainables = super().init(key, x)
        return {"a": 0 * trainables["a"], "b": trainables["b"]}, non_trainables


@answers.wrong('should be a dict with "a", "b"')
class TrainsTheKernel(Right):
    def init(self, key, x):
        trainables, non_trainables = super().init(key, x)
        return trainables | non_trainables, ()


@answers.wrong("as they came")
class LosesTheKernel(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return super().fwd(x, trainables, non_trainables)[0], ()


@answers.wrong('`non_trainables["kernel"]` is constant')
class ZeroKernel(Right):
    def init(self, key, x):
        trainables, non_trainables = super().init(key, x)
        return trainables, {"kernel": 0 * non_trainables["kernel"]}


@answers.wrong("No gradient reaches x by way of")
class StopsTooMuch(Right):
    def output(self, x, a, b, kernel):
        return jax.lax.stop_gradient(x @ kernel) + (x @ a) @ b / self.rank


@answers.wrong("should have a standard deviation of 0.05")
class StandardNormal(Right):
    def init(self, key, x):
        trainables, non_trainables = super().init(key, x)
        return trainables | {"a": 20 * trainables["a"]}, non_trainables


@answers.wrong("should have a standard deviation of 0.05")
class AnotherFanIn(Right):
    def init(self, key, x):
        draw = jax.nn.initializers.lecun_normal()
        key, key_a = jax.random.split(key)
        trainables, non_trainables = super().init(key, x)
        return trainables | {"a": draw(key_a, (self.rank, x.shape[-1]), x.dtype).T}, non_trainables


# Wrong ones that look right


@answers.wrong("*keys used once*")
class OneKey(Right):
    def init(self, key, x):
        draw = jax.nn.initializers.lecun_normal()
        kernel = draw(key, (x.shape[-1], self.out_features), x.dtype)
        a = draw(key, (x.shape[-1], self.rank), x.dtype)
        return {"a": a, "b": jnp.zeros((self.rank, self.out_features), x.dtype)}, {"kernel": kernel}


@answers.wrong()
class Merged(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        y, _ = super().fwd(x, trainables, non_trainables)
        kernel = non_trainables["kernel"] + trainables["a"] @ trainables["b"] / self.rank
        return y, {"kernel": kernel}


# Right ones of unusual style


@answers.right
class ScalesTheThinOne(Right):
    def output(self, x, a, b, kernel):
        return x @ kernel + (x @ (a / self.rank)) @ b


@answers.right
class StopsTheGradient(Right):
    def output(self, x, a, b, kernel):
        return x @ jax.lax.stop_gradient(kernel) + jnp.einsum("...i,ir,ro->...o", x, a, b) / self.rank


@answers.right
class OfTwoLayers(Right):
    def output(self, x, a, b, kernel):
        frozen, _ = nn.Linear(self.out_features).fwd(x, {"kernel": kernel}, ())
        thin, _ = nn.Linear(self.rank).fwd(x, {"kernel": a}, ())
        return frozen + nn.Linear(self.out_features).fwd(thin, {"kernel": b}, ())[0] / self.rank


@answers.right
class DrawsInFloat32(Right):
    def init(self, key, x):
        draw = jax.nn.initializers.lecun_normal()
        key_kernel, key_a = jax.random.split(key)
        kernel = draw(key_kernel, (x.shape[-1], self.out_features)).astype(x.dtype)
        a = draw(key_a, (x.shape[-1], self.rank)).astype(x.dtype)
        return {"a": a, "b": jnp.zeros((self.rank, self.out_features), x.dtype)}, {"kernel": kernel}


@answers.right
class UnderJit(Right):
    def output(self, x, a, b, kernel):
        @jax.jit
        def output(x, a, b, kernel):
            return x @ jnp.transpose(kernel.T) + jax.jit(jnp.matmul)(x @ a, b) / self.rank

        return output(x, a, b, kernel)


@answers.wrong("begin with the same numbers")
class FoldsInOneNumber(Right):
    def init(self, key, x):
        draw = jax.nn.initializers.lecun_normal()
        kernel = draw(jax.random.fold_in(key, 0), (x.shape[-1], self.out_features), x.dtype)
        a = draw(jax.random.fold_in(key, 0), (x.shape[-1], self.rank), x.dtype)
        return {"a": a, "b": jnp.zeros((self.rank, self.out_features), x.dtype)}, {"kernel": kernel}


@answers.wrong('`trainables["a"]` should have the shape (4, 2)')
class OfFourHundred(Right):
    def init(self, key, x):
        return super().init(key, jnp.zeros((1, 400), x.dtype))


@answers.wrong("rounded to half precision")
class DrawsInHalf(Right):
    def init(self, key, x):
        trainables, non_trainables = super().init(key, x.astype(jnp.bfloat16))
        return jax.tree.map(lambda leaf: leaf.astype(x.dtype), (trainables, non_trainables))
