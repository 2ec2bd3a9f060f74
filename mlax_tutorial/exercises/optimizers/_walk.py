"""A few steps of a reader's optimizer with given gradients, held against formulas, right ones and known wrong ones."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed, checks
from mlax_tutorial.checking.guarding import Raised
from mlax_tutorial.checking.laws.optimizer_subject import GuardedOptimizer
from mlax_tutorial.exercises.optimizers._chapter import Tunable, zeros


class Gain(NamedTuple):
    """A node that is neither a dict nor a plain tuple nor a list."""

    value: Any


def _tree(kernel, bias, number, gain):
    """Four leaves in nodes of four kinds, one of them without an axis."""
    return {
        "layer": {"kernel": np.array(kernel), "bias": np.array(bias)},
        "others": [np.array(number), (Gain(np.array(gain)),)],
    }


WEIGHTS = _tree([[1.0, -2.0], [0.5, 3.0]], [0.5, -1.0], 0.25, [1.5, 0.8, -0.3])
STEPS = [
    _tree([[3.0, -1.0], [0.2, 4.0]], [1.0, -0.5], 0.6, [0.4, -0.9, 2.0]),
    _tree([[-1.0, 2.0], [0.4, 1.0]], [0.3, 2.0], -1.1, [0.2, 0.6, -0.7]),
    _tree([[0.5, 0.5], [-2.0, 0.1]], [-1.0, 0.7], 0.9, [-1.2, 0.3, 0.1]),
]
MANY = 7  # so often the three come in turn


def arrays(tree, dtype=jnp.float32):
    return jax.device_put(jax.tree.map(lambda leaf: np.asarray(leaf, dtype), tree))


@dataclasses.dataclass
class Found:
    """The updates of each step and the last state; ``again`` takes other steps with the same program."""

    updates: list
    state: Any
    optimizers: list
    again: Callable[..., list]


def walk(optimizers, weights=WEIGHTS, gradients=STEPS, dtype=jnp.float32):
    """The updates of each step of the reader's optimizer, which is an argument of a jitted function, as in the chapter.

    ``optimizers`` is one, or a list with one for each step: the same but for its numbers.
    """
    optimizers = optimizers if isinstance(optimizers, list) else [optimizers] * len(gradients)
    known(optimizers[0])
    for other in optimizers[1:]:
        if jax.tree.structure(other) != jax.tree.structure(optimizers[0]):
            raise Failed(
                "Another number in the optimizer makes another program: all its numbers must be leaves, so derive the class from `Tunable`."
            )
    program = jax.jit(lambda optimizer, *arguments: GuardedOptimizer(optimizer).step(*arguments))

    def step(*arguments):
        try:
            return program(*arguments)
        except Raised as raised:
            if isinstance(raised.error, jax.errors.ConcretizationTypeError | jax.errors.JAXTypeError):
                raised.message += (
                    "\nThe optimizer is an argument of the jitted step, so its own numbers are traced, too: compute with "
                    "`self.…` as it is, without `float`, `int`, NumPy or `if`."
                )
            raise

    def go(optimizers, read=lambda result, weights: result):
        now, found = arrays(weights, dtype), []
        state = before = GuardedOptimizer(optimizers[0]).init(arrays(weights, dtype))
        for optimizer, each in zip(optimizers, gradients):
            updates, state = read(step(optimizer, arrays(each, dtype), state, now), now)
            if jax.tree.map(jnp.shape, updates) != jax.tree.map(jnp.shape, now):
                raise Failed(
                    "`step` must return the updates first, a tree built like the weights, and then the state.",
                    expected=jax.tree.map(jnp.shape, weights),
                    got=jax.tree.map(jnp.shape, updates),
                )
            found.append(jax.tree.map(np.asarray, updates))
            now = arrays(jax.tree.map(lambda w, u: np.asarray(w) + np.asarray(u), now, updates), dtype)
        return found, state, before

    updates, state, before = go(optimizers)
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if jnp.shape(leaf) == () and jnp.result_type(leaf) in (jnp.bfloat16, jnp.float16):
            raise Failed(
                f"`state{jax.tree_util.keystr(path)}` is one number of {jnp.result_type(leaf)}, which soon cannot count on: in bfloat16 "
                "256 + 1 is 256. Count in int32 or in float32.",
            )
    if dtype == jnp.float32:
        _same_outline(before, state)
    return Found(updates, state, optimizers, lambda *arguments: go(*arguments)[0])


def _same_outline(before, after):
    """Fail where the state that `step` returns is not built like the one that `init` made."""
    one, two = ((jax.tree.structure(state), jax.tree.map(jnp.shape, state)) for state in (before, after))
    if one != two:
        raise Failed(
            "The state that `step` returns is not built like the one of `init`: a jitted step would be traced a second time, and a `scan` "
            "would refuse the carry.",
            expected=before,
            got=after,
        )


def known(made):
    """Fail if JAX takes an instance of the reader's class for one leaf."""
    if any(leaf is made for leaf in jax.tree.leaves(made)):
        raise Failed(
            "JAX does not know your class, so `jax.jit` refuses it as an argument. Derive it from `Tunable`: "
            f"`class {type(made).__name__}(Tunable):`."
        )


