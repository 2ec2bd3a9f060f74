"""Answers to the exercise layers.scale."""

import dataclasses

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.layers.scale import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    def init(self, key, x):
        return {"scale": jnp.ones(x.shape[-1:], x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scale"].astype(x.dtype), non_trainables


@answers.wrong("This adds the scale")
class Adds(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x + trainables["scale"], non_trainables


@answers.wrong("should begin at 1")
class Zeros(Right):
    def init(self, key, x):
        return {"scale": jnp.zeros(x.shape[-1:], x.dtype)}, ()


@answers.wrong('should be a dict with "scale"')
class OtherName(Right):
    def init(self, key, x):
        return {"factor": jnp.ones(x.shape[-1:], x.dtype)}, ()


@answers.wrong("should have the shape (4,)")
class WholeShape(Right):
    def init(self, key, x):
        return {"scale": jnp.ones(x.shape, x.dtype)}, ()


@answers.wrong("must return a pair")
class OnlyOutput(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scale"]


@answers.wrong("*dtype outside*")
class AlwaysFloat32(Right):
    def init(self, key, x):
        return {"scale": jnp.ones(x.shape[-1:])}, ()


@answers.wrong("*signature*")
class ShortSignature(Right):
    def fwd(self, x, trainables):
        return x * trainables["scale"], ()


# Wrong ones that look right


@answers.wrong("*weights of another dtype*")
class Promotes(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scale"], non_trainables


@answers.wrong()
class StopsTheGradient(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * jax.lax.stop_gradient(trainables["scale"]).astype(x.dtype), non_trainables


# Right ones of unusual style


@answers.right
@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class WithoutTheBase:
    def init(self, key, x):
        return dict(scale=jax.nn.initializers.ones(key, x.shape[-1:], x.dtype)), ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.multiply(x, trainables["scale"].astype(x.dtype)), non_trainables


@answers.right
class ByEinsum(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.einsum("...i,i->...i", x, trainables["scale"].astype(x.dtype)), non_trainables


@answers.right
class AroundThePackage(nn.Layer):
    def init(self, key, x):
        return nn.Scale().init(key, x)

    def fwd(self, x, trainables, non_trainables, **options):
        return nn.Scale().fwd(x, trainables, non_trainables, **options)


answers.equivalent(
    "return ({'scale': jnp.ones(x.shape[-1:], x.dtype)}, ()): rounded to float16",
    because="ones are exact in float16",
)
