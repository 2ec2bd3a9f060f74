"""Answers to the exercise combining_layers.series."""

from functools import partial

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.combining_layers.series import NamedSeries, exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Base(nn.Layer):
    """The solution in pieces, for wrong answers to change one of them."""

    names: tuple
    layers: tuple

    @property
    def needs_key(self):
        return any(layer.needs_key for layer in self.layers)

    def init_keys(self, key):
        return jax.random.split(key, len(self.layers))

    def keys(self, key):
        needing = [name for name, layer in zip(self.names, self.layers) if layer.needs_key]
        if key is None or not needing:
            return {}
        return dict(zip(needing, jax.random.split(key, len(needing))))

    def output_of(self, layer, x, pair):
        return jax.eval_shape(partial(layer.fwd, inference_mode=True), x, *pair)[0]

    def init(self, key, x):
        pairs = {}
        for name, layer, own in zip(self.names, self.layers, self.init_keys(key)):
            pairs[name] = layer.init(own, x)
            x = self.output_of(layer, x, pairs[name])
        return {name: t for name, (t, _) in pairs.items()}, {name: n for name, (_, n) in pairs.items()}

    def noted(self, error, name, layer):
        error.add_note(f"in {name}, {layer}")

    def updates(self, old, new):
        return new

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        keys, updated = self.keys(key), {}
        for name, layer in zip(self.names, self.layers):
            options = self.options(keys.get(name), inference_mode)
            try:
                x, updated[name] = layer.fwd(x, trainables[name], non_trainables[name], **options)
            except Exception as error:
                self.noted(error, name, layer)
                raise
        return x, self.updates(non_trainables, updated)

    def options(self, key, inference_mode):
        return {"key": key, "inference_mode": inference_mode}


@answers.wrong("a dict with one entry for each name")
class Tuples(Base):
    def init(self, key, x):
        return tuple(tuple(tree.values()) for tree in super().init(key, x))


@answers.wrong("`init` shows every layer the input of the whole")
class NeverUpdatesX(Base):
    def output_of(self, layer, x, pair):
        return x


@answers.wrong("with `inference_mode=True`")
class OutlineOfTraining(Base):
    def output_of(self, layer, x, pair):
        return jax.eval_shape(layer.fwd, x, *pair)[0]


@answers.wrong("the layer behind it draws other numbers")
class SplitsForAll(Base):
    def keys(self, key):
        if key is None:
            return {}
        keys = jax.random.split(key, len(self.layers))
        return {name: own for name, layer, own in zip(self.names, self.layers, keys) if layer.needs_key}


@answers.wrong("no note says which")
class CatchesValueErrors(Base):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        keys, updated = self.keys(key), {}
        for name, layer in zip(self.names, self.layers):
            options = self.options(keys.get(name), inference_mode)
            try:
                x, updated[name] = layer.fwd(x, trainables[name], non_trainables[name], **options)
            except ValueError as error:
                self.noted(error, name, layer)
                raise
        return x, updated


@answers.wrong("begin with the same weights")
class OneKeyInInit(Base):
    def init_keys(self, key):
        return [key] * len(self.layers)


@answers.wrong("In training, a layer that needs a key got None")
class ForgetsTheKeys(Base):
    def keys(self, key):
        return {}


@answers.wrong("The law *keys used once*")
class OneKeyForAll(Base):
    def keys(self, key):
        return {name: key for name, layer in zip(self.names, self.layers) if layer.needs_key}


@answers.wrong("A layer that needs no key got one")
class KeysForAll(Base):
    def keys(self, key):
        return {} if key is None else dict(zip(self.names, jax.random.split(key, len(self.names))))


@answers.wrong("The law *a reused key is caught*")
class FoldsIn(Base):
    def keys(self, key):
        if key is None:
            return {}
        return {
            name: jax.random.fold_in(key, i)
            for i, (name, layer) in enumerate(zip(self.names, self.layers))
            if layer.needs_key
        }


@answers.wrong("`fwd` returned the old ones")
class ForgetsUpdates(Base):
    def updates(self, old, new):
        return old


