"""Answers to the exercise combining_layers.stack."""

from functools import partial

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.combining_layers.stack import DeepStack, exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Base(nn.Layer):
    """The solution in pieces, for wrong answers to change one of them."""

    layer: nn.Layer
    depth: int
    remat: bool = False

    @property
    def needs_key(self):
        return self.layer.needs_key

    def init(self, key, x):
        keys = jax.random.split(key, self.depth)
        return jax.vmap(lambda key: self.layer.init(key, x))(keys)

    def keys(self, key):
        return jax.random.split(key, self.depth) if key is not None and self.needs_key else None

    def block(self, inference_mode):
        def block(x, slices):
            *pair, key = slices
            return self.layer.fwd(x, *pair, key=key, inference_mode=inference_mode)

        return block

    def checkpointed(self, block):
        return jax.checkpoint(block) if self.remat else block

    def scan(self, block, x, slices):
        return jax.lax.scan(block, x, slices, length=self.depth)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        block = self.checkpointed(self.block(inference_mode))
        return self.scan(block, x, (trainables, non_trainables, self.keys(key)))


answers.right(Base)


@answers.wrong("0 times a `scan`")
class PythonLoop(Base):
    def scan(self, block, x, slices):
        updates = []
        for i in range(self.depth):
            x, update = block(x, jax.tree.map(lambda leaf: leaf[i], slices))  # noqa: B023
            updates.append(update)
        return x, jax.tree.map(lambda *leaves: jnp.stack(leaves), *updates)


@answers.wrong("unrolled")
class Unrolled(Base):
    def scan(self, block, x, slices):
        return jax.lax.scan(block, x, slices, length=self.depth, unroll=self.depth)


@answers.wrong("All blocks begin with the same weights")
class OneInit(Base):
    def init(self, key, x):
        pair = self.layer.init(key, x)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.depth, *leaf.shape)), pair)


@answers.wrong("with the depth, here 4, as a leading axis")
class InitWithoutDepth(Base):
    def init(self, key, x):
        return self.layer.init(key, x)


@answers.wrong("All blocks draw the same random numbers")
class OneOfOneSplit(Base):
    def keys(self, key):
        if key is None or not self.needs_key:
            return None
        return jnp.broadcast_to(jax.random.split(key, 1), (self.depth,))


@answers.wrong("All blocks draw the same random numbers")
class Repeats(Base):
    def keys(self, key):
        if key is None or not self.needs_key:
            return None
        return jnp.repeat(jax.random.split(key, 1), self.depth)


@answers.wrong("Another key gives the same random numbers")
class ConstantKey(Base):
    def keys(self, key):
        return super().keys(None if key is None else jax.random.key(0))


@answers.wrong("With `remat=False` the blocks are recomputed as well")
class AlwaysRemat(Base):
    def checkpointed(self, block):
        return jax.checkpoint(block)


@answers.wrong("The blocks draw different numbers, but")
class SplitsInside(Base):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        key = key if self.needs_key else None

        def block(x, slices):
            *pair, i = slices
            own = None if key is None else jax.random.split(key, self.depth)[i]
            return self.layer.fwd(x, *pair, key=own, inference_mode=inference_mode)

        return self.scan(self.checkpointed(block), x, (trainables, non_trainables, jnp.arange(self.depth)))


@answers.wrong("All blocks draw the same random numbers")
class OneKey(Base):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        key = key if self.needs_key else None

        def block(x, pair):
            return self.layer.fwd(x, *pair, key=key, inference_mode=inference_mode)

        return self.scan(self.checkpointed(block), x, (trainables, non_trainables))


@answers.wrong("`fold_in` does not count")
class FoldsIn(Base):
    def keys(self, key):
        if key is None or not self.needs_key:
            return None
        return jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(self.depth))


@answers.wrong("A layer that needs no key got one")
class KeysForAll(Base):
    def keys(self, key):
        return None if key is None else jax.random.split(key, self.depth)


@answers.wrong("from the last to the first")
class Backwards(Base):
    def scan(self, block, x, slices):
        return jax.lax.scan(block, x, slices, length=self.depth, reverse=True)


@answers.wrong("stores the same as without")
class ForgetsRemat(Base):
    def checkpointed(self, block):
        return block


@answers.wrong("the whole stack is recomputed at once")
class RematAroundTheScan(Base):
    def checkpointed(self, block):
        return block

    def scan(self, block, x, slices):
        run = super().scan
        scan = lambda x, slices: run(block, x, slices)  # noqa: E731
        return (jax.checkpoint(scan) if self.remat else scan)(x, slices)


@answers.wrong("A layer thought that it was in training")
class ForgetsTheMode(Base):
    def block(self, inference_mode):
        return super().block(False)


@answers.wrong("With `remat=True`: A layer updated its non_trainables")
class RematInInferenceMode(Base):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if self.remat:
            key, inference_mode = None, True
        return super().fwd(x, trainables, non_trainables, key=key, inference_mode=inference_mode)


@answers.wrong("All blocks draw the same random numbers")
class RematWithOneKey(Base):
    def keys(self, key):
        keys = super().keys(key)
        return jnp.broadcast_to(keys[:1], keys.shape) if self.remat and keys is not None else keys


@answers.wrong()
class ForgetsUpdates(Base):
    def fwd(self, x, trainables, non_trainables, **options):
        return super().fwd(x, trainables, non_trainables, **options)[0], non_trainables


@answers.wrong()
class RematAlways(Base):
    def checkpointed(self, block):
        return jax.checkpoint(block)


@answers.right
class WithBits(Base):
    def keys(self, key):
        keys = super().keys(key)
        return None if keys is None else jax.random.key_data(keys)

    def block(self, inference_mode):
        block = super().block(inference_mode)

        def from_bits(x, slices):
            *pair, bits = slices
            return block(x, (*pair, None if bits is None else jax.random.wrap_key_data(bits)))

        return from_bits


@answers.right
class ByThePackage(nn.Layer):
    layer: nn.Layer
    depth: int
    remat: bool = False

    @property
    def model(self):
        return nn.Stack(nn.Remat(self.layer) if self.remat else self.layer, self.depth)

    @property
    def needs_key(self):
        return self.model.needs_key

    def init(self, key, x):
        return self.model.init(key, x)

    def fwd(self, x, trainables, non_trainables, **options):
        return self.model.fwd(x, trainables, non_trainables, **options)


@answers.right
class WithAPolicy(DeepStack):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        keys = jax.random.split(key, self.depth) if key is not None and self.needs_key else None

        def block(x, slices):
            return self.layer.fwd(x, *slices[:2], key=slices[2], inference_mode=inference_mode)

        nothing = jax.checkpoint_policies.nothing_saveable
        block = jax.checkpoint(block, policy=nothing, prevent_cse=False) if self.remat else block
        return jax.lax.scan(block, x, (trainables, non_trainables, keys), length=self.depth)


@answers.wrong("hand on what the layers make as it is")
class RoundsInInit(Base):
    def init(self, key, x):
        def half(leaf):
            return leaf.astype(jnp.bfloat16).astype(leaf.dtype)

        return jax.tree.map(half, super().init(key, x))


@answers.wrong("is there a `stop_gradient` on the way")
class StopsTheGradient(Base):
    def block(self, inference_mode):
        block = super().block(inference_mode)

        def stopped(x, slices):
            return jax.lax.stop_gradient(block(x, slices))

        return stopped
