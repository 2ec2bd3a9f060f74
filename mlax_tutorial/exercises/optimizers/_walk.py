"""A few steps of a reader's optimizer with given gradients, held against formulas, right ones and known wrong ones."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed
from mlax_tutorial.checking.laws.optimizer_subject import GuardedOptimizer

WEIGHTS = {"layer": {"kernel": np.array([[1.0, -2.0], [0.5, 3.0]]), "bias": np.array([0.5, -1.0])}}
STEPS = [
    {"layer": {"kernel": np.array([[3.0, -1.0], [0.2, 4.0]]), "bias": np.array([1.0, -0.5])}},
    {"layer": {"kernel": np.array([[-1.0, 2.0], [0.4, 1.0]]), "bias": np.array([0.3, 2.0])}},
    {"layer": {"kernel": np.array([[0.5, 0.5], [-2.0, 0.1]]), "bias": np.array([-1.0, 0.7])}},
]


def arrays(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)


def walk(optimizer, weights=WEIGHTS, gradients=STEPS):
    """The updates of each step of the reader's optimizer, under ``jit``."""
    guarded, weights = GuardedOptimizer(optimizer), arrays(weights)
    state, step, found = guarded.init(weights), jax.jit(guarded.step), []
    for each in gradients:
        updates, state = step(arrays(each), state, weights)
        if jax.tree.map(jnp.shape, updates) != jax.tree.map(jnp.shape, weights):
            raise Failed(
                "`step` must return the updates first, a tree built like the weights, and then the state.",
                expected=jax.tree.map(jnp.shape, weights),
                got=jax.tree.map(jnp.shape, updates),
            )
        found.append(jax.tree.map(np.asarray, updates))
        weights = jax.tree.map(lambda w, u: (w + u).astype(w.dtype), weights, updates)
    return found


def by_formula(formula, weights=WEIGHTS, gradients=STEPS):
    """The updates by a formula, ``formula(g, memory, w, t) -> update`` for each leaf; ``memory`` is a dict that lasts."""
    leaves, structure = jax.tree.flatten(weights)
    leaves, memories, found = [np.array(leaf) for leaf in leaves], [{} for _ in leaves], []
    for t, each in enumerate(gradients, 1):
        updates = [formula(g, memory, w, t) for g, memory, w in zip(jax.tree.leaves(each), memories, leaves)]
        leaves = [w + u for w, u in zip(leaves, updates)]
        found.append(jax.tree.unflatten(structure, updates))
    return found


def alike(one, two, rtol=1e-3, atol=1e-5):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two))
    return jax.tree.structure(one) == jax.tree.structure(two) and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=rtol, atol=atol) for a, b in pairs
    )


def compare(found, expected, wrongs, gradients=STEPS):
    """Fail where the updates differ: with the words of the wrong formula that gives them, or with the first step that differs."""
    if alike(found, expected):
        return
    for other, words in wrongs:
        if alike(found, other):
            shown = _first(found, expected, gradients)
            shown.pop("step")
            raise Failed(words, **shown)
    shown = _first(found, expected, gradients)
    which = shown.pop("step")
    if any(not np.isfinite(leaf).all() for leaf in jax.tree.leaves(found)):
        raise Failed(f"The updates of step {which} are not finite.", **shown)
    raise Failed(f"The updates of step {which} are not as the formula says.", **shown)


def _first(found, expected, gradients):
    for i, (one, two) in enumerate(zip(found, expected)):
        if not alike(one, two):
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
