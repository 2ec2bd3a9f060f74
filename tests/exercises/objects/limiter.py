"""Answers to the exercise objects.limiter."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.objects.limiter import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    def init(self, key, x):
        ones = jnp.ones(x.shape[-1:], x.dtype)
        return {"gain": ones}, {"largest": ones}

    def output(self, x, gain, largest):
        return gain.astype(x.dtype) * x / largest.astype(x.dtype)

    def seen(self, x, largest):
        axes = tuple(range(x.ndim - 1))
        return jnp.maximum(largest, jnp.abs(x).max(axis=axes).astype(largest.dtype))

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        largest = non_trainables["largest"]
        new = largest if inference_mode else self.seen(x, largest)
        return self.output(x, trainables["gain"], largest), {"largest": new}


@answers.wrong("divides by the new largest value")
class DividesByTheNew(Right):
    def output(self, x, gain, largest):
        return super().output(x, gain, self.seen(x, largest))


@answers.wrong("is not updated")
class NeverUpdates(Right):
    def seen(self, x, largest):
        return largest


@answers.wrong("updated in inference, too")
class AlwaysUpdates(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return super().fwd(x, trainables, non_trainables)


@answers.wrong("does not divide by `largest`")
class DoesNotDivide(Right):
    def output(self, x, gain, largest):
        return gain.astype(x.dtype) * x


@answers.wrong("does not multiply by `gain`")
class DoesNotMultiply(Right):
    def output(self, x, gain, largest):
        return x / largest.astype(x.dtype)


@answers.wrong('should be a dict with "gain"')
class TrainsBoth(Right):
    def init(self, key, x):
        trainables, non_trainables = super().init(key, x)
        return trainables | non_trainables, ()


@answers.wrong("with a number for each feature")
class OneForAll(Right):
    def seen(self, x, largest):
        return jnp.maximum(largest, jnp.abs(x).max()).max()


@answers.wrong("begins at 1 in the object")
class BeginsAtZero(Right):
    def init(self, key, x):
        return jax.tree.map(jnp.zeros_like, super().init(key, x))


@answers.wrong("*weights of another dtype*")
class NoCast(Right):
    def output(self, x, gain, largest):
        return gain * x / largest


@answers.wrong()
class SignedLargest(Right):
    def seen(self, x, largest):
        return jnp.maximum(largest, x.reshape(-1, x.shape[-1]).max(axis=0))


@answers.wrong("The new state has the dtype of the old one")
class StateLikeInput(Right):
    def fwd(self, *args, **options):
        y, state = super().fwd(*args, **options)
        return y, {"largest": state["largest"].astype(y.dtype)}


@answers.wrong()
class ForgetsTheOld(Right):
    def seen(self, x, largest):
        return jnp.abs(x).max(axis=tuple(range(x.ndim - 1))).astype(largest.dtype)


@answers.wrong()
class AbsoluteOfTheMaximum(Right):
    def seen(self, x, largest):
        seen = jnp.abs(x.max(axis=tuple(range(x.ndim - 1))))
        return jnp.maximum(largest, seen.astype(largest.dtype))


@answers.wrong()
class OneTypeForAll(Right):
    def init(self, key, x):
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), super().init(key, x))


answers.right(Right)


@answers.right
class WithWhere(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        gain, largest = trainables["gain"].astype(x.dtype), non_trainables["largest"]
        y = x * (gain / largest.astype(x.dtype))
        return y, non_trainables if inference_mode else {"largest": self.seen(x, largest)}


@answers.right
class WithReduce(Right):
    def seen(self, x, largest):
        rows = jnp.abs(x).reshape(-1, x.shape[-1]).astype(largest.dtype)
        return jnp.concatenate([largest[None], rows]).max(axis=0)


@answers.wrong("a state of float32 it is float32")
class PromotesByTheState(Right):
    def output(self, x, gain, largest):
        return gain.astype(x.dtype) * x / largest


@answers.wrong("for a state of bfloat16 and a float32 input")
class WidensTheState(Right):
    def seen(self, x, largest):
        return jnp.maximum(largest, jnp.abs(x).reshape(-1, x.shape[-1]).max(axis=0))


@answers.wrong()
class OfFourFeatures(Right):
    def seen(self, x, largest):
        return jnp.maximum(largest, jnp.abs(x).reshape(-1, 4).max(axis=0).astype(largest.dtype))


answers.equivalent(
    "return ({'gain': ones}, {'largest': ones}): rounded to float16",
    because="ones are exact in float16",
)
