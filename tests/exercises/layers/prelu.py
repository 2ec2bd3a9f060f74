"""Answers to the exercise layers.prelu."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.layers.prelu import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    slope: float = 0.25

    def init(self, key, x):
        return {"slope": jnp.full(x.shape[-1:], self.slope, x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        slope = trainables["slope"].astype(x.dtype)
        return jnp.where(x > 0, x, slope * x), non_trainables


@answers.wrong("may leave that range")
class Maximum(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.maximum(x, trainables["slope"].astype(x.dtype) * x), non_trainables


@answers.wrong("The hyperparameter is used")
class UsesTheField(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.where(x > 0, x, self.slope * x), non_trainables


@answers.wrong("belongs to the other side")
class OtherSide(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        slope = trainables["slope"].astype(x.dtype)
        return jnp.where(x < 0, x, slope * x), non_trainables


@answers.wrong("the slope is a factor")
class NotAFactor(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.where(x > 0, x, trainables["slope"].astype(x.dtype)), non_trainables


@answers.wrong("`PReLU(0.125)` should begin at 0.125")
class AlwaysAQuarter(Right):
    def init(self, key, x):
        return {"slope": jnp.full(x.shape[-1:], 0.25, x.dtype)}, ()


@answers.wrong("should have the shape (4,)")
class OneForAll(Right):
    def init(self, key, x):
        return {"slope": jnp.asarray(self.slope, x.dtype)}, ()


@answers.wrong("There are no non_trainables")
class AmongTheOthers(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables, {"slope": trainables["slope"]}


@answers.wrong("a Python `if` chooses once")
class ChoosesOnce(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        slope = trainables["slope"].astype(x.dtype)
        return (x if (x > 0).all() else slope * x), non_trainables


# Wrong ones that look right


@answers.wrong("*weights of another dtype*")
class Promotes(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.where(x > 0, x, trainables["slope"] * x), non_trainables


@answers.wrong()
class PythonBranch(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if bool((x > 0).all()):
            return x, non_trainables
        return jnp.where(x > 0, x, trainables["slope"].astype(x.dtype) * x), non_trainables


# Right ones of unusual style


@answers.right
class ByParts(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        slope = trainables["slope"].astype(x.dtype)
        return jax.nn.relu(x) - slope * jax.nn.relu(-x), non_trainables


@answers.right
class ByMinimum(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        slope = trainables["slope"].astype(x.dtype)
        zero = jnp.zeros_like(x)
        return jnp.maximum(x, zero) + slope * jnp.minimum(x, zero), non_trainables


@answers.right
class ByLeakyReLU(Right):
    def init(self, key, x):
        return {"slope": self.slope * jnp.ones_like(x, shape=x.shape[-1:])}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jax.nn.leaky_relu(x, trainables["slope"].astype(x.dtype)), non_trainables


@answers.wrong("`PReLU(0.1)` should begin at 0.1")
class BeginsInHalf(Right):
    def init(self, key, x):
        return {"slope": jnp.full(x.shape[-1:], self.slope, jnp.float16).astype(x.dtype)}, ()


answers.equivalent(
    "x > 0 -> x >= 0",
    because="at zero both sides are zero, and the task does not say which of the two slopes is that of zero",
)