def keeps_defaults(theirs, solution):
    """Fail if a field has another default than the stub gave it."""
    wanted = {field.name: field.default for field in dataclasses.fields(solution)}
    given = dataclasses.fields(theirs) if dataclasses.is_dataclass(theirs) else ()
    for field in given:
        default = wanted.get(field.name, dataclasses.MISSING)
        if default is not dataclasses.MISSING and field.default != default:
            raise Failed(f"The default of `{field.name}` was {default}: leave the fields as they stand.")


def by_formula(formula, weights=WEIGHTS, gradients=STEPS):
    """The updates by a formula, ``formula(g, memory, w, t) -> update`` for each leaf; ``memory`` is a dict that lasts."""
    leaves, structure = jax.tree.flatten(weights)
    leaves, memories, found = [np.array(leaf) for leaf in leaves], [{} for _ in leaves], []
    for t, each in enumerate(gradients, 1):
        updates = [formula(g, memory, w, t) for g, memory, w in zip(jax.tree.leaves(each), memories, leaves)]
        leaves = [w + u for w, u in zip(leaves, updates)]
        found.append(jax.tree.unflatten(structure, updates))
    return found


class Inner(Tunable):
    """Momentum with decay, which acts on the weights that it is given: a wrapper must hand the right ones through."""

    learning_rate: float
    momentum: float
    weight_decay: float

    def init(self, weights):
        return zeros(weights)

    def step(self, gradients, velocity, weights):
        velocity = jax.tree.map(lambda v, g: self.momentum * v + g, velocity, gradients)
        updates = jax.tree.map(
            lambda v, w: -self.learning_rate * (v + self.weight_decay * w), velocity, weights
        )
        return updates, velocity


def alike(one, two, rtol=1e-3, atol=1e-5):
    """In numbers alone: the formulas are computed in NumPy."""
    return checks.agrees(one, jax.tree.map(np.float64, two), rtol, atol)


def compare(found, expected, wrongs, gradients=STEPS):
    """Fail where the updates differ: with the words of the wrong formula that gives them, or with the first step that differs."""
    walked, found = found, found.updates
    if alike(found, expected, rtol=2e-4):
        return
    if alike(found, expected):
        shown = _first(found, expected, gradients, rtol=2e-4)
        shown.pop("step")
        raise Failed(
            "The updates are right but for their last digits: something is rounded to half precision.",
            **shown,
        )
    for other, words in wrongs:
        if alike(found, other):
            shown = _first(found, expected, gradients)
            shown.pop("step")
            raise Failed(words, **shown)
    shown = _first(found, expected, gradients)
    which = shown.pop("step")
    if said := _of_any_optimizer(walked, expected):
        raise Failed(said, **shown)
    if any(not np.isfinite(leaf).all() for leaf in jax.tree.leaves(found)):
        raise Failed(f"The updates of step {which} are not finite.", **shown)
    raise Failed(f"The updates of step {which} are not as the formula says.", **shown)


def _of_any_optimizer(found, expected):
    """The words for a slip that any optimizer may hold: its program runs again, with the result or the numbers changed."""

    def reads(read):
        try:
            return alike(found.again(found.optimizers, read), expected)
        except (Failed, TypeError, ValueError):
            return False

    if alike(jax.tree.map(np.negative, found.updates), expected):
        return "The updates point up the gradient: they are added to the weights, so they need a minus."
    if reads(lambda result, weights: (jax.tree.map(jnp.subtract, result[0], weights), result[1])):
        return "You return the new weights. Return the updates, which are added to the weights afterwards."
    if reads(lambda result, weights: (result[1], result[0])):
        return "You return the state first and the updates second: the updates come first."
    first = found.optimizers[0]
    leaves = jax.tree_util.tree_leaves_with_path(first)
    fields = [_field(first, path) for path, leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    for name in dict.fromkeys(fields):  # all numbers of a field at once: it may hold an optimizer

        def change(path, leaf, name=name):
            changes = _field(first, path) == name and jnp.issubdtype(leaf.dtype, jnp.floating)
            return jnp.asarray(0.4 * leaf + 0.1, leaf.dtype) if changes else leaf

        changed = jax.tree_util.tree_map_with_path(change, first)
        plain, other = (found.again([each] * len(found.updates)) for each in (first, changed))
        if alike(plain, other, rtol=1e-6, atol=1e-7):
            return f"`{name}` makes no difference: read it from the field, `self.{name}`."
    return None


def _field(optimizer, path):
    """The name of the field of a leaf. The reader's class may have been registered without names, in the order of its fields."""
    leaves = [place for place, _ in jax.tree_util.tree_leaves_with_path(optimizer)]
    names = [name for name, value in vars(optimizer).items() for _ in jax.tree.leaves(value)]
    return names[leaves.index(path)] if len(names) == len(leaves) else jax.tree_util.keystr(path)


def _first(found, expected, gradients, rtol=1e-3):
    for i, (one, two) in enumerate(zip(found, expected)):
        if not alike(one, two, rtol):
            return {
                "input": f"gradients of step {i + 1}: {_short(gradients[i])}",
                "expected": arrays(two),
                "got": arrays(one),
                "step": i + 1,
            }


def _short(tree):
    return {name: np.round(leaf, 3).tolist() for name, leaf in _flat(tree)}


def _flat(tree):
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path), np.asarray(leaf, float)) for path, leaf in leaves]
