"""AdamW, which decays kernels only."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.optimizers._chapter import Tunable, average, squared, zeros
from mlax_tutorial.exercises.optimizers._walk import (
    MANY,
    STEPS,
    Gain,
    by_formula,
    compare,
    keeps_defaults,
    walk,
)


class AdamW(Tunable):
    learning_rate: float
    weight_decay: float = 0.01
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8

    def init(self, weights):
        return jnp.int32(0), zeros(weights), zeros(weights)

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


RATE, DECAY, FIRST, SECOND, EPSILON = 0.1, 0.2, 0.8, 0.95, 0.5
# No name tells the number of axes, one gradient of a decaying weight is zero, and epsilon is of the size of the others.
WEIGHTS = {
    "table": np.array([[1.0, -2.0], [0.5, 3.0]]),
    "filters": np.array([[[0.7, -1.3]]]),
    "scale": np.array([0.5, -1.0]),
    "others": [Gain(np.array(0.7)), (np.full((1, 2, 1, 2), 0.4), np.array([2.0, 0.1]))],
}
GRADIENTS = [
    {
        "table": each["layer"]["kernel"] * np.array([[1, 1], [1, 0]]),
        "filters": each["layer"]["kernel"][None, :1],
        "scale": each["layer"]["bias"],
        "others": [
            Gain(each["others"][0]),
            (1e3 * each["layer"]["kernel"][None, :, None], 0.01 * each["layer"]["bias"]),
        ],
    }
    for each in STEPS * MANY
]


def _formula(
    *,
    where=lambda w: w.ndim >= 2,
    kind="decoupled",
    corrected=(True, True),
    count=lambda t: t,
    sign=1.0,
    epsilon="added",
):
    def formula(g, memory, w, t):
        pull = DECAY * w * where(w)
        if kind == "penalty":
            g = g + pull
        m = memory["m"] = FIRST * memory.get("m", 0 * g) + (1 - FIRST) * g
        s = memory["s"] = SECOND * memory.get("s", 0 * g) + (1 - SECOND) * g**2
        t = count(t)
        m = m / (1 - FIRST**t) if corrected[0] else m
        s = s / (1 - SECOND**t) if corrected[1] else s
        divisor = {
            "added": np.sqrt(s) + EPSILON,
            "inside": np.sqrt(s + EPSILON),
            "none": np.sqrt(s),
            "fixed": np.sqrt(s) + 1e-8,
            "hat": np.sqrt(s) + EPSILON / np.sqrt(1 - SECOND**t),
        }[epsilon]
        with np.errstate(invalid="ignore"):
            direction = m / divisor
        if kind == "where it moves":
            return -RATE * (direction + pull * (m != 0))
        if kind == "decoupled":
            return -RATE * (direction + sign * pull)
        return -RATE * direction - (pull if kind == "without rate" else 0)

    return by_formula(formula, WEIGHTS, GRADIENTS)


def check(AdamW):
    made = checks.make(
        AdamW,
        learning_rate=RATE,
        weight_decay=DECAY,
        first_decay=FIRST,
        second_decay=SECOND,
        epsilon=EPSILON,
    )
    found = walk(made, WEIGHTS, GRADIENTS)
    if any(np.isnan(leaf).any() for leaf in jax.tree.leaves(found.updates)):
        raise Failed(
            "A weight whose gradient is zero gets NaN, which is 0 / 0: the epsilon is missing in the divisor.",
            input=f"gradients of step 1: {GRADIENTS[0]}",
        )
    compare(
        found,
        _formula(),
        [
            (
                _formula(where=lambda w: True),
                "The scale, an array with one axis, decays, too. Only arrays with two axes or more should: `w.ndim` is known while tracing.",
            ),
            (_formula(where=lambda w: w.ndim < 2), "What has one axis decays, and what has more does not: it is the other way round."),
            (
                _formula(where=lambda w: w.ndim == 2),
                "Only arrays with exactly two axes decay. Filters of convolutions have more: two axes *or more* should.",
            ),
            (
                _formula(where=lambda w: w.ndim != 1),
                "A weight without an axis, a single number, decays, too. Only arrays with two axes or more should.",
            ),
            (_formula(where=lambda w: False), "No weight decays: this is Adam."),
            (
                _formula(kind="where it moves"),
                "A weight whose gradients are all zero should decay, too: add the decay whatever the gradient is.",
            ),
            (_formula(epsilon="inside"), "The epsilon stands under the root: add it to the root, as `Adam` above does."),
            (
                _formula(epsilon="fixed"),
                "The epsilon is always 1e-8: read it from the field, `self.epsilon`, or hand it on to `Adam`.",
            ),
            (
                _formula(epsilon="hat"),
                "The epsilon is added to the root of the average as it is stored. Divide the average by 1 - decay**t first, as `Adam` does.",
            ),
            (
                _formula(kind="penalty"),
                "The decay goes through the averages and the division, as a penalty in the loss does. Add it to the direction, after the "
                "division.",
            ),
            (
                _formula(kind="penalty", where=lambda w: True),
                "The decay is added to the gradients, of all weights: it should be added to the direction, after the division, and leave "
                "out what has one axis.",
            ),
            (
                _formula(kind="without rate"),
                "The decay is not multiplied by the learning rate: the update contains -rate * weight_decay * w.",
            ),
            (_formula(sign=-1.0), "The decay pushes the weights away from zero: look at its sign."),
            (
                _formula(corrected=(False, False)),
                "The averages are not divided by 1 - decay**t, so the first steps have the wrong length.",
            ),
            (
                _formula(corrected=(False, True)),
                "The average of the gradients is not divided by 1 - first_decay**t; that of the squares is divided as it should.",
            ),
            (
                _formula(corrected=(True, False)),
                "The average of the squares is not divided by 1 - second_decay**t; that of the gradients is divided as it should.",
            ),
            (_formula(count=lambda t: 1), "The count stays at 1: return the new one with the state."),
            (_formula(count=lambda t: t + 1), "The count is one ahead: at the first step t is 1."),
        ],
        GRADIENTS,
    )  # fmt: skip
    keeps_defaults(AdamW, exercise.answer)
    checks.obeys_optimizer_laws(
        AdamW,
        but={"no weights", "state mirrors the weights", "one trace", "state keeps its types", "dtypes", "rounded once", "gradients through a step", "ensemble by vmap", "equals Optax", "sums keep growing", "state is sharded", "numbers are cast"},
    )  # fmt: skip


exercise = Exercise(
    title="AdamW, for kernels only",
    stars=2,
    minutes=12,
    why="Decay that does not pass through the division treats all weights alike, whatever their gradients: what users expect of the word.",
    hints=(
        "Copy `Adam` and give `move` a third argument, the weight: `jax.tree.map(move, mean, square, weights)`.",
        "The number of axes is a shape, so a Python `if w.ndim >= 2` is fine, also under `jax.jit`.",
        "The update is `-rate * (m / (root + epsilon) + weight_decay * w)`, and without the last term for what has one axis.",
    ),
    solution=AdamW,
    check=check,
)
