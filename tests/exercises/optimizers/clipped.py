"""Answers to the exercise optimizers.clipped."""

import jax
import jax.numpy as jnp

from mlax_tutorial import optim
from mlax_tutorial.exercises.optimizers._chapter import Tunable, squared, wide
from mlax_tutorial.exercises.optimizers.clipped import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Base(Tunable):
    """Clipping with a place for each mistake."""

    optimizer: Tunable
    maximum: float = 1.0

    def init(self, weights):
        return self.optimizer.init(weights)

    def norm(self, gradients):
        return jnp.sqrt(sum(jax.tree.leaves(jax.tree.map(jnp.sum, squared(gradients)))))

    def factor(self, norm):
        return jnp.minimum(1.0, self.maximum / jnp.maximum(norm, 1e-12))

    def clip(self, gradients):
        factor = self.factor(self.norm(gradients))
        return jax.tree.map(lambda g: factor * g, gradients)

    def step(self, gradients, state, weights):
        return self.optimizer.step(self.clip(gradients), state, weights)


@answers.wrong("by its own norm")
class ByLeaf(Base):
    def clip(self, gradients):
        return jax.tree.map(lambda g: self.factor(jnp.linalg.norm(g)) * g, gradients)


@answers.wrong("cut off by itself")
class ByValue(Base):
    def clip(self, gradients):
        return jax.tree.map(lambda g: jnp.clip(g, -self.maximum, self.maximum), gradients)


@answers.wrong("made longer")
class Always(Base):
    def factor(self, norm):
        return self.maximum / jnp.maximum(norm, 1e-12)


@answers.wrong("the *root* of the sum")
class NoRoot(Base):
    def norm(self, gradients):
        return super().norm(gradients) ** 2


@answers.wrong("The norms of the leaves are added up")
class SumOfNorms(Base):
    def norm(self, gradients):
        return sum(jnp.linalg.norm(g) for g in jax.tree.leaves(gradients))


@answers.wrong("The updates are clipped")
class Updates(Base):
    def step(self, gradients, state, weights):
        updates, state = self.optimizer.step(gradients, state, weights)
        return self.clip(updates), state


@answers.wrong("Nothing is clipped")
class Nothing(Base):
    def clip(self, gradients):
        self.norm(gradients)
        return gradients


@answers.wrong("always clipped to 1")
class ToOne(Base):
    def factor(self, norm):
        return jnp.minimum(1.0, 1.0 / jnp.maximum(norm, 1e-12))


@answers.wrong("look at the condition")
class Inverted(Base):
    def factor(self, norm):
        return jnp.where(norm < self.maximum, self.maximum / norm, 1.0)


@answers.wrong("look at the condition")
class InvertedAndSafe(Base):
    def factor(self, norm):
        return jnp.maximum(1.0, self.maximum / jnp.maximum(norm, 1e-12))


@answers.wrong("given gradients in the place of the weights")
class NoWeights(Base):
    def step(self, gradients, state, weights):
        return self.optimizer.step(self.clip(gradients), state, gradients)


@answers.wrong("The factor has lost digits")
class HalfFactor(Base):
    def factor(self, norm):
        return super().factor(norm).astype(jnp.bfloat16)


@answers.wrong("Your code raised ConcretizationTypeError")
class AsAFloat(Base):
    def factor(self, norm):
        return jnp.minimum(1.0, float(self.maximum) / jnp.maximum(norm, 1e-12))


@answers.wrong("makes NaN")
class ByZero(Base):
    def clip(self, gradients):
        norm = self.norm(gradients)
        return jax.tree.map(lambda g: jnp.minimum(norm, self.maximum) * g / norm, gradients)


@answers.wrong("Your code raised TracerBoolConversionError")
class Decides(Base):
    def clip(self, gradients):
        return super().clip(gradients) if self.norm(gradients) > self.maximum else gradients


@answers.wrong("With gradients of float16 the norm is wrong")
class HalfSums(Base):  # right, but for weights of half precision
    def norm(self, gradients):
        return jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))


