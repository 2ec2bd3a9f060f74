"""Answers to the exercise optimizers.adamw."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.optimizers._chapter import Tunable, average, squared, zeros
from mlax_tutorial.exercises.optimizers.adamw import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Base(Tunable):
    """AdamW with a place for each mistake."""

    learning_rate: float
    weight_decay: float = 0.01
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8

    def init(self, weights):
        return jnp.float32(0), zeros(weights), zeros(weights)

    def decays(self, w):
        return w.ndim >= 2

    def count(self, t):
        return t

    def pulled(self, direction, w):
        return direction + self.weight_decay * w if self.decays(w) else direction

    def before(self, gradients, weights):
        return gradients

    def share(self, decay, t):
        return 1 - decay**t

    def step(self, gradients, state, weights):
        gradients = self.before(gradients, weights)
        t, mean, square = state[0] + 1, *state[1:]
        mean = average(self.first_decay, mean, gradients)
        square = average(self.second_decay, square, squared(gradients))

        def move(m, s, w):
            m, s = m / self.share(self.first_decay, t), s / self.share(self.second_decay, t)
            return -self.learning_rate * self.pulled(m / (jnp.sqrt(s) + self.epsilon), w)

        return jax.tree.map(move, mean, square, weights), (self.count(t), mean, square)


@answers.wrong("an array with one axis, decays, too")
class All(Base):
    def decays(self, w):
        return True


@answers.wrong("it is the other way round")
class Others(Base):
    def decays(self, w):
        return w.ndim < 2


@answers.wrong("No weight decays")
class Plain(Base):
    def decays(self, w):
        return False


def penalty(self, gradients, weights):
    return jax.tree.map(lambda g, w: g + self.weight_decay * w if w.ndim >= 2 else g, gradients, weights)


@answers.wrong("as a penalty in the loss does")
class Penalty(Plain):
    before = penalty


@answers.wrong("of all weights: it should be added")
class PenaltyOfAll(Plain):
    def before(self, gradients, weights):
        return jax.tree.map(lambda g, w: g + self.weight_decay * w, gradients, weights)


@answers.wrong("not multiplied by the learning rate")
class WithoutRate(Base):
    def pulled(self, direction, w):
        return direction + self.weight_decay / self.learning_rate * w if self.decays(w) else direction


@answers.wrong("away from zero")
class Pushes(Base):
    def pulled(self, direction, w):
        return direction - self.weight_decay * w if self.decays(w) else direction


@answers.wrong("are not divided by 1 - decay**t")
class Uncorrected(Base):
    def share(self, decay, t):
        return 1.0


@answers.wrong("The count stays at 1")
class Stands(Base):
    def count(self, t):
        return t - 1


@answers.wrong("is not subscriptable")
class Counts(Base):  # a typing error
    def step(self, gradients, state, weights):
        return super().step(gradients, state.count, weights)


@answers.wrong()
class InPlace(Base):  # eps under the root, too large to be none
    def init(self, weights):
        return jnp.float32(1), zeros(weights), zeros(weights)  # begins at the second step


@answers.wrong()
class Sticks(Base):  # the averages of the first step are never left
    def step(self, gradients, state, weights):
        updates, after = super().step(gradients, state, weights)
        return updates, (after[0], *state[1:])


answers.right(Base)


class State(NamedTuple):
    count: Any
    moments: Any


@answers.right
class PairsInALeaf(Tunable):  # both averages side by side, an int32 count
    learning_rate: float
    weight_decay: float = 0.01
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8

    def init(self, weights):
        return State(jnp.int32(0), {"m": zeros(weights), "s": zeros(weights)})

    def step(self, gradients, state, weights):
        count = state.count + 1
        m = jax.tree.map(lambda a, g: a + (1 - self.first_decay) * (g - a), state.moments["m"], gradients)
        s = jax.tree.map(
            lambda a, g: a + (1 - self.second_decay) * (g * g - a), state.moments["s"], gradients
        )
        scale = jnp.sqrt(1 - self.second_decay**count) / (1 - self.first_decay**count)
        root = jnp.sqrt(1 - self.second_decay**count)

        def one(m, s, w):
            pull = self.weight_decay * w * (jnp.ndim(w) > 1)
            return -self.learning_rate * (scale * m / (jnp.sqrt(s) + self.epsilon * root) + pull)

        return jax.tree.map(one, m, s, weights), State(count, {"m": m, "s": s})


@answers.right
class Leaves(Base):
    def step(self, gradients, state, weights):
        updates, state = super().step(gradients, state, weights)
        leaves, structure = jax.tree.flatten(updates)
        return jax.tree.unflatten(structure, leaves), state
