"""An optimizer that is held against the laws, and the small model that it trains."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn, optim
from mlax_tutorial.checking import guarding
from mlax_tutorial.checking.describe import kind
from mlax_tutorial.checking.outcome import Failed, NotAttempted
from mlax_tutorial.inspection.dtypes import DTYPES
from mlax_tutorial.nn.arrays import accumulator

MODEL = nn.Series(nn.Linear(2), nn.F(jnp.tanh), nn.Series(nn.Bias()))  # tuples, dicts and ()
X = np.random.default_rng(0).normal(size=(8, 4))
TARGETS = np.random.default_rng(1).normal(size=(8, 2))
# As `MODEL.init` draws it, which would take longer to compile than to train.
KERNEL = np.array(
    [[0.5350889, -0.4848635], [-0.4022262, -0.6192563], [-0.46665, 0.3177391], [0.3894417, -0.546088]]
)


def spellings():
    """Each spelling of a learning rate; all must run the one program."""
    return [0.5, 1, np.float64(0.25), np.float32(0.1), jnp.float32(0.1), jnp.array(0.3), jnp.bfloat16(0.5)]


def weights(dtype="float32"):
    """Those of the model."""
    dtype = jnp.dtype(dtype)
    return jax.device_put(({"kernel": KERNEL.astype(dtype)}, (), ({"bias": np.zeros(2, dtype)},)))


@jax.jit
def gradients(trainables):
    dtype = trainables[0]["kernel"].dtype

    def loss(trainables):
        outputs, _ = MODEL.fwd(jnp.asarray(X, dtype), trainables, ())
        return jnp.mean(jnp.square(outputs - jnp.asarray(TARGETS, dtype)))

    return jax.grad(loss)(trainables)


class GuardedOptimizer:
    """An optimizer whose errors are shown as its author's, and whose results are as they should be."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self._init = guarding.guard(optimizer.init, "init")
        self._step = guarding.guard(optimizer.step, "step")

    def init(self, trainables):
        state = self._init(trainables)
        if state is None:
            raise Failed("`init` returned None: is a `return` missing? Where there is no state, return `()`.")
        return state

    def step(self, gradients, state, trainables):
        result = self._step(gradients, state, trainables)
        if not isinstance(result, tuple) or len(result) != 2:
            got = "None: is a `return` missing?" if result is None else f"{kind(result)}."
            raise Failed(f"`step` must return a pair, `(updates, state)`, but it returned {got}")
        return result


