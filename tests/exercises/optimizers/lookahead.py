"""Answers to the exercise optimizers.lookahead."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.optimizers._chapter import Tunable, wide, zeros
from mlax_tutorial.exercises.optimizers.lookahead import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Base(Tunable):
    """Lookahead with a place for each mistake."""

    optimizer: Tunable
    pull: float = 0.5
    every: float = 5

    def init(self, weights):
        slow = jax.tree.map(jnp.add, zeros(weights), weights)
        return jnp.float32(0), slow, self.optimizer.init(weights)

    def jumps(self, count):
        return (count + 1) % self.every == 0

    def follow(self, slow, w, u):
        return slow + self.pull * (w + u - slow)

    def update(self, slow, w, u):
        return slow - w

    def remembered(self, old, new):
        return new

    def step(self, gradients, state, weights):
        count, slow, inner = state
        updates, inner = self.optimizer.step(gradients, inner, weights)
        jumps = self.jumps(count)
        after = jax.tree.map(
            lambda s, w, u: jnp.where(jumps, self.follow(s, w, u), s), slow, weights, updates
        )
        updates = jax.tree.map(
            lambda s, w, u: jnp.where(jumps, self.update(s, w, u), u), after, weights, updates
        )
        return updates, (count + 1, self.remembered(slow, after), inner)


@answers.wrong("one step too late")
class Late(Base):
    def jumps(self, count):
        return (count % self.every == 0) & (count > 0)


@answers.wrong("one step too early")
class Early(Base):
    def jumps(self, count):
        return (count + 2) % self.every == 0


@answers.wrong("or these go all the way")
class GoesOn(Base):
    def update(self, slow, w, u):
        return u


@answers.wrong("or these go all the way")
class AllTheWay(Base):
    def follow(self, slow, w, u):
        return w + u


@answers.wrong("the share 1 - pull")
class TheOtherShare(Base):
    def follow(self, slow, w, u):
        return self.pull * slow + (1 - self.pull) * (w + u)


@answers.wrong("the slow weights themselves")
class SlowItself(Base):
    def update(self, slow, w, u):
        return slow


@answers.wrong("*before* their step")
class Old(Base):
    def follow(self, slow, w, u):
        return slow + self.pull * (w - slow)


@answers.wrong("return the new ones")
class Stays(Base):
    def remembered(self, old, new):
        return old


@answers.wrong("the jump replaces them")
class Both(Base):
    def update(self, slow, w, u):
        return u + slow - w


@answers.wrong("or these go all the way")
class Never(Base):
    def jumps(self, count):
        return count < 0


@answers.wrong("always 5")
class Five(Base):
    def jumps(self, count):
        return (count + 1) % 5 == 0


@answers.wrong("at the very first step")
class AtOnce(Base):
    def jumps(self, count):
        return count % self.every == 0


@answers.wrong("The inner optimizer is given the slow weights")
class SlowInside(Base):
    def step(self, gradients, state, weights):
        updates, (count, slow, _) = super().step(gradients, state, weights)
        inner_updates, inner = self.optimizer.step(gradients, state[2], state[1])
        jumps = self.jumps(state[0])
        slow = jax.tree.map(
            lambda s, w, u: jnp.where(jumps, self.follow(s, w, u), s), state[1], weights, inner_updates
        )
        updates = jax.tree.map(lambda s, w, u: jnp.where(jumps, s - w, u), slow, weights, inner_updates)
        return updates, (count, slow, inner)


@answers.wrong("ConcretizationTypeError")
class AsAnInteger(Base):
    def jumps(self, count):
        return (count + 1) % int(self.every) == 0


@answers.wrong("TracerArrayConversionError")
class AsNumpy(Base):
    def jumps(self, count):
        return (count + 1) % np.int32(self.every) == 0


@answers.wrong("ConcretizationTypeError")
class AsAFloat(Base):
    def follow(self, slow, w, u):
        return slow + float(self.pull) * (w + u - slow)


@answers.wrong("The state of the inner optimizer is made anew")
class Resets(Base):
    def step(self, gradients, state, weights):
        updates, (count, slow, inner) = super().step(gradients, state, weights)
        fresh, jumps = self.optimizer.init(weights), self.jumps(state[0])
        return updates, (count, slow, jax.tree.map(lambda a, b: jnp.where(jumps, a, b), fresh, inner))


@answers.wrong("cannot be donated together")
class Alias(Base):
    def init(self, weights):
        return jnp.float32(0), wide(weights), self.optimizer.init(weights)


@answers.wrong("Your code raised TracerBoolConversionError")
class Decides(Base):
    def step(self, gradients, state, weights):
        if self.jumps(state[0]):
            return super().step(gradients, state, weights)
        updates, inner = self.optimizer.step(gradients, state[2], weights)
        return updates, (state[0] + 1, state[1], inner)


@answers.wrong()
class Forgetful(Base):  # follows from the fast weights, not from where the slow ones were
    def follow(self, slow, w, u):
        return w + self.pull * u


@answers.wrong()
class FromZero(Base):  # the slow weights begin at zero
    def init(self, weights):
        return jnp.float32(0), zeros(weights), self.optimizer.init(weights)


answers.right(Base)


@answers.right
class ByCond(Base):
    def step(self, gradients, state, weights):
        updates, inner = self.optimizer.step(gradients, state["inner"], weights)

        def jump():
            slow = jax.tree.map(
                lambda s, w, u: (1 - self.pull) * s + self.pull * (w + u), state["slow"], weights, updates
            )
            return jax.tree.map(lambda s, w: s - w, slow, weights), slow

        count = state["count"] + 1
        at = count == self.every.astype(jnp.int32)
        updates, slow = jax.lax.cond(at, jump, lambda: (updates, state["slow"]))
        return updates, {"count": jnp.where(at, 0, count), "slow": slow, "inner": inner}

    def init(self, weights):
        slow = jax.tree.map(
            lambda w: jnp.array(w, jnp.promote_types(w.dtype, jnp.float32), copy=True), weights
        )
        return {"count": jnp.int32(0), "slow": slow, "inner": self.optimizer.init(weights)}  # fmt: skip


@answers.right
class ByFactors(Base):
    def step(self, gradients, state, weights):
        count, slow, inner = state
        updates, inner = self.optimizer.step(gradients, inner, weights)
        jumps = self.jumps(count).astype(jnp.float32)
        share = jumps * self.pull
        slow = jax.tree.map(lambda s, w, u: s + share * (w + u - s), slow, weights, updates)
        updates = jax.tree.map(lambda s, w, u: u + jumps * (s - w - u), slow, weights, updates)
        return updates, (count + 1, slow, inner)


@answers.right
class JustFloat32(Base):
    def init(self, weights):
        slow = jax.tree.map(lambda w: jnp.array(w, jnp.float32, copy=True), weights)
        return jnp.int32(0), slow, self.optimizer.init(weights)


@answers.wrong("Keep them in float32")
class SlowInHalf(Base):
    """The slow weights have the dtype of the weights."""

    def init(self, weights):
        return jnp.float32(0), jax.tree.map(jnp.copy, weights), self.optimizer.init(weights)

    def step(self, gradients, state, weights):
        updates, (count, slow, inner) = super().step(gradients, state, weights)
        return updates, (count, jax.tree.map(lambda s, old: s.astype(old.dtype), slow, state[1]), inner)


@answers.wrong()
class TwoJumps(Base):
    def jumps(self, count):
        return (count + 1 == self.every) | (count + 1 == 2 * self.every)


@answers.wrong("wrong for every=1")
class NeverForOne(Base):
    def jumps(self, count):
        return super().jumps(count) & (self.every > 1)


@answers.wrong("wrong for every=2")
class CountsTwice(Base):
    """As right as the solution for odd numbers."""

    def jumps(self, count):
        return (2 * (count + 1)) % self.every == 0


@answers.wrong()
class InnerStandsStill(Base):
    """At the third jump and at all that follow."""

    def step(self, gradients, state, weights):
        updates, (count, slow, inner) = super().step(gradients, state, weights)
        still = self.jumps(state[0]) & (count > 6)
        return updates, (count, slow, jax.tree.map(lambda n, o: jnp.where(still, o, n), inner, state[2]))


@answers.wrong("rounded to bfloat16 when they move")
class RoundsTheSlow(Base):
    """Stored as float32, but with the digits of the weights."""

    def follow(self, slow, w, u):
        return super().follow(slow, w, u).astype(w.dtype).astype(slow.dtype)


@answers.wrong()
class FollowsAtEachStep(Base):
    def step(self, gradients, state, weights):
        updates, (count, _, inner) = super().step(gradients, state, weights)
        fast, _ = self.optimizer.step(gradients, state[2], weights)
        slow = jax.tree.map(self.follow, state[1], weights, fast)
        jumps = self.jumps(state[0])
        return jax.tree.map(lambda u, s, w: jnp.where(jumps, s - w, u), fast, slow, weights), (
            count,
            slow,
            inner,
        )


@answers.right
class CountsUpToEvery(Base):
    def step(self, gradients, state, weights):
        count, slow, inner = state
        fast, inner = self.optimizer.step(gradients, inner, weights)
        jumps = count + 1 >= self.every
        slow = jax.tree.map(lambda s, w, u: jnp.where(jumps, self.follow(s, w, u), s), slow, weights, fast)
        updates = jax.tree.map(lambda s, w, u: jnp.where(jumps, s - w, u), slow, weights, fast)
        return updates, (jnp.where(jumps, 0, count + 1), slow, inner)


answers.equivalent(
    "count + 1 -> count - 1",
    because="a count that goes down is a multiple of `every` at the same steps as one that goes up",
)