@answers.wrong()
class OwnState(Base):  # a state that begins again
    def step(self, gradients, state, weights):
        updates, _ = super().step(gradients, state, weights)
        return updates, state


answers.right(Base)


@answers.right
class ByThePackage(Tunable):
    optimizer: Tunable
    maximum: float = 1.0

    def init(self, weights):
        return self.optimizer.init(weights)

    def step(self, gradients, state, weights):
        gradients, _ = optim.ClipByGlobalNorm(self.maximum).step(gradients, (), weights)
        return self.optimizer.step(gradients, state, weights)


@answers.right
class ByWhere(Base):
    def clip(self, gradients):
        norm = jnp.hypot(0.0, self.norm(gradients))
        safe = jnp.where(norm > self.maximum, norm, self.maximum)
        return jax.tree.map(lambda g: g * (self.maximum / safe), wide(gradients))


@answers.right
class Together(Base):
    def norm(self, gradients):
        flat = [jnp.ravel(g) for g in jax.tree.leaves(wide(gradients))]
        return jnp.linalg.norm(jnp.concatenate(flat)) if flat else jnp.float32(0)


@answers.right
class KeepsTheDtype(Base):  # as Optax does it
    def clip(self, gradients):
        return jax.tree.map(lambda g, c: c.astype(g.dtype), gradients, super().clip(gradients))


@answers.right
class JustFloat32(Base):
    def norm(self, gradients):
        return jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(jnp.float32))) for g in jax.tree.leaves(gradients)))


@answers.right
class Reduced(Base):
    def norm(self, gradients):
        return jnp.sqrt(jax.tree.reduce(jnp.add, jax.tree.map(jnp.sum, squared(gradients))))


@answers.wrong()
class TheFirstTwo(Base):
    def norm(self, gradients):
        return jnp.sqrt(sum(jnp.sum(leaf) for leaf in jax.tree.leaves(squared(gradients))[:2]))


@answers.wrong("are squared in bfloat16")
class SquaresInHalf(Base):
    """Divided by the largest, so that none is too large."""

    def norm(self, gradients):
        leaves = jax.tree.leaves(gradients)
        largest = jnp.stack([jnp.max(jnp.abs(g)).astype(jnp.float32) for g in leaves]).max()
        largest = jnp.maximum(largest, 1e-12)
        squares = [jnp.sum(jnp.square(g / largest.astype(g.dtype))).astype(jnp.float32) for g in leaves]
        return largest * jnp.sqrt(sum(squares))


@answers.wrong("should stay as it is, however short")
class TinyBecomesZero(Base):
    def factor(self, norm):
        return jnp.where(norm < 1e-3, 0.0, super().factor(norm))


@answers.wrong("A maximum may be small")
class AtLeastOne(Base):
    """The divisor is kept from zero by a one, so what is shorter than that is never clipped."""

    def factor(self, norm):
        return jnp.minimum(1.0, self.maximum / jnp.maximum(norm, 1.0))


@answers.wrong("The updates of step 2 are not as the formula says")
class BeginsAnew(Base):
    """The momentum is lost at each step."""

    def step(self, gradients, state, weights):
        return super().step(gradients, self.optimizer.init(weights), weights)


@answers.right
class AsPyTorch(Base):
    def factor(self, norm):
        return jnp.minimum(1.0, self.maximum / (norm + 1e-6))


@answers.right
class ByTheLonger(Base):
    def factor(self, norm):
        return self.maximum / jnp.maximum(norm, self.maximum)


@answers.wrong("hand it through as it is")
class RoundsTheState(Base):
    def init(self, weights):
        state = super().init(weights)
        return jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16).astype(leaf.dtype), state)


answers.equivalent(
    "jnp.maximum(norm, 1e-12) -> norm",
    "jnp.maximum(norm, 1e-12) -> jnp.maximum(norm, 0.0)",
    because="a maximum over a norm of zero is infinite, of which and 1 the smaller one is 1",
)
answers.equivalent(
    "jnp.maximum(norm, 1e-12) -> jnp.maximum(norm, 2e-12)",
    because="a gradient so short stays as it is, whatever its norm is, unless the maximum is as short",
)
