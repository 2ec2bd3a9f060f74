"""Nesterov's momentum as an optimizer."""

import jax

from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.exercises.optimizers._chapter import Tunable, zeros
from mlax_tutorial.exercises.optimizers._walk import MANY, STEPS, by_formula, compare, keeps_defaults, walk


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


GRADIENTS = STEPS * MANY
GRADIENTS[12] = jax.tree.map(lambda g: 100 * g, GRADIENTS[12])  # which nothing may cut off
RATES = (0.1, 0.1, 0.3) * MANY  # another one at the third step, with the state of the second
DECAYS = (0.8, 0.8, 0.8, 0.5, 0.8, 0.6, 0.8) * len(STEPS)  # and another one at the fourth


def _formula(
    decays=DECAYS, *, rates=RATES, shared=False, ahead=True, sign=-1.0, remembers="velocity", inside=False
):
    def formula(g, memory, w, t):
        rate, decay = rates[t - 1], decays[t - 1]
        fresh = 1 - decay if shared else 1.0
        if inside:
            v = memory["v"] = decay * memory.get("v", 0 * g) - rate * g
            return decay * v - rate * g
        v = decay * memory.get("v", 0 * g) + fresh * g
        look = decay * v + fresh * g
        memory["v"] = {"velocity": v, "look": look, "nothing": 0 * g}[remembers]
        return sign * rate * (look if ahead else v)

    return by_formula(formula, gradients=GRADIENTS)


def check(Nesterov):
    made = [checks.make(Nesterov, rate, decay) for rate, decay in zip(RATES, DECAYS, strict=True)]
    found = walk(made, gradients=GRADIENTS)
    compare(
        found,
        _formula(),
        [
            (
                _formula(inside=True),
                "The rate is a part of your velocity, so a new rate acts on new gradients only. Keep the velocity free of it, and multiply "
                "at the end.",
            ),
            (
                _formula(rates=RATES[:1] * len(RATES)),
                "A new learning rate, at the third step, makes no difference: read it from the field, `self.learning_rate`.",
            ),
            (
                _formula(ahead=False),
                "This is plain momentum. `decay * v + g` with the *old* velocity is the new velocity: look ahead from the new one, once more.",
            ),
            (
                _formula(sign=1.0),
                "The updates point up the gradient: they are added to the weights, so they need a minus.",
            ),
            (
                _formula(shared=True),
                "The gradient enters with the share 1 - decay. In this convention it enters whole.",
            ),
            (
                _formula(remembers="look"),
                "The state that you return is the direction that looked ahead. What goes on is the velocity.",
            ),
            (
                _formula(remembers="nothing"),
                "The first step is right, and then the velocity is lost: return the new one as the state.",
            ),
            (_formula([0.9] * len(DECAYS)), "The decay is always 0.9: read it from the field, `self.decay`."),
            (
                _formula([0.0] * len(DECAYS)),
                "There is no velocity in your updates: this is plain gradient descent.",
            ),
            (
                _formula(DECAYS[:1] * len(DECAYS)),
                "A new decay, at the fourth step, makes no difference: read it from the field, `self.decay`.",
            ),
        ],
        GRADIENTS,
    )
    keeps_defaults(Nesterov, exercise.answer)
    checks.obeys_optimizer_laws(
        Nesterov,
        but={"no weights", "one trace", "state keeps its types", "dtypes", "rounded once", "gradients through a step", "ensemble by vmap", "equals Optax", "sums keep growing", "state is sharded"},
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
