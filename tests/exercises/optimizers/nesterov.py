"""Answers to the exercise optimizers.nesterov."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from mlax_tutorial import optim
from mlax_tutorial.exercises.optimizers._chapter import Tunable, zeros
from mlax_tutorial.exercises.optimizers.nesterov import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Base(Tunable):
    """Nesterov's step with a place for each mistake."""

    learning_rate: float
    decay: float = 0.9

    def init(self, weights):
        return zeros(weights)

    def push(self, velocity, gradients):
        return jax.tree.map(lambda v, g: self.decay * v + g, velocity, gradients)

    def move(self, directions):
        return jax.tree.map(lambda d: -self.learning_rate * d, directions)

    def step(self, gradients, velocity, weights):
        velocity = self.push(velocity, gradients)
        return self.move(self.push(velocity, gradients)), velocity


@answers.wrong("This is plain momentum")
class LooksBack(Base):
    def step(self, gradients, velocity, weights):
        new = self.push(velocity, gradients)
        return self.move(self.push(velocity, gradients)), new


@answers.wrong("need a minus")
class Uphill(Base):
    def move(self, directions):
        return jax.tree.map(lambda d: self.learning_rate * d, directions)


@answers.wrong("In this convention it enters whole")
class Averages(Base):
    def push(self, velocity, gradients):
        return jax.tree.map(lambda v, g: self.decay * v + (1 - self.decay) * g, velocity, gradients)


@answers.wrong("the direction that looked ahead")
class RemembersAhead(Base):
    def step(self, gradients, velocity, weights):
        ahead = self.push(self.push(velocity, gradients), gradients)
        return self.move(ahead), ahead


@answers.wrong("the velocity is lost")
class Forgets(Base):
    def step(self, gradients, velocity, weights):
        updates, _ = super().step(gradients, velocity, weights)
        return updates, velocity


@answers.wrong("The decay is always 0.9")
class FixedDecay(Base):
    def push(self, velocity, gradients):
        return jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)


@answers.wrong("The rate is a part of your velocity")
class RateInside(Base):
    def step(self, gradients, velocity, weights):
        push = lambda v, g: self.decay * v - self.learning_rate * g  # noqa: E731
        velocity = jax.tree.map(push, velocity, gradients)
        return jax.tree.map(push, velocity, gradients), velocity


@answers.wrong("`learning_rate` makes no difference")
class OwnRate(Base):
    def move(self, directions):
        return jax.tree.map(lambda d: -0.01 * d, directions)


@answers.wrong("A new learning rate, at the third step")
class LuckyRate(Base):
    def move(self, directions):
        return jax.tree.map(lambda d: -0.1 * d, directions)


@answers.wrong("You return the new weights")
class NewWeights(Base):
    def step(self, gradients, velocity, weights):
        updates, velocity = super().step(gradients, velocity, weights)
        return jax.tree.map(jnp.add, weights, updates), velocity


@answers.wrong("You return the state first")
class StateFirst(Base):
    def step(self, gradients, velocity, weights):
        return super().step(gradients, velocity, weights)[::-1]


@answers.wrong("The default of `decay` was 0.9")
class OtherDefault(Tunable):
    learning_rate: float
    decay: float = 0.99

    init, push, move, step = Base.init, Base.push, Base.move, Base.step


@answers.wrong("must return a pair")
class OnlyUpdates(Base):
    def step(self, gradients, velocity, weights):
        return super().step(gradients, velocity, weights)[0]


@answers.wrong("JAX does not know your class")
@dataclass(frozen=True)
class NotAPytree:
    learning_rate: float
    decay: float = 0.9

    def init(self, weights):
        return zeros(weights)

    def step(self, gradients, velocity, weights):
        velocity = jax.tree.map(lambda v, g: self.decay * v + g, velocity, gradients)
        updates = jax.tree.map(lambda v, g: -self.learning_rate * (self.decay * v + g), velocity, gradients)
        return updates, velocity


@answers.wrong("updates first, a tree built like the weights")
class Swapped(Base):
    def step(self, gradients, velocity, weights):
        updates, velocity = super().step(gradients, velocity, weights)
        return (velocity, velocity), updates


@answers.wrong()
class WithoutNumbers(Base):  # right at the first step, but for a state of a bare number
    def init(self, weights):
        return jax.tree.map(lambda w: jnp.zeros(()), weights)


