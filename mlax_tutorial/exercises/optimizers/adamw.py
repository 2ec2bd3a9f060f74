"""AdamW, which decays kernels only."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.exercises.optimizers._chapter import Tunable, average, squared, zeros
from mlax_tutorial.exercises.optimizers._walk import by_formula, compare, walk


class AdamW(Tunable):
    learning_rate: float
    weight_decay: float = 0.01
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8

    def init(self, weights):
        return jnp.float32(0), zeros(weights), zeros(weights)

    def step(self, gradients, state, weights):
        t, mean, square = state[0] + 1, *state[1:]
        mean = average(self.first_decay, mean, gradients)
        square = average(self.second_decay, square, squared(gradients))

        def move(m, s, w):
            m = m / (1 - self.first_decay**t)
            s = s / (1 - self.second_decay**t)
            direction = m / (jnp.sqrt(s) + self.epsilon)
            if w.ndim >= 2:  # a shape, so Python may look at it
                direction = direction + self.weight_decay * w
            return -self.learning_rate * direction

        return jax.tree.map(move, mean, square, weights), (t, mean, square)


RATE, DECAY, FIRST, SECOND = 0.1, 0.2, 0.8, 0.95


def _formula(*, where=lambda w: w.ndim >= 2, kind="decoupled", corrected=True, frozen_count=False, sign=1.0):
    def formula(g, memory, w, t):
        pull = DECAY * w * where(w)
        if kind == "penalty":
            g = g + pull
        m = memory["m"] = FIRST * memory.get("m", 0 * g) + (1 - FIRST) * g
        s = memory["s"] = SECOND * memory.get("s", 0 * g) + (1 - SECOND) * g**2
        t = 1 if frozen_count else t
        if corrected:
            m, s = m / (1 - FIRST**t), s / (1 - SECOND**t)
        direction = m / (np.sqrt(s) + 1e-8)
        if kind == "decoupled":
            return -RATE * (direction + sign * pull)
        return -RATE * direction - (pull if kind == "without rate" else 0)

    return by_formula(formula)


def check(AdamW):
    found = walk(checks.make(AdamW, RATE, DECAY, FIRST, SECOND))
    compare(
        found,
        _formula(),
        [
            (
                _formula(where=lambda w: True),
                "The bias decays, too. Only arrays with two axes or more should: `w.ndim` is known while tracing.",
            ),
            (_formula(where=lambda w: w.ndim < 2), "The bias decays, and the kernel does not: it is the other way round."),
            (_formula(where=lambda w: False), "No weight decays: this is Adam."),
            (
                _formula(kind="penalty"),
                "The decay goes through the averages and the division, as a penalty in the loss does. Add it to the direction, after the "
                "division.",
            ),
            (
                _formula(kind="penalty", where=lambda w: True),
                "The decay is added to the gradients, of all weights: it should be added to the direction, after the division, and leave "
                "out the bias.",
            ),
            (
                _formula(kind="without rate"),
                "The decay is not multiplied by the learning rate: the update contains -rate * weight_decay * w.",
            ),
            (_formula(sign=-1.0), "The decay pushes the weights away from zero: look at its sign."),
            (
                _formula(corrected=False),
                "The averages are not divided by 1 - decay**t, so the first steps have the wrong length.",
            ),
            (_formula(frozen_count=True), "The count stays at 1: return the new one with the state."),
        ],
    )  # fmt: skip
    checks.obeys_optimizer_laws(
        AdamW,
        but={"state keeps its types", "dtypes", "rounded once", "gradients through a step", "ensemble by vmap", "equals Optax", "state is sharded", "numbers are cast"},
    )  # fmt: skip


exercise = Exercise(
    title="AdamW, for kernels only",
    stars=2,
    minutes=12,
    why="Decay that does not pass through the division treats all weights alike, whatever their gradients: what users expect of the word.",
    hints=(
        "Copy `Adam` and give `move` a third argument, the weight: `jax.tree.map(move, mean, square, weights)`.",
        "The number of axes is a shape, so a Python `if w.ndim >= 2` is fine, also under `jax.jit`.",
        "The update is `-rate * (m / (root + epsilon) + weight_decay * w)`, and without the last term for biases.",
    ),
    solution=AdamW,
    check=check,
)
