"""Clipping by the global norm, as a wrapper."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import optim
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.optimizers._chapter import Tunable, squared
from mlax_tutorial.exercises.optimizers._walk import STEPS, WEIGHTS, by_formula, compare, walk


class Clipped(Tunable):
    optimizer: Tunable
    maximum: float = 1.0

    def init(self, weights):
        return self.optimizer.init(weights)

    def step(self, gradients, state, weights):
        squares = jax.tree.map(jnp.sum, squared(gradients))
        norm = jnp.sqrt(sum(jax.tree.leaves(squares)))
        factor = jnp.minimum(1.0, self.maximum / jnp.maximum(norm, 1e-12))
        gradients = jax.tree.map(lambda g: factor * g, gradients)
        return self.optimizer.step(gradients, state, weights)


RATE, DECAY, MAXIMUM = 1.0, 0.5, 2.0
# The first gradient is long, the second and the third shorter than the maximum, then none at all.
GRADIENTS = [
    STEPS[0],
    jax.tree.map(lambda g: 0.1 * g, STEPS[1]),
    STEPS[2],
    jax.tree.map(np.zeros_like, STEPS[0]),
]


def _momentum(change, after=lambda u: u):
    """Momentum, with each tree of gradients changed before it, and its updates after it."""

    def formula(g, memory, w, t):
        memory["v"] = DECAY * memory.get("v", 0 * g) + g
        return -RATE * memory["v"]

    return [after(u) for u in by_formula(formula, WEIGHTS, [change(g) for g in GRADIENTS])]


def _scaled(tree, factor):
    return jax.tree.map(lambda leaf: factor * leaf, tree)


def _norm(tree):
    return np.sqrt(sum(np.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def _factor(norm):
    return min(1.0, MAXIMUM / max(norm, 1e-12))


def check(Clipped):
    inner = optim.SGD(RATE, momentum=DECAY)
    found = walk(checks.make(Clipped, inner, MAXIMUM), WEIGHTS, GRADIENTS)
    if any(np.isnan(leaf).any() for leaf in jax.tree.leaves(found[3])):
        raise Failed(
            "A gradient of zero makes NaN: the norm is 0, and so is the divisor. `jnp.maximum(norm, 1e-12)` keeps it from zero.",
            input="gradients of zeros",
        )
    compare(
        found,
        _momentum(lambda g: _scaled(g, _factor(_norm(g)))),
        [
            (
                _momentum(lambda g: jax.tree.map(lambda leaf: _factor(_norm(leaf)) * leaf, g)),
                "Each leaf is clipped by its own norm. The norm is that of all leaves together, and there is one factor for all.",
            ),
            (
                _momentum(lambda g: jax.tree.map(lambda leaf: np.clip(leaf, -MAXIMUM, MAXIMUM), g)),
                "Each number is cut off by itself, which turns the gradient: scale all of it by one factor.",
            ),
            (
                _momentum(lambda g: _scaled(g, MAXIMUM / max(_norm(g), 1e-12))),
                "A short gradient is made longer. It should stay as it is: `jnp.minimum(1, …)`.",
            ),
            (
                _momentum(lambda g: _scaled(g, _factor(_norm(g) ** 2))),
                "The norm is the *root* of the sum of squares.",
            ),
            (
                _momentum(lambda g: _scaled(g, _factor(sum(_norm(leaf) for leaf in jax.tree.leaves(g))))),
                "The norms of the leaves are added up. Add their squares, and take one root.",
            ),
            (
                _momentum(lambda g: g, lambda u: _scaled(u, _factor(_norm(u)))),
                "The updates are clipped, after the inner optimizer. Clip the gradients on their way in.",
            ),
            (_momentum(lambda g: g), "Nothing is clipped."),
            (
                _momentum(lambda g: _scaled(g, min(1.0, 1.0 / max(_norm(g), 1e-12)))),
                "The norm is always clipped to 1: read the maximum from the field.",
            ),
        ],
        GRADIENTS,
    )
    checks.obeys_optimizer_laws(
        lambda rate: Clipped(optim.SGD(rate, momentum=0.5), 0.1),
        but={"gradients through a step", "ensemble by vmap", "equals Optax", "state is sharded", "numbers are cast", "donation", "one trace"},
    )  # fmt: skip


exercise = Exercise(
    title="Clip by the global norm",
    stars=2,
    minutes=12,
    why="One factor for the whole gradient keeps its direction, so a bad batch shortens a step and does not turn it.",
    hints=(
        "`init` is the inner optimizer's: a wrapper without a state of its own hands it through.",
        "Map `jnp.sum` over `squared(gradients)`, add up the leaves, take the root: that is the norm, in float32.",
        "`factor = jnp.minimum(1.0, self.maximum / jnp.maximum(norm, 1e-12))`, then return what `self.optimizer.step` returns.",
    ),
    solution=Clipped,
    check=check,
)
