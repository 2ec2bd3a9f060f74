"""Answers to the exercise optimizers.muon."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.optimizers._chapter import Tunable, orthogonal, zeros
from mlax_tutorial.exercises.optimizers.muon import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Base(Tunable):
    """Muon with a place for each mistake."""

    learning_rate: float
    other_rate: float = 1e-3
    decay: float = 0.95

    def init(self, weights):
        return zeros(weights)

    def scale(self, rows, columns):
        return max(1, columns / rows) ** 0.5

    def flat(self, v):
        return orthogonal(v)

    def other(self, v):
        return -self.other_rate * jnp.sign(v)

    def move(self, v):
        return (
            -self.learning_rate * self.scale(*v.shape) * self.flat(v) if self.is_matrix(v) else self.other(v)
        )

    def is_matrix(self, v):
        return v.ndim == 2

    def step(self, gradients, velocity, weights):
        velocity = jax.tree.map(lambda v, g: self.decay * v + g, velocity, gradients)
        return jax.tree.map(self.move, velocity), velocity


@answers.wrong("The factor for wide matrices is missing")
class Unscaled(Base):
    def scale(self, rows, columns):
        return 1.0


@answers.wrong("The factor is upside down")
class UpsideDown(Base):
    def scale(self, rows, columns):
        return max(1, rows / columns) ** 0.5


@answers.wrong("There is no momentum")
class NoMomentum(Base):
    def step(self, gradients, velocity, weights):
        return jax.tree.map(self.move, gradients), velocity


@answers.wrong("moves by the velocity")
class Velocity(Base):
    def other(self, v):
        return -self.other_rate * v


@answers.wrong("it has a rate of its own")
class OneRate(Base):
    def other(self, v):
        return -self.learning_rate * jnp.sign(v)


@answers.wrong("need a minus")
class Uphill(Base):
    def step(self, gradients, velocity, weights):
        updates, velocity = super().step(gradients, velocity, weights)
        return jax.tree.map(jnp.negative, updates), velocity


@answers.wrong("The updates of matrices point up")
class UphillMatrices(Base):
    def flat(self, v):
        return -orthogonal(v)


@answers.wrong("The updates of what is no matrix point up")
class UphillOthers(Base):
    def other(self, v):
        return self.other_rate * jnp.sign(v)


@answers.wrong("rounded down")
class Floor(Base):
    def scale(self, rows, columns):
        return max(1, columns // rows) ** 0.5


@answers.wrong("is treated as a vector")
class RowsAreVectors(Base):
    def is_matrix(self, v):
        return v.ndim == 2 and min(v.shape) > 1


@answers.wrong("The gradient enters the velocity with the share")
class Averages(Base):
    def step(self, gradients, velocity, weights):
        mix = lambda v, g: self.decay * v + (1 - self.decay) * g  # noqa: E731
        velocity = jax.tree.map(mix, velocity, gradients)
        return jax.tree.map(self.move, velocity), velocity


@answers.wrong("so its own numbers are traced")
class Floats(Base):
    def other(self, v):
        return -float(self.other_rate) * jnp.sign(v)


@answers.wrong("All singular values are exactly 1")
class Exact(Base):
    def flat(self, v):
        u, _, w = jnp.linalg.svd(v, full_matrices=False)
        return u @ w


@answers.wrong("Your code raised TypeError")
class EveryLeaf(Base):
    def is_matrix(self, v):
        return v.ndim >= 2


@answers.wrong("lacks its root")
class NoRoot(Base):
    def scale(self, rows, columns):
        return max(1, columns / rows)


@answers.wrong()
class Forgets(Base):  # right at the first step
    def step(self, gradients, velocity, weights):
        return super().step(gradients, velocity, weights)[0], velocity


@answers.wrong()
class FewRounds(Base):
    def flat(self, v):
        return orthogonal(v, rounds=3)


answers.right(Base)


@answers.right
class ByLeaves(Tunable):
    learning_rate: float
    other_rate: float = 1e-3
    decay: float = 0.95

    def init(self, weights):
        return {"v": zeros(weights)}

    def step(self, gradients, velocity, weights):
        leaves, structure = jax.tree.flatten(gradients)
        velocity = [self.decay * v + g for v, g in zip(jax.tree.leaves(velocity), leaves)]
        updates = [
            self.learning_rate * jnp.sqrt(max(1.0, v.shape[1] / v.shape[0])) * orthogonal(-v)
            if len(v.shape) == 2
            else self.other_rate * ((v < 0).astype(v.dtype) - (v > 0).astype(v.dtype))
            for v in velocity
        ]
        return jax.tree.unflatten(structure, updates), {"v": jax.tree.unflatten(structure, velocity)}


@answers.right
class OwnPolynomial(Base):
    def flat(self, v):
        x = v / (jnp.sqrt(jnp.sum(v * v)) + 1e-7)
        for _ in range(5):
            gram = x.T @ x
            x = 3.4445 * x + x @ (-4.7750 * gram + 2.0315 * gram @ gram)
        return x


@answers.right
class ByWhere(Base):
    def other(self, v):
        return jnp.where(v > 0, -self.other_rate, jnp.where(v < 0, self.other_rate, 0.0))


@answers.wrong("`jnp.sign` of 0 is 0")
class NaNAtZero(Base):
    def other(self, v):
        return -self.other_rate * v / jnp.abs(v)


@answers.wrong()
class CopySign(Base):
    def other(self, v):
        return -self.other_rate * jnp.copysign(1.0, v)


@answers.wrong("The rate is a part of your velocity")
class RateInTheVelocity(Base):
    def step(self, gradients, velocity, weights):
        velocity = jax.tree.map(lambda v, g: self.decay * v + self.learning_rate * g, velocity, gradients)
        return jax.tree.map(self.move, velocity), velocity


@answers.wrong()
class NumbersStandStill(Base):
    def other(self, v):
        return super().other(v) if v.ndim else jnp.zeros_like(v)


@answers.wrong()
class VelocityCutOff(Base):
    def step(self, gradients, velocity, weights):
        updates, velocity = super().step(gradients, velocity, weights)
        return updates, jax.tree.map(lambda v: jnp.clip(v, -50, 50), velocity)


@answers.right
class InADict(Base):
    """A state that is no bare velocity."""

    def init(self, weights):
        return {"velocity": zeros(weights), "count": jnp.int32(0)}

    def step(self, gradients, state, weights):
        velocity = jax.tree.map(lambda g, v: g + v * self.decay, gradients, state["velocity"])

        def move(w, v):
            match v.shape:
                case (rows, columns):
                    factor = jnp.sqrt(jnp.maximum(1.0, columns / rows))
                    return orthogonal(v) * factor * -self.learning_rate
                case _:
                    return jax.lax.sign(v) * -self.other_rate

        return jax.tree.map(move, weights, velocity), {"velocity": velocity, "count": state["count"] + 1}


answers.equivalent("return zeros(weights): rounded to float16", because="zeros are exact in float16")
