"""Nesterov's momentum as an optimizer."""

import jax

from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.exercises.optimizers._chapter import Tunable, zeros
from mlax_tutorial.exercises.optimizers._walk import by_formula, compare, walk


class Nesterov(Tunable):
    learning_rate: float
    decay: float = 0.9

    def init(self, weights):
        return zeros(weights)

    def step(self, gradients, velocity, weights):
        def push(v, g):
            return self.decay * v + g

        velocity = jax.tree.map(push, velocity, gradients)
        ahead = jax.tree.map(push, velocity, gradients)
        updates = jax.tree.map(lambda d: -self.learning_rate * d, ahead)
        return updates, velocity


def _formula(rate, decay, *, fresh=1.0, ahead=True, sign=-1.0, remembers="velocity"):
    def formula(g, memory, w, t):
        v = decay * memory.get("v", 0 * g) + fresh * g
        look = decay * v + fresh * g
        memory["v"] = {"velocity": v, "look": look, "nothing": 0 * g}[remembers]
        return sign * rate * (look if ahead else v)

    return by_formula(formula)


def check(Nesterov):
    rate, decay = 0.1, 0.8
    found = walk(checks.make(Nesterov, rate, decay))
    compare(
        found,
        _formula(rate, decay),
        [
            (
                _formula(rate, decay, ahead=False),
                "This is plain momentum. `decay * v + g` with the *old* velocity is the new velocity: look ahead from the new one, once more.",
            ),
            (
                _formula(rate, decay, sign=1.0),
                "The updates point up the gradient: they are added to the weights, so they need a minus.",
            ),
            (
                _formula(rate, decay, fresh=1 - decay),
                "The gradient enters with the share 1 - decay. In this convention it enters whole.",
            ),
            (
                _formula(rate, decay, remembers="look"),
                "The state that you return is the direction that looked ahead. What goes on is the velocity.",
            ),
            (
                _formula(rate, decay, remembers="nothing"),
                "The first step is right, and then the velocity is lost: return the new one as the state.",
            ),
            (_formula(rate, 0.9), "The decay is always 0.9: read it from the field, `self.decay`."),
            (_formula(rate, 0.0), "There is no velocity in your updates: this is plain gradient descent."),
        ],
    )
    checks.obeys_optimizer_laws(
        Nesterov,
        but={"state keeps its types", "dtypes", "rounded once", "gradients through a step", "ensemble by vmap", "equals Optax", "state is sharded"},
    )  # fmt: skip


exercise = Exercise(
    title="Nesterov's momentum",
    stars=1,
    minutes=8,
    why="The lookahead costs one more multiplication, no memory, and no second gradient: the same velocity serves twice.",
    hints=(
        "`init` is that of `Momentum`, and so is the first half of `step`.",
        "The new velocity and the direction have one formula: `push = lambda v, g: self.decay * v + g`, mapped over the old velocity, and "
        "then over the new one.",
        "Return `-self.learning_rate` times the second result as updates, and the first result as the state.",
    ),
    solution=Nesterov,
    check=check,
)
