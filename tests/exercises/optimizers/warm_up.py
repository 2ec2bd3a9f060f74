"""Answers to the exercise optimizers.warm_up."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.optimizers._chapter import Tunable
from mlax_tutorial.exercises.optimizers.warm_up import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Base(Tunable):
    rise: float
    steps: float


@answers.wrong("goes on falling below zero")
class Unclipped(Base):
    def __call__(self, count):
        return jnp.minimum(count / self.rise, (self.steps - count) / (self.steps - self.rise))


@answers.wrong("The fall does not begin at 1: it")
class FromTheStart(Base):
    def __call__(self, count):
        up, down = count / self.rise, jnp.maximum((self.steps - count) / self.steps, 0)
        return jnp.where(count <= self.rise, up, down)


@answers.wrong("The fall is too flat")
class TooFlat(Base):
    def __call__(self, count):
        down = 1 - (count - self.rise) / self.steps
        return jnp.clip(jnp.minimum(count / self.rise, down), 0, 1)


@answers.wrong("The rise begins above zero")
class OneAhead(Base):
    def __call__(self, count):
        up = jnp.minimum((count + 1) / self.rise, 1)
        down = jnp.maximum((self.steps - count) / (self.steps - self.rise), 0)
        return jnp.where(count <= self.rise, up, down)


@answers.wrong("the fall is missing")
class OnlyRises(Base):
    def __call__(self, count):
        return jnp.clip(count / self.rise, 0, 1)


@answers.wrong("The rise is missing")
class OnlyFalls(Base):
    def __call__(self, count):
        return jnp.clip((self.steps - count) / (self.steps - self.rise), 0, 1)


@answers.wrong("never reaches 1")
class Product(Base):
    def __call__(self, count):
        return jnp.clip(count / self.rise, 0, 1) * jnp.clip(1 - count / self.steps, 0, 1)


@answers.wrong("Your code raised TracerBoolConversionError")
class Decides(Base):
    def __call__(self, count):
        if count < self.rise:
            return count / self.rise
        return jnp.clip((self.steps - count) / (self.steps - self.rise), 0, 1)


def right(self, count):
    return jnp.clip(jnp.minimum(count / self.rise, (self.steps - count) / (self.steps - self.rise)), 0, 1)


@answers.wrong("traced again")
class Static:
    def __init__(self, rise, steps):
        self.rise, self.steps = rise, steps

    __call__ = right


jax.tree_util.register_pytree_node(
    Static, lambda self: ((), (self.rise, self.steps)), lambda numbers, leaves: Static(*numbers)
)


@answers.wrong("are built in")
class Constants(Base):
    def __call__(self, count):
        return jnp.clip(jnp.minimum(count / 4.0, (10.0 - count) / 6.0), 0, 1)


@answers.wrong("the factor jumps at the peak")
class Jumps(Base):
    def __call__(self, count):
        return jnp.where(count < self.rise, count / self.rise, jnp.maximum(1 - count / self.steps, 0))


@answers.wrong("The rise is no straight line")
class Steps(Base):
    def __call__(self, count):
        down = jnp.maximum((self.steps - count) / (self.steps - self.rise), 0)
        return jnp.where(count <= self.rise, count // self.rise, down)


@answers.wrong("JAX does not know your class")
@dataclass(frozen=True)
class Plain:
    rise: float
    steps: float

    __call__ = right


@answers.wrong()
class WholeNumbers(Base):  # right at the ends
    def __call__(self, count):
        return jnp.floor(right(self, count))


@answers.wrong()
class Quadratic(Base):
    def __call__(self, count):
        return right(self, count) ** 2


@answers.right
class ByWhere(Base):
    def __call__(self, count):
        up, down = count / self.rise, (self.steps - count) / (self.steps - self.rise)
        return jnp.where(count < self.rise, up, jnp.maximum(down, 0.0))


@answers.right
class ByInterpolation(Base):
    def __call__(self, count):
        zero = jnp.zeros_like(self.rise)
        return jnp.interp(count, jnp.stack([zero, self.rise, self.steps]), jnp.array([0.0, 1.0, 0.0]))


@answers.right
class ByCond(Base):
    def __call__(self, count):
        count = count.astype(jnp.float32)
        return jax.lax.cond(
            count < self.rise,
            lambda: count / self.rise,
            lambda: jnp.maximum((self.steps - count) / (self.steps - self.rise), 0.0),
        )


def by_formula(count, rise, steps):
    return jnp.clip(jnp.minimum(count / rise, (steps - count) / (steps - rise)), 0.0, 1.0)


@answers.wrong()
class CountInBfloat16(Base):
    def __call__(self, count):
        return by_formula(count.astype(jnp.bfloat16), self.rise, self.steps)


@answers.wrong()
class CountInInt16(Base):
    def __call__(self, count):
        return by_formula(count.astype(jnp.int16), self.rise, self.steps)


@answers.wrong()
class WholeNumbersOfSteps(Base):
    def __call__(self, count):
        return by_formula(count, self.rise.astype(jnp.int32), self.steps.astype(jnp.int32))


@answers.wrong()
class ShortRisesOnly(Base):
    def __call__(self, count):
        down = 1 - jnp.abs(count - self.rise) / (self.steps - self.rise)
        short = self.rise < self.steps / 2
        return jnp.clip(jnp.where(short, jnp.minimum(count / self.rise, down), down), 0, 1)


@answers.wrong()
class RisesAgain(Base):
    def __call__(self, count):
        return by_formula(count % 100, self.rise, self.steps)
