"""Answers to the exercise combining_layers.residual."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.combining_layers.residual import Residual, exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Base(nn.Layer):
    """Written out without a loop, for wrong answers to change one piece."""

    layer: nn.Layer
    shortcut: nn.Layer | None = None

    @property
    def needs_key(self):
        return bool(self.layer.needs_key or (self.shortcut is not None and self.shortcut.needs_key))

    def two(self, key):
        return (None, None) if key is None else jax.random.split(key)

    def init(self, key, x):
        first, second = self.two(key)
        pairs = {"layer": self.layer.init(first, x)}
        if self.shortcut is not None:
            pairs["shortcut"] = self.shortcut.init(second, x)
        return tuple({name: pair[role] for name, pair in pairs.items()} for role in (0, 1))

    def only(self, layer, key):
        return key if layer.needs_key else None

    def add(self, short, long):
        if short.shape != long.shape:
            raise ValueError(f"cannot add {short.shape} and {long.shape}")
        return short + long

    def updated(self, updates, old):
        return updates

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        first, second = self.two(key)
        y, update = self.layer.fwd(
            x,
            trainables["layer"],
            non_trainables["layer"],
            key=self.only(self.layer, first),
            inference_mode=inference_mode,
        )
        updates, short = {"layer": update}, x
        if self.shortcut is not None:
            short, updates["shortcut"] = self.shortcut.fwd(
                self.given_to_shortcut(x, y),
                trainables["shortcut"],
                non_trainables["shortcut"],
                key=self.only(self.shortcut, second),
                inference_mode=inference_mode,
            )
        return self.add(short, y), self.updated(updates, non_trainables)

    def given_to_shortcut(self, x, y):
        return x


answers.right(Base)


@answers.wrong("broadcasting made the two fit")
class Broadcasts(Base):
    def add(self, short, long):
        return short + long


@answers.wrong("broadcasting made the two fit")
class ComparesTheLastAxis(Base):
    def add(self, short, long):
        if short.shape[-1] != long.shape[-1]:
            raise ValueError(f"cannot add {short.shape} and {long.shape}")
        return short + long


@answers.wrong("broadcasting made the two fit")
class ComparesTheSizes(Base):
    def add(self, short, long):
        if short.size != long.size:
            raise ValueError(f"cannot add {short.shape} and {long.shape}")
        return short + long


@answers.wrong("broadcasting made the two fit")
class ComparesWithoutShortcut(Base):
    def add(self, short, long):
        if self.shortcut is None and short.shape != long.shape:
            raise ValueError(f"cannot add {short.shape} and {long.shape}")
        return short + long


@answers.wrong("a `ValueError` is asked for")
class Asserts(Base):
    def add(self, short, long):
        assert short.shape == long.shape, f"{short.shape} and {long.shape} differ"
        return short + long


@answers.wrong("for the gradient of x + sin(x)")
class StopsTheShortcut(Base):
    def add(self, short, long):
        return super().add(jax.lax.stop_gradient(short), long)


@answers.wrong("does not name both shapes")
class SaysNothing(Base):
    def add(self, short, long):
        if short.shape != long.shape:
            raise ValueError("shapes differ")
        return short + long


@answers.wrong("begin with the same weights")
class OneKeyInInit(Base):
    def init(self, key, x):
        pairs = {"layer": self.layer.init(key, x)}
        if self.shortcut is not None:
            pairs["shortcut"] = self.shortcut.init(key, x)
        return tuple({name: pair[role] for name, pair in pairs.items()} for role in (0, 1))


@answers.wrong("The shortcut is left out of the sum")
class OnlyTheLayer(Base):
    def add(self, short, long):
        return super().add(short, long) - (short if self.shortcut is not None else 0)


@answers.wrong("The layer and the shortcut draw the same random numbers")
class OneKey(Base):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        y, update = self.layer.fwd(
            x,
            trainables["layer"],
            non_trainables["layer"],
            key=self.only(self.layer, key),
            inference_mode=inference_mode,
        )
        updates, short = {"layer": update}, x
        if self.shortcut is not None:
            short, updates["shortcut"] = self.shortcut.fwd(
                x,
                trainables["shortcut"],
                non_trainables["shortcut"],
                key=self.only(self.shortcut, key),
                inference_mode=inference_mode,
            )
        return self.add(short, y), updates


@answers.wrong("A layer that needs no key got one")
class KeysForBoth(Base):
    def only(self, layer, key):
        return key


@answers.wrong("`fwd` returned the old ones")
class ForgetsUpdates(Base):
    def updated(self, updates, old):
        return old


@answers.wrong("a dict with the entries ['layer']")
class AlwaysTwoEntries(Base):
    def init(self, key, x):
        trainables, non_trainables = super().init(key, x)
        return {"shortcut": (), **trainables}, {"shortcut": (), **non_trainables}


@answers.wrong()
class MultipliesInstead(Base):
    def add(self, short, long):
        return super().add(short, jnp.zeros_like(long)) * long


@answers.wrong()
class ForgetsItsShortcutsKey(Base):
    @property
    def needs_key(self):
        return self.layer.needs_key


@answers.right
class ByThePackage(nn.Layer):
    layer: nn.Layer
    shortcut: nn.Layer | None = None

    @property
    def model(self):
        return nn.Residual(self.layer, self.shortcut)

    @property
    def needs_key(self):
        return self.model.needs_key

    def full(self, tree):
        names = ["layer"] if self.shortcut is None else ["layer", "shortcut"]
        return tree or dict.fromkeys(names, ())

    def init(self, key, x):
        return tuple(map(self.full, self.model.init(key, x)))

    def fwd(self, x, trainables, non_trainables, **options):
        y, updated = self.model.fwd(x, trainables, non_trainables, **options)
        return y, self.full(updated)


@answers.right
class Refuses(Residual):
    """A message with brackets, from a class derived from a right one."""

    def fwd(self, x, trainables, non_trainables, **options):
        try:
            return super().fwd(x, trainables, non_trainables, **options)
        except ValueError as error:
            raise ValueError(str(error).replace("(", "[").replace(")", "]")) from None


@answers.wrong("hand on what the layers make as it is")
class RoundsInInit(Base):
    def init(self, key, x):
        def half(leaf):
            return leaf.astype(jnp.bfloat16).astype(leaf.dtype)

        return jax.tree.map(half, super().init(key, x))


answers.equivalent(
    "len(self.children) -> 2",
    because="there are two children at most, and a key that is left over is used by none",
)
