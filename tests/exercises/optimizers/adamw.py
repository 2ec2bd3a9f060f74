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


class Divides(Base):
    """With another divisor."""

    def divisor(self, s, t):
        raise NotImplementedError

    def step(self, gradients, state, weights):
        t, mean, square = state[0] + 1, *state[1:]
        mean = average(self.first_decay, mean, gradients)
        square = average(self.second_decay, square, squared(gradients))

        def move(m, s, w):
            m = m / (1 - self.first_decay**t)
            return -self.learning_rate * self.pulled(m / self.divisor(s, t), w)

        return jax.tree.map(move, mean, square, weights), (t, mean, square)


@answers.wrong("The epsilon stands under the root")
class InsideTheRoot(Divides):
    def divisor(self, s, t):
        return jnp.sqrt(s / (1 - self.second_decay**t) + self.epsilon)


@answers.wrong("the epsilon is missing in the divisor")
class NoEpsilon(Divides):
    def divisor(self, s, t):
        return jnp.sqrt(s / (1 - self.second_decay**t))


@answers.wrong("The epsilon is always 1e-8")
class FixedEpsilon(Divides):
    def divisor(self, s, t):
        return jnp.sqrt(s / (1 - self.second_decay**t)) + 1e-8


@answers.wrong("the average as it is stored")
class EpsilonHat(Divides):
    def divisor(self, s, t):
        return (jnp.sqrt(s) + self.epsilon) / jnp.sqrt(1 - self.second_decay**t)


@answers.wrong("Only arrays with exactly two axes decay")
class ExactlyTwo(Base):
    def decays(self, w):
        return w.ndim == 2


@answers.wrong("whose gradients are all zero should decay")
class OnlyWhereItMoves(Base):
    def step(self, gradients, state, weights):
        updates, state = super().step(gradients, state, weights)
        still = lambda u, m, w: jnp.where(m == 0, 0, u) if self.decays(w) else u  # noqa: E731
        return jax.tree.map(still, updates, state[1], weights), state


@answers.wrong("is one number of bfloat16")
class CountsTo256(Base):
    def init(self, weights):
        return jnp.bfloat16(0), zeros(weights), zeros(weights)

    def count(self, t):
        return t.astype(jnp.bfloat16)


@answers.wrong("The average of the gradients is not divided")
class OnlySquaresCorrected(Base):
    def share(self, decay, t):
        return jnp.where(decay == self.first_decay, 1.0, 1 - decay**t)


@answers.wrong("The average of the squares is not divided")
class OnlyGradientsCorrected(Base):
    def share(self, decay, t):
        return jnp.where(decay == self.second_decay, 1.0, 1 - decay**t)


@answers.wrong("The count is one ahead")
class OneAhead(Base):
    def share(self, decay, t):
        return 1 - decay ** (t + 1)


@answers.wrong("You return the new weights")
class NewWeights(Base):
    def step(self, gradients, state, weights):
        updates, state = super().step(gradients, state, weights)
        return jax.tree.map(jnp.add, weights, updates), state


@answers.wrong("are one array, which cannot be donated twice")
class OneTreeOfZeros(Base):
    def init(self, weights):
        z = zeros(weights)
        return jnp.float32(0), z, z


@answers.wrong("The default of `weight_decay` was 0.01")
class OtherDefault(Tunable):
    learning_rate: float
    weight_decay: float = 0.1
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8

    init, step, decays, count, pulled = Base.init, Base.step, Base.decays, Base.count, Base.pulled
    before, share = Base.before, Base.share


@answers.wrong()
class ByName(Base):  # by the name of the path, which need not tell
    def step(self, gradients, state, weights):
        plain, state = Plain.step(Inherits(self), gradients, state, weights)

        def pull(path, u, w):
            named = "bias" not in jax.tree_util.keystr(path)
            return u - self.learning_rate * self.weight_decay * w if named else u

        return jax.tree_util.tree_map_with_path(pull, plain, weights), state


def Inherits(one):
    return Plain(one.learning_rate, one.weight_decay, one.first_decay, one.second_decay, one.epsilon)


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