class OptimizerSubject:
    """An optimizer, and how it departs from the plain laws.

    Args:
      make: the optimizer from one of its numbers, usually the learning rate.
      peer: the optimizer of Optax that equals ``make(rate)``.
      rate: the learning rate at which it is looked at.
      wide: whether all of the state must be at least float32. By default each field may be, or have the dtype of the weights.
      arithmetic: primitives, beyond sums and products, that may hold float32 for half-precision weights; by default all.
      frozen: the paths that it leaves out of its state.
      packed: whether its state is of vectors, one for each dtype, not of one array a weight.
      declared: dtypes of fields of the state that a switch of the optimizer sets, by name.
      double: whether weights may be of float64.
      thorough: whether all dtypes are audited with float64 switched on, as the package's own tests do.
    """

    def __init__(
        self,
        make: Callable[[Any], Any],
        *,
        peer: Any = None,
        rate: float = 0.1,
        wide: bool = False,
        arithmetic: frozenset[str] | None = None,
        frozen: Callable[[str], bool] = lambda path: False,
        packed: bool = False,
        declared: dict[str, str] | None = None,
        double: bool = True,
        thorough: bool = False,
    ):
        if not callable(make):
            raise Failed(
                f"You gave {kind(make)}, but a function that makes the optimizer from a learning rate is asked for."
            )
        self.make, self.peer, self.rate, self.wide, self.arithmetic = make, peer, rate, wide, arithmetic
        self.frozen, self.packed, self.declared = frozen, packed, declared or {}
        self.double, self.thorough = double, thorough
        self._make, self.traces = guarding.guard(make, "make"), []
        self.theirs = self.theirs_of(rate)
        if isinstance(self.theirs, type) or self.theirs is None:
            raise Failed(f"You gave {kind(self.theirs)}, but an optimizer is asked for.")
        for name in ("init", "step"):
            if not callable(getattr(self.theirs, name, None)):
                raise Failed(
                    f"You gave {kind(self.theirs)}, but an optimizer is asked for, which has two methods, `init` and `step`: there is "
                    f"no `{name}`."
                )
            if guarding.is_open(getattr(self.theirs, name)):
                raise NotAttempted
        self.optimizer = self.guarded(self.theirs)

    @property
    def name(self):
        return type(self.theirs).__name__

    def theirs_of(self, rate):
        return self._make(rate)

    def guarded(self, optimizer):
        return GuardedOptimizer(optimizer)

    @property
    def settings(self):
        """In which dtypes steps are audited, and whether float64 is switched on there."""
        if self.thorough:
            return [(dtype, True) for dtype in DTYPES]
        single = [("float16", False), ("bfloat16", False), ("float32", False)]
        return [*single, ("float32", True), ("float64", True)] if self.double else single

    # What several laws look at

    @functools.cached_property
    def trainables(self):
        return weights()

    @functools.cached_property
    def gradients(self):
        return gradients(self.trainables)

    @functools.cached_property
    def state(self):
        return self.optimizer.init(self.trainables)

    @functools.cached_property
    def stepped(self):
        """What a step gives without ``jit``."""
        return self.optimizer.step(self.gradients, self.state, self.trainables)

    @functools.cached_property
    def train(self):
        """Two steps of an optimizer, jitted: ``train(optimizer, trainables)``. `traces` grows with each trace."""

        @jax.jit
        def train(optimizer, trainables):
            self.traces.append(1)
            return self.run(self.guarded(optimizer), trainables, steps=2)[0]

        return train

    @functools.cached_property
    def jitted(self):
        return jax.jit(self.optimizer.step)

    @property
    def mirror(self):
        """Shapes and dtypes of a tree in the state, for weights of float32."""
        trainables = self.trainables
        if self.packed:
            size = sum(leaf.size for leaf in jax.tree.leaves(trainables))
            return {"float32": ((size,), jnp.dtype("float32"))}
        return jax.tree_util.tree_map_with_path(
            lambda path, leaf: () if self.frozen(jax.tree_util.keystr(path)) else (leaf.shape, leaf.dtype),
            trainables,
        )

    def state_dtypes(self, name, dtype):
        """Which dtypes a field of the state may have for weights of ``dtype``."""
        wide = str(accumulator(dtype))
        fields = set(name.split("."))
        if fields & self.declared.keys():
            return tuple(self.declared[field] for field in fields & self.declared.keys())
        return (wide,) if self.wide else tuple(dict.fromkeys((str(dtype), wide)))

    def run(self, optimizer, trainables, steps=3):
        state = optimizer.init(trainables)
        for _ in range(steps):
            updates, state = optimizer.step(gradients(trainables), state, trainables)
            trainables = apply_updates(trainables, updates)
        return trainables, state


def apply_updates(trainables, updates):
    return optim.apply_updates(trainables, updates)


def mirrors(state, wanted, name=""):
    """The trees in a state, ``(name, tree)``: all but single numbers and what is empty.

    Containers are opened until a tree is found that is built like ``wanted``, a tree of ``(shape, dtype)``, or one that holds an array.
    """
    shapes = jax.tree.structure(wanted, is_leaf=is_type)
    if jax.tree.structure(state) == shapes and jax.tree.leaves(state):
        yield name, state
    elif isinstance(state, (tuple, list, dict)) or dataclasses.is_dataclass(state):
        for part, child in _children(state):
            yield from mirrors(child, wanted, f"{name}.{part}" if name else str(part))
    else:
        if any(jnp.shape(leaf) != () for leaf in jax.tree.leaves(state)):
            yield name, state


def is_type(leaf):
    """Whether it is a pair of a shape and a dtype."""
    return isinstance(leaf, tuple) and len(leaf) == 2 and isinstance(leaf[1], np.dtype)


def _children(state):
    if hasattr(state, "_asdict"):
        return state._asdict().items()
    if isinstance(state, dict):
        return state.items()
    if isinstance(state, (tuple, list)):
        return enumerate(state)
    return [(field.name, getattr(state, field.name)) for field in dataclasses.fields(state)]


@dataclasses.dataclass(frozen=True)
class Type:
    """The type of a leaf of a state."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool

    def __str__(self):
        return f"{self.dtype}{list(self.shape)}" + (", weak" if self.weak else "")


def types(tree):
    def one(leaf):
        aval = jax.typeof(leaf) if not isinstance(leaf, jax.ShapeDtypeStruct) else leaf
        return Type(tuple(aval.shape), str(aval.dtype), bool(aval.weak_type))

    return jax.tree.map(one, tree)
