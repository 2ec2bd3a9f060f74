"""Answers to the exercise objects.center."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.objects._modules import Module, Parameter, Variable
from mlax_tutorial.exercises.objects.center import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(Module):
    def __init__(self, features, rate=0.1):
        self.shift = Parameter(jnp.zeros(features))
        self.mean = Variable(jnp.zeros(features))
        self.rate = rate

    def moved(self, x):
        new = x.reshape(-1, x.shape[-1]).mean(axis=0)
        return self.mean.value + self.rate * (new - self.mean.value)

    def __call__(self, x, training=True):
        y = x - self.mean.value + self.shift.value
        if training:
            self.mean.value = self.moved(x)
        return y


@answers.wrong("subtracts the new mean")
class UpdatesFirst(Right):
    def __call__(self, x, training=True):
        if training:
            self.mean.value = self.moved(x)
        return x - self.mean.value + self.shift.value


@answers.wrong("The box is gone")
class LosesTheBox(Right):
    def __call__(self, x, training=True):
        y = x - self.mean.value + self.shift.value
        if training:
            self.mean = self.moved(x)
        return y


@answers.wrong("and no `Parameter`")
class TrainsTheMean(Right):
    def __init__(self, features, rate=0.1):
        super().__init__(features, rate)
        self.mean = Parameter(jnp.zeros(features))


@answers.wrong("The rate should be static")
class BoxedRate(Right):
    def __init__(self, features, rate=0.1):
        super().__init__(features)
        self.boxed = Variable(jnp.float32(rate))
        self.rate = rate


@answers.wrong("should have an attribute `rate`")
class OtherName(Right):
    def __init__(self, features, rate=0.1):
        super().__init__(features, rate)
        self.momentum = self.__dict__.pop("rate")

    def moved(self, x):
        new = x.reshape(-1, x.shape[-1]).mean(axis=0)
        return self.mean.value + self.momentum * (new - self.mean.value)


@answers.wrong("adds the attribute `last`")
class KeepsTheInput(Right):
    def __call__(self, x, training=True):
        self.last = x
        return super().__call__(x, training)


@answers.wrong("return y alone")
class ReturnsAPair(Right):
    def __call__(self, x, training=True):
        return super().__call__(x, training), self.mean.value


@answers.wrong("the mean should stay as it is")
class AlwaysUpdates(Right):
    def __call__(self, x, training=True):
        return super().__call__(x)


@answers.wrong("The mean did not move")
class NeverUpdates(Right):
    def __call__(self, x, training=True):
        return super().__call__(x, training=False)


@answers.wrong("over all axes but the last")
class OneAxis(Right):
    def moved(self, x):
        return self.mean.value + self.rate * (x.mean(axis=0) - self.mean.value)


@answers.wrong("should move by `rate`")
class KeepsTheRate(Right):
    def moved(self, x):
        return self.rate * x.mean(axis=(0, 1))


@answers.wrong("should be 0.1")
class OtherDefault(Right):
    def __init__(self, features, rate=0.9):
        super().__init__(features, rate)


@answers.wrong("should derive from `Module`")
class NoModule:
    __init__, moved, __call__ = Right.__init__, Right.moved, Right.__call__


answers.right(Right)


@answers.wrong("gradient with respect to x is lost")
class StopsTheInput(Right):
    def __call__(self, x, training=True):
        return super().__call__(jax.lax.stop_gradient(x), training) + 0 * x


@answers.wrong("gets another gradient than it should")
class StopsTheShift(Right):
    def __call__(self, x, training=True):
        shift = self.shift.value
        return super().__call__(x, training) - shift + jax.lax.stop_gradient(shift)


@answers.wrong("an array outside of a box")
class ArrayForARate(Right):
    def __init__(self, features, rate=0.1):
        super().__init__(features, jnp.float32(rate))


@answers.wrong("wrong for two features")
class TwoAxes(Right):
    def moved(self, x):
        return self.mean.value + self.rate * (x.mean(axis=(0, 1)) - self.mean.value)


@answers.wrong()
class ThreeFeatures(Right):
    def __init__(self, features, rate=0.1):
        super().__init__(3, rate)


@answers.wrong("is no `Variable` any more")
class BecomesAParameter(Right):
    def __call__(self, x, training=True):
        y = x - self.mean.value + self.shift.value
        if training:
            self.mean = Parameter(self.moved(x))
        return y


@answers.wrong("should move by `rate`")
class RateOfTheOld(Right):
    def moved(self, x):
        return self.rate * self.mean.value + (1 - self.rate) * x.mean(axis=tuple(range(x.ndim - 1)))


@answers.right
class WithWhere(Right):
    def __call__(self, x, training=True):
        y = x - self.mean.value + self.shift.value
        self.mean.value = jnp.where(training, self.moved(x), self.mean.value)
        return y


@answers.right
class NumPyRate(Right):
    def __init__(self, features, rate=0.1):
        super().__init__(features, np.float32(rate))


@answers.right
class WithLax(Right):
    def moved(self, x):
        batch = jnp.mean(jax.lax.collapse(x, 0, x.ndim - 1), 0)
        return jax.lax.add(self.mean.value, jnp.multiply(self.rate, batch - self.mean.value))


@answers.right
class InPlace(Right):
    def __call__(self, x, training=True):
        old = self.mean.value
        if training:
            self.mean.value += self.rate * (jnp.mean(x, axis=tuple(range(x.ndim - 1))) - old)
        return x - old + self.shift.value


@answers.right
class NewBox(Module):
    def __init__(self, features, rate=0.1):
        self.rate, self.mean, self.shift = (
            rate,
            Variable(jnp.zeros((features,))),
            Parameter(jnp.zeros((features,))),
        )

    def __call__(self, x, training=True):
        y = x - self.mean.value + self.shift.value
        if training:
            batch = x.reshape(-1, x.shape[-1]).mean(axis=0)
            self.mean = Variable((1 - self.rate) * self.mean.value + self.rate * batch)
        return y


@answers.wrong("has lost digits")
class Rounds(Right):
    def __call__(self, x, training=True):
        return super().__call__(x, training).astype(jnp.float16).astype(x.dtype)
