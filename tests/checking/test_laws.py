"""Each law is broken by a layer or an optimizer that breaks no other; right ones of unusual style obey them all."""

import dataclasses
import functools
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim
from mlax_tutorial.checking import checks, laws
from mlax_tutorial.checking.outcome import Failed, NotAttempted

QUICK_TO_COMPILE = True
X = jax.ShapeDtypeStruct((2, 4), jnp.float32)


# Layers


class Scaler(nn.Layer):
    """A right one, from which the wrong ones are derived."""

    def init(self, key, x):
        return {"scaler": jnp.ones(x.shape[-1:], x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class NoKeywords(Scaler):
    def fwd(self, x, trainables, non_trainables):
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class NotTrainedByDefault(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=True):
        return super().fwd(x, trainables, non_trainables)


@jax.tree_util.register_static
@dataclasses.dataclass(unsafe_hash=True)
class Mutable:
    init = Scaler.init
    fwd = Scaler.fwd
    rate: float = 1.0


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class WithList:
    init = Scaler.init
    fwd = Scaler.fwd
    axes: list = dataclasses.field(default_factory=lambda: [-1])


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True, eq=False)
class ByIdentity:
    init = Scaler.init
    fwd = Scaler.fwd
    rate: float = 1.0


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Uncompared:
    init = Scaler.init
    fwd = Scaler.fwd
    rate: float = dataclasses.field(default=1.0, compare=False)


@dataclasses.dataclass(frozen=True)
class Unregistered:
    init = Scaler.init
    fwd = Scaler.fwd
    rate: float = 1.0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Traced:
    init = Scaler.init
    fwd = Scaler.fwd
    rate: float = 1.0


class DrawnFromNumPy(Scaler):
    def init(self, key, x):
        return {"scaler": jnp.asarray(np.random.default_rng().normal(size=x.shape[-1:]), x.dtype)}, ()


class FromNumbers(Scaler):
    def init(self, key, x):
        return {"scaler": jnp.full(x.shape[-1:], jnp.std(x), x.dtype)}, ()


class InAList(Scaler):
    def init(self, key, x):
        return [jnp.ones(x.shape[-1:], x.dtype)], ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables[0].astype(x.dtype), non_trainables


class NothingAsDict(nn.Layer):
    def init(self, key, x):
        return {}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.tanh(x), non_trainables


class FixedKey(Scaler):
    def init(self, key, x):
        return {"scaler": jax.random.normal(jax.random.key(0), x.shape[-1:], x.dtype)}, ()


class KeyInInference(Scaler):
    needs_key = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if key is not None:
            x = drop(x, key)
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class AlwaysAKey(Scaler):
    needs_key = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        dropped = drop(x, key)
        return (x if inference_mode else dropped) * trainables["scaler"].astype(x.dtype), non_trainables


def drop(x, key):
    kept = jax.random.bits(key, x.shape, jnp.uint8) < 128
    return jnp.where(kept, 2 * x, jnp.zeros_like(x))


class Branches(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if jnp.sum(x) > 1e6:
            raise ValueError("too large")
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class Counts(Scaler):
    def init(self, key, x):
        return {"scaler": jnp.ones(x.shape[-1:], x.dtype)}, {"count": jnp.zeros((), jnp.int32)}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scaler"].astype(x.dtype), {"count": non_trainables["count"] + 1.0}


class OneBatchAxis(Scaler):
    def init(self, key, x):
        return {"scaler": jnp.ones(x.shape[1:], x.dtype)}, ()


class WithALoop(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        y = x * trainables["scaler"].astype(x.dtype)
        return jax.lax.while_loop(lambda y: jnp.any(jnp.abs(y) > 2), lambda y: y / 2, y), non_trainables


class SilentDraws(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if not inference_mode:
            x = drop(x, key)
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class Initializer:
    """An object that is only equal to itself."""

    def __call__(self, key, shape, dtype):
        return jnp.ones(shape, dtype)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class HoldsAnObject:
    fwd = Scaler.fwd
    initializer: Any = Initializer()

    def init(self, key, x):
        return {"scaler": self.initializer(key, x.shape[-1:], x.dtype)}, ()


class NoDtype(Scaler):
    def init(self, key, x):
        return {"scaler": jnp.ones(x.shape[-1:])}, ()


class NoDtypeInFwd(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scaler"].astype(x.dtype) * jnp.ones(1), non_trainables


class ThroughFloat32(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = jnp.promote_types(x.dtype, jnp.float32)
        return (x.astype(wide) * trainables["scaler"].astype(wide)).astype(x.dtype), non_trainables


class NotConverted(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scaler"], non_trainables


CALLS = []


class CountsCalls(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if not inference_mode:
            CALLS.append(1)
            x = x * len(CALLS)
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class IgnoresTheKey(Scaler):
    needs_key = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if not inference_mode:
            x = x * jax.random.uniform(jax.random.key(0), x.shape[-1:], x.dtype)
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class AsksForTracers(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if not isinstance(x, jax.core.Tracer):
            x = jnp.clip(x, -0.5, 0.5)
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class OneKeyForTwoWeights(nn.Layer):
    def init(self, key, x):
        def draw():
            return jax.random.normal(key, x.shape[-1:], x.dtype)

        return {"scaler": draw(), "bias": draw()}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scaler"].astype(x.dtype) + trainables["bias"].astype(x.dtype), non_trainables


class OneKeyForTwoMasks(Scaler):
    needs_key = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        y = x * trainables["scaler"].astype(x.dtype)
        return (y, non_trainables) if inference_mode else (drop(drop(x, key) + y, key), non_trainables)


class FoldsIn(Scaler):
    needs_key = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        y = x * trainables["scaler"].astype(x.dtype)
        return (
            (y, non_trainables) if inference_mode else (drop(y, jax.random.fold_in(key, 1)), non_trainables)
        )


class Centered(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return (x - jnp.mean(x, axis=0)) * trainables["scaler"].astype(x.dtype), non_trainables


@jax.custom_batching.custom_vmap
def sign(x):
    return jnp.sign(x)


@sign.def_vmap
def _(size, batched, x):
    return jnp.abs(jnp.sign(x)), True


class RuleOfItsOwn(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scaler"].astype(x.dtype) + sign(jax.lax.stop_gradient(x)), non_trainables


class Logs(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        seen = jax.lax.stop_gradient(jnp.sum(x).astype(jnp.float32))
        jax.experimental.io_callback(lambda mean: None, None, seen)
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class Exponential(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.log(jnp.exp(13 * x * trainables["scaler"].astype(x.dtype))), non_trainables


class StopsTheGradient(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        mean = jax.lax.stop_gradient(jnp.mean(x, axis=-1, keepdims=True))
        return (x - mean) * trainables["scaler"].astype(x.dtype), non_trainables


class OtherUnderJit(Scaler):
    def init(self, key, x):
        value = 0.0 if isinstance(key, jax.core.Tracer) else 1.0
        return {"scaler": jnp.full(x.shape[-1:], value, x.dtype)}, ()


class CarriesZeros(Scaler):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x = jnp.moveaxis(x * trainables["scaler"].astype(x.dtype), -1, 0)
        first = jnp.zeros(x.shape[1:], x.dtype)
        _, sums = jax.lax.scan(lambda total, item: (total + item, total + item), first, x)
        return jnp.moveaxis(sums, 0, -1), non_trainables


def text(failure):
    return "\n".join([failure.message, *(part for _, part in failure.shown)])


WRONG_LAYERS = [
    ("signature", NoKeywords(), "unexpected keyword argument 'key'"),
    ("signature", NotTrainedByDefault(), "means `inference_mode=False`"),
    ("frozen", Mutable(), "`layer.rate = …` is accepted"),
    ("hashable", WithList(), "The field `axes` is a list"),
    ("equal by value", ByIdentity(), "of the same hyperparameters are not equal"),
    ("equal by value", Uncompared(), "of which only `rate` differs are equal"),
    ("static", Unregistered(), "JAX does not know your class"),
    ("static", Traced(), "its hyperparameters are leaves"),
    ("init repeats", DrawnFromNumPy(), "gave other variables the second time"),
    ("init from shapes", FromNumbers(), "Given a `jax.ShapeDtypeStruct`"),
    ("plain containers", InAList(), "trainables is a list"),
    ("plain containers", NothingAsDict(), "should return `()`"),
    ("another key", FixedKey(), "the same trainables['scaler'] for two keys"),
    ("inference needs no key", KeyInInference(), "another result with a key than without"),
    ("inference needs no key", AlwaysAKey(), "without a key: Your code raised"),
    ("as eval_shape says", Branches(), "TracerBoolConversionError"),
    ("as eval_shape says", Counts(), "non_trainables of other types than it got"),
    ("any batch axes", OneBatchAxis(), "`init` makes variables of other shapes"),
    ("differentiable", WithALoop(), "Under `jax.grad`"),
    ("says that it draws", SilentDraws(), "write `needs_key = True`"),
    ("one trace", HoldsAnObject(), "traced `fwd` again"),
    ("dtype outside", NoDtype(), "trainables['scaler'] should be float16, and is float32"),
    ("dtype outside", NoDtypeInFwd(), "y should be float16, and is float32"),
    ("dtype inside", ThroughFloat32(), "mul gives float32"),
    ("weights of another dtype", NotConverted(), "the output should be float16, and is float32"),
    ("drawn from the key", CountsCalls(), "`fwd` gives two results"),
    ("drawn from the key", IgnoresTheKey(), "the same output for two keys"),
    ("eager equals jit", AsksForTracers(), "Under `jax.jit` `fwd` gives another result"),
    ("keys used once", OneKeyForTwoWeights(), "`init` uses a random key twice"),
    ("keys used once", OneKeyForTwoMasks(), "`fwd` uses a random key twice"),
    ("a reused key is caught", FoldsIn(), "JAX's check found nothing"),
    ("batch equals loop", Centered(), "an operation mixes the examples"),
    ("vmap equals loop", RuleOfItsOwn(), "Under `jax.vmap`, `fwd` gives another result"),
    ("scan and checkpoint", Logs(), "Under `jax.lax.scan` and `jax.checkpoint`"),
    ("finite in half precision", Exponential(), "an output or a gradient is not finite"),
    ("gradients", StopsTheGradient(), "does not fit the function"),
    ("init sharded", OtherUnderJit(), "Under `jax.jit`, `init` makes other variables"),
    ("shard_map", CarriesZeros(), "Under `jax.shard_map`"),
]


@pytest.mark.parametrize(("name", "layer", "says"), WRONG_LAYERS, ids=lambda value: type(value).__name__)
def test_a_wrong_layer_breaks_its_law_and_no_other(name, layer, says):
    found = laws.report(layer, X)
    assert found.broken == (name,)
    assert says in text(found.failures[name])


def test_averages_that_are_rounded_break_their_law_and_no_other():
    found = laws.report(RoundedAverage(), X, averages=True, accumulates=laws.STATISTICS)
    assert found.broken == ("averages keep moving",)


def test_each_law_of_layers_is_broken_by_one():
    assert {name for name, *_ in WRONG_LAYERS} | {"averages keep moving"} == set(laws.LAYER)


# Layers of unusual style


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Plain:
    """Knows nothing of the package; its scaler is shared by all features."""

    initial: float = 1.0

    def init(self, key, x):
        del key
        return (jnp.full((), self.initial, x.dtype),), ()

    def fwd(self, x, trainables, non_trainables, key=None, inference_mode=False):
        (scaler,) = trainables
        return jnp.asarray(scaler, x.dtype) * x, non_trainables


@jax.tree_util.register_static
class ByHand:
    """No dataclass: equality, hash and immutability are written out."""

    __slots__ = ("rate",)
    needs_key = True

    def __init__(self, rate):
        object.__setattr__(self, "rate", rate)

    def __setattr__(self, *_):
        raise AttributeError("cannot be set")

    def __eq__(self, other):
        return type(other) is ByHand and self.rate == other.rate

    def __hash__(self):
        return hash(self.rate)

    def __reduce__(self):
        return ByHand, (self.rate,)

    __copy__ = __deepcopy__ = lambda self, *_: ByHand(self.rate)

    def init(self, key, x):
        return (), ()

    @functools.partial(jax.jit, static_argnames=("self", "inference_mode"))
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if not inference_mode:
            kept = jax.random.bernoulli(key, 1 - self.rate, x.shape)
            x = jax.lax.select(kept, x / jnp.asarray(1 - self.rate, x.dtype), jax.lax.full_like(x, 0))
        return x, non_trainables


class InFloat32(nn.Layer):
    """All in float32, where half precision comes in; its sums are products with ones."""

    def init(self, key, x):
        key, other = jax.random.split(key)
        kernel = 0.1 * jax.random.normal(key, (x.shape[-1], 3), jnp.promote_types(x.dtype, jnp.float32))
        return {"kernel": kernel.astype(x.dtype), "bias": jax.random.normal(other, (3,), x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        wide = jnp.promote_types(x.dtype, jnp.float32)
        kernel, bias = (trainables[name].astype(wide) for name in ("kernel", "bias"))
        return (jax.nn.softplus(x.astype(wide) @ kernel + bias)).astype(x.dtype), non_trainables


class Rounded(nn.Layer):
    """A rule for reverse mode alone: straight through."""

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return straight_through(x), non_trainables


@jax.custom_vjp
def straight_through(x):
    return 2 * x


straight_through.defvjp(lambda x: (2 * x, None), lambda _, cotangent: (2 * cotangent,))


class Average(nn.Layer):
    """Learns nothing; remembers the mean of each feature."""

    momentum: float = 0.9

    def init(self, key, x):
        wide = jnp.promote_types(x.dtype, jnp.float32)
        return (), {"mean": jnp.zeros(x.shape[-1:], wide), "steps": jnp.zeros((), jnp.int32)}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        old = non_trainables["mean"]
        if inference_mode:
            return x - old.astype(x.dtype), non_trainables
        mean = jnp.mean(x.astype(old.dtype), axis=tuple(range(x.ndim - 1)))
        new = (self.momentum * old + (1 - self.momentum) * mean).astype(old.dtype)
        return x - mean.astype(x.dtype), {"mean": new, "steps": non_trainables["steps"] + 1}


class RoundedAverage(Average):
    """Its average has passed through the dtype of the input."""

    def fwd(self, x, trainables, non_trainables, **options):
        y, new = super().fwd(x, trainables, non_trainables, **options)
        return y, {**new, "mean": new["mean"].astype(x.dtype).astype(new["mean"].dtype)}


class Table(nn.Layer):
    """Rows by their ids."""

    rows: int
    param_dtype: Any = jnp.float32

    def init(self, key, x):
        return {"table": jax.random.normal(key, (self.rows, 3), self.param_dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return jnp.take(trainables["table"], x, axis=0), non_trainables


RIGHT_LAYERS = [
    (Scaler(), X, {}),
    (Plain(2.0), X, {}),
    (ByHand(0.25), X, {}),
    (InFloat32(), X, {"but": "dtype inside"}),
    (Rounded(), X, {}),
    (Average(), X, {"averages": True, "accumulates": laws.STATISTICS}),
    (Table(5), jnp.array([[0, 4]]), {}),
    (nn.Series(nn.Linear(3), nn.Bias(), nn.F(jnp.tanh), nn.Dropout(0.5)), np.ones((2, 4)), {}),
    (Scaler(), jnp.ones((2, 3, 4)), {"batch_axes": 2}),
]


@pytest.mark.parametrize(("layer", "x", "options"), RIGHT_LAYERS, ids=lambda value: type(value).__name__)
def test_right_layers_of_unusual_style_obey(layer, x, options):
    found = laws.report(layer, x, **options)
    assert found.holds, text(next(iter(found.failures.values())))


# Optimizers


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SGD:
    """A right one, from which the wrong ones are derived."""

    learning_rate: jax.Array

    @classmethod
    def make(cls, learning_rate):
        return cls(jnp.asarray(learning_rate, jnp.float32))

    def init(self, trainables):
        return ()

    def step(self, gradients, state, trainables):
        return jax.tree.map(self.move, gradients), state

    def move(self, gradient):
        dtype = jnp.promote_types(gradient.dtype, jnp.float32)
        return -jnp.asarray(self.learning_rate, dtype) * gradient.astype(dtype)


def registered(cls):
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


def wide_zeros(weight):
    return jnp.zeros_like(weight, jnp.promote_types(weight.dtype, jnp.float32))


@registered
class Momentum(SGD):
    """With a velocity, likewise right."""

    def init(self, trainables):
        return {"velocity": jax.tree.map(wide_zeros, trainables), "count": jnp.zeros((), jnp.int32)}

    def step(self, gradients, state, trainables):
        velocity = jax.tree.map(self.faster, state["velocity"], gradients)
        stored = jax.tree.map(lambda new, old: new.astype(old.dtype), velocity, state["velocity"])
        return jax.tree.map(self.move, velocity), {"velocity": stored, "count": state["count"] + 1}

    def faster(self, velocity, gradient):
        dtype = jnp.promote_types(gradient.dtype, jnp.float32)
        return jnp.asarray(0.9, dtype) * velocity.astype(dtype) + gradient.astype(dtype)


@registered
class StopsGrowing(Momentum):
    def init(self, trainables):
        return {"velocity": jax.tree.map(jnp.zeros_like, trainables), "count": jnp.zeros((), jnp.int32)}


@registered
class NewWeights(SGD):
    def step(self, gradients, state, trainables):
        updates, _ = super().step(gradients, state, trainables)
        return optim.apply_updates(trainables, updates), state


@registered
class AsAList(SGD):
    def step(self, gradients, state, trainables):
        return [self.move(gradient) for gradient in jax.tree.leaves(gradients)], state


@registered
class AsksForTheNorm(SGD):
    def step(self, gradients, state, trainables):
        if optax.global_norm(gradients) > 1e6:
            raise ValueError("diverged")
        return super().step(gradients, state, trainables)


@registered
class OutsideState(SGD):
    def step(self, gradients, state, trainables):
        CALLS.append(1)
        return jax.tree.map(lambda leaf: len(CALLS) * self.move(leaf), gradients), state


@registered
class Flattened(Momentum):
    def init(self, trainables):
        return [jnp.zeros_like(leaf) for leaf in jax.tree.leaves(trainables)]

    def step(self, gradients, state, trainables):
        leaves, structure = jax.tree.flatten(gradients)
        velocity = [self.faster(old, leaf) for old, leaf in zip(state, leaves)]
        updates = jax.tree.unflatten(structure, [self.move(leaf) for leaf in velocity])
        return updates, [new.astype(old.dtype) for new, old in zip(velocity, state)]


@registered
class Widens(StopsGrowing):
    def step(self, gradients, state, trainables):
        velocity = jax.tree.map(self.faster, state["velocity"], gradients)
        updates = jax.tree.map(self.move, velocity)
        return updates, {"velocity": velocity, "count": state["count"] + 1}


@registered
class PythonsCount(Momentum):
    def init(self, trainables):
        return {**super().init(trainables), "count": 0}

    def step(self, gradients, state, trainables):
        updates, new = super().step(gradients, state, trainables)
        return updates, {**new, "count": jnp.asarray(new["count"], jnp.int32)}


@registered
class PythonsNumber(SGD):
    @classmethod
    def make(cls, learning_rate):
        return cls(float(learning_rate) if not isinstance(learning_rate, jax.core.Tracer) else learning_rate)


@dataclasses.dataclass(frozen=True)
class NotRegistered(SGD):
    pass


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class AllStatic(SGD):
    make = staticmethod(lambda learning_rate: AllStatic(learning_rate))


@registered
class HalfUpdates(SGD):
    def step(self, gradients, state, trainables):
        return jax.tree.map(
            lambda leaf: -jnp.asarray(self.learning_rate, leaf.dtype) * leaf, gradients
        ), state


@registered
class Clips(SGD):
    def step(self, gradients, state, trainables):
        norm = jnp.sqrt(
            jnp.sum(jnp.stack([jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(gradients)]))
        )
        share = jnp.minimum(1, 100 / norm)
        return jax.tree.map(lambda leaf: share.astype(jnp.float32) * self.move(leaf), gradients), state


@registered
class KeepsTheDtype(SGD):
    @classmethod
    def make(cls, learning_rate):
        return cls(
            jnp.asarray(
                learning_rate, learning_rate.dtype if isinstance(learning_rate, jax.Array) else jnp.float32
            )
        )


@registered
class SlowWeights(SGD):
    def init(self, trainables):
        return {"slow": trainables}


@registered
class CastsItself(SGD):
    def move(self, gradient):
        dtype = jnp.promote_types(gradient.dtype, jnp.float32)
        return -self.learning_rate.astype(dtype) * gradient.astype(dtype)


@registered
class AsksTheHost(SGD):
    def step(self, gradients, state, trainables):
        spec, rate = (
            jax.ShapeDtypeStruct((), jnp.float32),
            jax.lax.stop_gradient(jnp.float32(self.learning_rate)),
        )
        factor = jax.pure_callback(lambda rate: np.float32(1), spec, rate)
        return jax.tree.map(lambda leaf: factor.astype(leaf.dtype) * self.move(leaf), gradients), state


@registered
class StopsAtTheStep(SGD):
    def step(self, gradients, state, trainables):
        return jax.lax.stop_gradient(super().step(gradients, state, trainables))


@registered
class RoundsBetween(SGD):
    def move(self, gradient):
        dtype = jnp.promote_types(gradient.dtype, jnp.float32)
        return (-jnp.asarray(self.learning_rate, gradient.dtype) * gradient).astype(dtype)


@registered
class FromShapes(Momentum):
    def init(self, trainables):
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, wide_zeros(leaf).dtype), trainables)
        return {"velocity": zeros, "count": jnp.zeros((), jnp.int32)}


WRONG_OPTIMIZERS = [
    ("signature", NewWeights.make, {}, "returns the weights themselves"),
    ("signature", AsAList.make, {}, "another structure than the trainables"),
    ("pure and under jit", AsksForTheNorm.make, {}, "TracerBoolConversionError"),
    ("pure and under jit", OutsideState.make, {}, "another result the second time"),
    ("state mirrors the weights", Flattened.make, {}, "neither one number nor a tree built like"),
    ("state keeps its types", Widens.make, {}, "no loop can carry it"),
    ("state keeps its types", PythonsCount.make, {}, "no loop can carry it"),
    ("a pytree of its numbers", PythonsNumber.make, {}, "optimizer.learning_rate is a float"),
    ("a pytree of its numbers", NotRegistered.make, {}, "JAX does not know your class"),
    ("a pytree of its numbers", AllStatic.make, {}, "has no leaves"),
    ("dtypes", HalfUpdates.make, {}, "should be float32, and are float16"),
    ("no weights", Clips.make, {}, "With trainables = ()"),
    ("one trace", KeepsTheDtype.make, {}, "traced `step` again"),
    ("donation", SlowWeights.make, {}, "as `init` returns it, is a weight itself"),
    ("numbers are cast", CastsItself.make, {}, "With Python's numbers as leaves"),
    ("ensemble by vmap", AsksTheHost.make, {}, "Under `jax.vmap` over the learning rate"),
    (
        "gradients through a step",
        StopsAtTheStep.make,
        {},
        "The derivative of the weights by the learning rate",
    ),
    ("rounded once", RoundsBetween.make, {}, "something between is rounded to bfloat16"),
    ("sums keep growing", StopsGrowing.make, {}, "is not what it is in float64: it is of bfloat16"),
    ("state is sharded", FromShapes.make, {}, "The weights are spread over 2 devices"),
    ("equals Optax", Momentum.make, {"peer": optax.sgd(0.1)}, "the weights differ from Optax's"),
]


@pytest.mark.parametrize(("name", "make", "options", "says"), WRONG_OPTIMIZERS)
def test_a_wrong_optimizer_breaks_its_law_and_no_other(name, make, options, says):
    found = laws.report_optimizer(make, **options)
    assert found.broken == (name,)
    assert says in text(found.failures[name])


def test_each_law_of_optimizers_is_broken_by_one():
    assert {name for name, *_ in WRONG_OPTIMIZERS} == set(laws.OPTIMIZER)


class Lazy(NamedTuple):
    """A named tuple is a pytree already; the state is one, too, and holds the count in a tuple."""

    learning_rate: Any

    def init(self, trainables):
        return jax.tree.map(wide_zeros, trainables), (jnp.int32(0),)

    def step(self, gradients, state, trainables):
        average, (count,) = state
        wide = [jnp.promote_types(leaf.dtype, jnp.float32) for leaf in jax.tree.leaves(gradients)]
        wide = jax.tree.unflatten(jax.tree.structure(gradients), wide)
        new = jax.tree.map(lambda a, g, d: a.astype(d) + g.astype(d), average, gradients, wide)
        rate = self.learning_rate
        updates = jax.tree.map(lambda leaf: -jnp.asarray(rate, leaf.dtype) * leaf, new)
        return updates, (jax.tree.map(lambda n, a: n.astype(a.dtype), new, average), (count + 1,))


RIGHT_OPTIMIZERS = [
    (SGD.make, {"peer": optax.sgd(0.1)}),
    (Momentum.make, {"peer": optax.sgd(0.1, momentum=0.9)}),
    (lambda rate: Lazy(jnp.asarray(rate, jnp.float32)), {"peer": optax.sgd(0.1, momentum=1.0)}),
    (optim.AdamW, {}),
    (lambda rate: optim.MasterWeights(optim.Adam(rate)), {}),
]


@pytest.mark.parametrize(("make", "options"), RIGHT_OPTIMIZERS)
def test_right_optimizers_of_unusual_style_obey(make, options):
    found = laws.report_optimizer(make, **options)
    assert found.holds, text(next(iter(found.failures.values())))


# Tables, and what is asked wrongly


def test_tables_fit_a_page_and_name_every_law():
    for table in (laws.LAYER, laws.OPTIMIZER):
        lines = repr(table).splitlines()
        assert max(map(len, lines)) <= 76
        assert [line.split("  ")[0] for line in lines if not line.startswith(" ")] == list(table)
        assert table and all(law.statement.endswith(".") for law in table.values())


@pytest.mark.parametrize("table", [laws.LAYER, laws.OPTIMIZER], ids=["layers", "optimizers"])
def test_a_law_bears_the_name_of_its_check(table):
    """A traceback and a list of the slowest tests name the law, too."""
    assert [law.check.__name__ for law in table.values()] == [re.sub(r"\W", "_", name) for name in table]


def test_a_law_is_made_of_a_function_and_needs_those_of_its_own_table():
    table = laws.Laws()

    @table.law()
    def even(subject):
        """It is
        even.
        """
        if subject % 2:
            raise Failed("It is odd.")

    @table.law(even, name="a power_of 2", applies=bool)
    def a_power_of_2(subject):
        """Its only factors are 2."""
        if subject & (subject - 1):
            raise Failed("It has another factor.")

    assert [(law.name, law.statement, law.needs) for law in table.values()] == [
        ("even", "It is even.", ()),
        ("a power_of 2", "Its only factors are 2.", ("even",)),
    ]
    assert [law.name for law, failure in table.broken(6) if failure] == ["a power_of 2"]
    assert [law.name for law, failure in table.broken(3) if failure] == ["even"]
    assert [law.name for law, _ in table.broken(0)] == ["even"]
    for wrong in (table.law(), table.law(laws.LAYER["frozen"], name="another")):
        with pytest.raises(ValueError, match="is there already, or needs laws that are not"):
            wrong(even.check)


def test_a_report_shows_what_holds_what_is_broken_and_what_was_not_looked_at():
    found = laws.report(FromNumbers(), X, but="static")
    lines = str(found).splitlines()
    assert lines[0].startswith("FromNumbers(): 1 of ") and lines[0].endswith(" laws is broken")
    assert max(map(len, lines)) <= 76
    marks = {law: mark for mark, law in (line.split(" ", 1) for line in lines[1:] if line[0] in "✓✗-")}
    marks = {law.split("  ")[0]: mark for law, mark in marks.items()}
    assert marks["init repeats"] == "✓" and marks["init from shapes"] == "✗" and marks["shard_map"] == "-"
    assert "static" not in marks and not found.holds and found.broken == ("init from shapes",)
    assert "<table" in found._repr_html_() and "AttributeError" not in found._repr_html_()


def test_a_report_names_no_address():
    assert "0x" not in str(laws.report(ByHand(0.5), X, but=set(laws.LAYER) - {"frozen"}))


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((Scaler, X), TypeError, "You gave the class `Scaler`"),
        ((jnp.tanh, X), TypeError, "there is no `init`"),
        ((Scaler(), (2, 4)), TypeError, "x must be an array, or a jax.ShapeDtypeStruct, got a tuple"),
        ((Scaler(), jnp.ones(())), ValueError, "x has 0 axes, and 1 of them should be batch axes"),
        ((Table(5), jax.ShapeDtypeStruct((2, 3), "int32")), ValueError, "say below which number"),
    ],
)
def test_what_is_no_layer_or_no_batch_is_refused(arguments, error, says):
    with pytest.raises(error, match=re.escape(says)):
        laws.report(*arguments)


def test_a_stub_is_no_answer_yet():
    class Stub(Scaler):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False): ...

    with pytest.raises(NotAttempted):
        checks.obeys_laws(Stub(), X)
    with pytest.raises(TypeError, match="nothing to look at yet"):
        laws.report(Stub(), X)


@jax.custom_jvp
def squared(x):
    return x * x


@squared.defjvp
def _(primals, tangents):
    """Right, but for its own derivative."""
    (x,), (tangent,) = primals, tangents
    return x * x, 2 * (jax.lax.stop_gradient(x)) * tangent


def test_a_rule_of_its_own_is_judged_to_the_second_order():
    """JAX's own rules are right to any order; a package's test of a layer that has others looks at both."""
    law = laws.LAYER["gradients"]
    wrong = nn.F(lambda x: squared(x) + jnp.sin(x))
    law(laws.LayerSubject(wrong, (3,)))
    with pytest.raises(Failed, match="forward of reverse"):
        law(laws.LayerSubject(wrong, (3,), thorough=True))
    for layer, own in [(wrong, True), (nn.F(jnp.sin), False), (nn.LayerNorm(), True), (nn.Linear(2), False)]:
        assert laws.LayerSubject(layer, (3,)).has_own_rules == own