@answers.wrong("take each entry by its name")
class InTheOrderOfTheDict(Base):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        keys, updated = self.keys(key), {}
        for layer, (name, own), state in zip(self.layers, trainables.items(), non_trainables.values()):
            try:
                x, updated[name] = layer.fwd(x, own, state, **self.options(keys.get(name), inference_mode))
            except Exception as error:
                self.noted(error, name, layer)
                raise
        return x, updated


@answers.wrong("writes to the non_trainables that it was given")
class WritesInPlace(Base):
    def updates(self, old, new):
        old.update(new)
        return old


@answers.wrong("A layer thought that it was in training")
class ForgetsTheMode(Base):
    def options(self, key, inference_mode):
        return {"key": key}


@answers.wrong("`needs_key` of your container is False when it holds Noise()")
class NeverNeedsAKey(Base):
    needs_key = False


@answers.wrong("neither its message nor a note")
class NoNote(Base):
    def noted(self, error, name, layer):
        return name, error


@answers.wrong("neither its message nor a note")
class NamesTheLast(Base):
    def noted(self, error, name, layer):
        error.add_note(f"in {self.names[-1]}")


@answers.wrong("also names 'body'")
class NamesAll(Base):
    def noted(self, error, name, layer):
        error.add_note(f"in one of {self.names}")


@answers.wrong("and `fwd` swallowed it")
class Swallows(Base):
    def fwd(self, x, trainables, non_trainables, **options):
        try:
            return super().fwd(x, trainables, non_trainables, **options)
        except ValueError:
            return x, non_trainables


@answers.wrong()
class LooksAtNumbers(Base):
    def output_of(self, layer, x, pair):
        return layer.fwd(x, *pair, inference_mode=True)[0]


@answers.wrong()
class AlwaysNeedsAKey(Base):
    needs_key = True


@answers.right
class ByThePackage(nn.Layer):
    names: tuple
    layers: tuple

    @property
    def model(self):
        return nn.Series(**dict(zip(self.names, self.layers)))

    @property
    def needs_key(self):
        return self.model.needs_key

    def full(self, tree):
        return tree or dict.fromkeys(self.names, ())

    def init(self, key, x):
        return tuple(map(self.full, self.model.init(key, x)))

    def fwd(self, x, trainables, non_trainables, **options):
        y, updated = self.model.fwd(x, trainables, non_trainables, **options)
        return y, self.full(updated)


@answers.right
class ByRecursion(Base):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if not self.names:
            return x, {}
        name, layer, rest = self.names[0], self.layers[0], type(self)(self.names[1:], self.layers[1:])
        own = None
        if key is not None and layer.needs_key:
            own, key = jax.random.split(key)
        try:
            x, update = layer.fwd(
                x, trainables[name], non_trainables[name], key=own, inference_mode=inference_mode
            )
        except Exception as error:
            raise ValueError(f"{name}: {error}") from error
        y, updated = rest.fwd(x, trainables, non_trainables, key=key, inference_mode=inference_mode)
        return y, {name: update, **updated}


@answers.right
class Renamed(NamedSeries):
    """Derived from another class that is right."""


@answers.wrong("does `zip` stop early")
class ThreeKeysInInit(Base):
    def init_keys(self, key):
        return jax.random.split(key, 3)


@answers.wrong("In training, a layer that needs a key got None")
class TwoKeys(Base):
    def keys(self, key):
        keys = super().keys(key)
        return dict(list(keys.items())[:2])


@answers.wrong("draw the same random numbers in `fwd`")
class FoldsInOneNumber(Base):
    def keys(self, key):
        if key is None or not self.needs_key:
            return {}
        first = jax.random.split(key, 1)[0]
        return {
            name: jax.random.fold_in(first, 0)
            for name, layer in zip(self.names, self.layers)
            if layer.needs_key
        }


@answers.wrong("is there a `stop_gradient` on the way")
class StopsTheGradient(Base):
    def fwd(self, x, trainables, non_trainables, **options):
        return jax.lax.stop_gradient(super().fwd(x, trainables, non_trainables, **options))


@answers.wrong("hand on what the layers make as it is")
class RoundsInInit(Base):
    def init(self, key, x):
        def half(leaf):
            return leaf.astype(jnp.bfloat16).astype(leaf.dtype)

        return jax.tree.map(half, super().init(key, x))