@answers.wrong("all its numbers must be leaves")
@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class StaticRate:  # right numbers, but another rate is another program
    learning_rate: float
    decay: float = 0.9

    def tree_flatten(self):
        return (jnp.float32(self.decay),), self.learning_rate

    @classmethod
    def tree_unflatten(cls, rate, leaves):
        return cls(rate, *leaves)

    init, step = NotAPytree.init, NotAPytree.step


answers.right(Base)


@answers.right
class FromThePackage(Tunable):
    learning_rate: float
    decay: float = 0.9

    def init(self, weights):
        return jax.tree.map(jnp.zeros_like, weights)

    def step(self, gradients, velocity, weights):
        leaves, structure = jax.tree.flatten(gradients)
        new = [self.decay * v + g for v, g in zip(jax.tree.leaves(velocity), leaves)]
        moves = [-self.learning_rate * (self.decay * v + g) for v, g in zip(new, leaves)]
        return jax.tree.unflatten(structure, moves), jax.tree.unflatten(structure, new)


@answers.right
class Scaled(Tunable):  # the velocity carries the whole state in a dict
    learning_rate: float
    decay: float = 0.9

    def init(self, weights):
        return {"velocity": optim.SGD(0.1, momentum=0.9).init(weights).velocity}

    def step(self, gradients, state, weights):
        inner = optim.SGD(self.learning_rate, momentum=self.decay, nesterov=True)
        updates, after = inner.step(gradients, optim.SGDState(state["velocity"], jnp.int32(0)), weights)
        return updates, {"velocity": after.velocity}


def over(function, *trees):
    """A map over dicts and tuples, written by hand: lists and other nodes are no leaves of its."""
    if isinstance(trees[0], dict):
        return {name: over(function, *[tree[name] for tree in trees]) for name in trees[0]}
    if isinstance(trees[0], tuple):
        return tuple(over(function, *parts) for parts in zip(*trees))
    return function(*trees)


@answers.wrong()
class DictsAndTuples(Base):
    def init(self, weights):
        return over(jnp.zeros_like, weights)

    def step(self, gradients, velocity, weights):
        velocity = over(lambda v, g: self.decay * v + g, velocity, gradients)
        return over(lambda v, g: -self.learning_rate * (self.decay * v + g), velocity, gradients), velocity


@answers.wrong("is not built like the one of `init`")
class NoStateUntilTheFirstStep(Base):
    def init(self, weights):
        return ()

    def step(self, gradients, velocity, weights):
        return super().step(gradients, zeros(gradients) if velocity == () else velocity, weights)


@answers.wrong()
class StoresDecayTimesVelocity(Base):
    """Another decay comes too late."""

    def step(self, gradients, velocity, weights):
        ahead = jax.tree.map(lambda v, g: self.decay * (v + g), velocity, gradients)
        return self.move(jax.tree.map(jnp.add, ahead, gradients)), ahead


@answers.wrong()
class DecayOfTheFirstThree(Base):
    def init(self, weights):
        return jnp.int32(0), zeros(weights)

    def step(self, gradients, state, weights):
        count, velocity = state
        decay = jnp.where(count < 3, self.decay, 0.99)
        push = lambda v, g: decay * v + g  # noqa: E731
        velocity = jax.tree.map(push, velocity, gradients)
        return self.move(jax.tree.map(push, velocity, gradients)), (count + 1, velocity)


@answers.right
class OnePass(Base):
    """Pairs, transposed, which no empty tree can be."""

    def step(self, gradients, velocity, weights):
        def both(v, g):
            v = self.decay * v + g
            return -self.learning_rate * (self.decay * v + g), v

        pairs = jax.tree.map(both, velocity, gradients)
        return jax.tree.transpose(jax.tree.structure(gradients), jax.tree.structure((0, 0)), pairs)


@answers.wrong()
class VelocityCutOff(Base):
    def push(self, velocity, gradients):
        return jax.tree.map(lambda v: jnp.clip(v, -10, 10), super().push(velocity, gradients))


@answers.right
class ByTheDifference(Base):
    """The gradient is what the velocity has gained."""

    def step(self, gradients, velocity, weights):
        new = self.push(velocity, gradients)
        return self.move(jax.tree.map(lambda v, old: v + self.decay * (v - old), new, velocity)), new


answers.equivalent("return zeros(weights): rounded to float16", because="zeros are exact in float16")