class Adam(Tunable):
    """The chapter's."""

    learning_rate: float
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8

    init, before, count, share, pulled = Base.init, Base.before, Base.count, Base.share, Base.pulled
    step = Base.step

    def decays(self, w):
        return False


@answers.right
class OnTop(Adam):  # the field of the decay comes last
    weight_decay: float = 0.01

    def step(self, gradients, state, weights):
        updates, state = super().step(gradients, state, weights)
        pull = self.learning_rate * self.weight_decay
        return jax.tree.map(lambda u, w: u - pull * w if w.ndim > 1 else u, updates, weights), state


def over(function, *trees):
    """A map over dicts and tuples, written by hand: lists and other nodes are no leaves of its."""
    if isinstance(trees[0], dict):
        return {name: over(function, *[tree[name] for tree in trees]) for name in trees[0]}
    if isinstance(trees[0], tuple):
        return tuple(over(function, *parts) for parts in zip(*trees))
    return function(*trees)


@answers.wrong("a single number, decays, too")
class AllButOneAxis(Base):
    def decays(self, w):
        return w.ndim != 1


@answers.wrong()
class TwoOrThreeAxes(Base):
    def decays(self, w):
        return w.ndim in (2, 3)


@answers.wrong()
class GradientsCutOff(Base):
    def step(self, gradients, state, weights):
        return super().step(jax.tree.map(lambda g: jnp.clip(g, -5, 5), gradients), state, weights)


@answers.wrong()
class DictsAndTuples(Base):
    def step(self, gradients, state, weights):
        t, mean, square = state[0] + 1, *state[1:]
        mean = over(lambda m, g: self.first_decay * m + (1 - self.first_decay) * g, mean, gradients)
        square = over(lambda s, g: self.second_decay * s + (1 - self.second_decay) * g**2, square, gradients)

        def move(m, s, w):
            m, s = m / (1 - self.first_decay**t), s / (1 - self.second_decay**t)
            return -self.learning_rate * self.pulled(m / (jnp.sqrt(s) + self.epsilon), w)

        return over(move, mean, square, weights), (t, mean, square)


@answers.wrong()
class CountsInInt8(Base):
    """From the 12th step on the count stands still."""

    def init(self, weights):
        return jnp.int8(0), zeros(weights), zeros(weights)

    def step(self, gradients, state, weights):
        return super().step(gradients, (jnp.minimum(state[0], 11), *state[1:]), weights)


@answers.right
class APairForEachWeight(Tunable):
    """The state is a tree of pairs."""

    learning_rate: float
    weight_decay: float = 0.01
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8

    def init(self, weights):
        return jnp.int32(0), jax.tree.map(lambda w: {"mean": 0.0 * w, "square": 0.0 * w}, weights)

    def step(self, gradients, state, weights):
        t = state[0] + 1
        leaves, structure = jax.tree.flatten(gradients)
        pairs = [
            {
                "mean": self.first_decay * pair["mean"] + (1 - self.first_decay) * g,
                "square": self.second_decay * pair["square"] + (1 - self.second_decay) * g**2,
            }
            for pair, g in zip(structure.flatten_up_to(state[1]), leaves)
        ]

        def move(pair, w):
            m, s = pair["mean"] / (1 - self.first_decay**t), pair["square"] / (1 - self.second_decay**t)
            return -self.learning_rate * (
                m / (jnp.sqrt(s) + self.epsilon) + self.weight_decay * w * (w.ndim >= 2)
            )

        updates = [move(pair, w) for pair, w in zip(pairs, jax.tree.leaves(weights))]
        return structure.unflatten(updates), (t, structure.unflatten(pairs))


@answers.wrong("right but for their last digits")
class RoundsTheUpdates(Base):
    def step(self, gradients, state, weights):
        updates, state = super().step(gradients, state, weights)
        return jax.tree.map(lambda u: u.astype(jnp.float16).astype(u.dtype), updates), state


answers.equivalent(
    "return (jnp.int32(0), zeros(weights), zeros(weights)): rounded to float16",
    because="zeros are exact in float16",
)
