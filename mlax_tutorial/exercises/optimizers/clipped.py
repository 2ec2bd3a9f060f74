"""Clipping by the global norm, as a wrapper."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import optim
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.optimizers._chapter import Tunable, squared
from mlax_tutorial.exercises.optimizers._walk import (
    STEPS,
    WEIGHTS,
    Inner,
    alike,
    arrays,
    compare,
    keeps_defaults,
    walk,
)
from mlax_tutorial.exercises.precision._dtypes import program, squares_in_half


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


RATE, DECAY, PULL, MAXIMUM = 0.5, 0.5, 0.3, 1.7
# The first and the third gradient are longer than the maximum, the second is shorter, and the last is zero.
GRADIENTS = [
    STEPS[0],
    jax.tree.map(lambda g: 0.1 * g, STEPS[1]),
    STEPS[2],
    jax.tree.map(np.zeros_like, STEPS[0]),
]


def _momentum(change, given=lambda w, g, changed: w, after=lambda u: u):
    """Momentum with decay, with each tree of gradients changed before it; ``given`` is what it takes for the weights."""
    weights, velocity, found = WEIGHTS, jax.tree.map(np.zeros_like, WEIGHTS), []
    for g in GRADIENTS:
        changed = change(g)
        velocity = jax.tree.map(lambda v, c: DECAY * v + c, velocity, changed)
        updates = after(
            jax.tree.map(lambda v, w: -RATE * (v + PULL * w), velocity, given(weights, g, changed))
        )
        weights = jax.tree.map(np.add, weights, updates)
        found.append(updates)
    return found


def _scaled(tree, factor):
    return jax.tree.map(lambda leaf: factor * leaf, tree)


def _norm(tree):
    return np.sqrt(sum(np.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def _factor(norm):
    return min(1.0, MAXIMUM / max(norm, 1e-12))


def check(Clipped):
    inner = Inner(RATE, DECAY, PULL)
    found = walk(checks.make(Clipped, inner, MAXIMUM), WEIGHTS, GRADIENTS)
    updates, clipped = found.updates, _momentum(lambda g: _scaled(g, _factor(_norm(g))))
    if any(np.isnan(leaf).any() for leaf in jax.tree.leaves(updates)) and not alike(updates[:3], clipped[:3]):
        raise Failed(
            "Short gradients are changed and long ones are not: look at the condition. The factor is `maximum / norm` where the norm is "
            "*larger* than the maximum."
            if alike(updates[1], _momentum(lambda g: _scaled(g, max(1.0, MAXIMUM / max(_norm(g), 1e-12))))[1])
            or alike(updates[0], _momentum(lambda g: g)[0])
            else "The updates of step 1 are not as the formula says, and a gradient of zero makes NaN.",
            input="gradients longer than the maximum, shorter, and zero",
            expected=arrays(clipped[0]),
            got=arrays(updates[0]),
        )
    if any(np.isnan(leaf).any() for leaf in jax.tree.leaves(updates[3])):
        raise Failed(
            "A gradient of zero makes NaN: the norm is 0, and so is the divisor. `jnp.maximum(norm, 1e-12)` keeps it from zero.",
            input="gradients of zeros",
        )
    compare(
        found,
        clipped,
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
                _momentum(lambda g: _scaled(g, max(1.0, MAXIMUM / max(_norm(g), 1e-12)))),
                "Short gradients are changed and long ones are not: look at the condition. The factor is `maximum / norm` where the norm is "
                "*larger* than the maximum.",
            ),
            (
                _momentum(lambda g: _scaled(g, float(jnp.bfloat16(_factor(_norm(g)))))),
                "The factor has lost digits: it is rounded to half precision.",
            ),
            *(
                (
                    _momentum(lambda g: _scaled(g, _factor(_norm(g))), given),
                    "The inner optimizer is given gradients in the place of the weights: hand `weights` on.",
                )
                for given in (lambda w, g, changed: g, lambda w, g, changed: changed)
            ),
            (
                _momentum(lambda g: g, after=lambda u: _scaled(u, _factor(_norm(u)))),
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
    _init(Clipped)
    _tiny(Clipped)
    _half(Clipped)
    keeps_defaults(Clipped, exercise.answer)
    checks.obeys_optimizer_laws(
        lambda rate: Clipped(optim.SGD(rate, momentum=0.5), 0.1),
        double=False,
        but={"rounded once", "no weights", "gradients through a step", "ensemble by vmap", "equals Optax", "sums keep growing", "state is sharded", "numbers are cast", "donation", "one trace"},
    )  # fmt: skip


class Thirds(Tunable):
    """An optimizer whose state does not begin at zero."""

    learning_rate: float

    def init(self, weights):
        return jax.tree.map(lambda w: w / 3, weights)


def _init(Clipped):
    """The state holds what the inner optimizer made."""
    weights = arrays(WEIGHTS)
    made = jax.tree.leaves(Clipped(Thirds(1.0), 1.0).init(weights))
    for third in jax.tree.leaves(Thirds(1.0).init(weights)):
        if not any(np.shape(leaf) == third.shape and np.allclose(leaf, third, rtol=1e-6) for leaf in made):
            raise Failed(
                "The state of your `init` does not hold what the inner optimizer's `init` returned: hand it through as it is.",
                expected=third,
                got=made,
            )


def _tiny(Clipped):
    """A gradient that is much shorter than the maximum, and a maximum that is small itself."""
    for gradient, maximum, expected, said in (
        (1e-5, 2.0, 1e-5, "A gradient shorter than the maximum should stay as it is, however short."),
        (
            1e-3,
            1e-4,
            5e-5,
            "A maximum may be small, and a gradient longer than it must become as short, however short it is itself.",
        ),
    ):
        gradients = [{"kernel": np.full((2, 2), gradient)}]
        updates = walk(Clipped(optim.SGD(1.0), maximum), {"kernel": np.ones((2, 2))}, gradients).updates
        got = np.asarray(updates[0]["kernel"], float)
        if not np.allclose(got, -expected, rtol=1e-3):
            raise Failed(
                said,
                input=f"four gradients of {gradient:g}, clipped to a length of {maximum:g}, at a rate of 1",
                expected=jnp.full((2, 2), -expected),
                got=jnp.asarray(got, jnp.float32),
            )


def _half(Clipped):
    """Squares of numbers of float16 soon leave its range."""
    weights = {"kernel": jnp.ones((2, 2), jnp.float16)}
    gradients = {"kernel": jnp.full((2, 2), 300.0, jnp.float16)}
    updates = walk(Clipped(optim.SGD(1.0), 2.0), weights, [gradients], dtype=None).updates[0]["kernel"]
    if not np.allclose(np.asarray(updates, float), -1.0, rtol=1e-2):
        raise Failed(
            "With gradients of float16 the norm is wrong: the square of 300 is larger than any number of float16. Sum the squares in "
            "float32, with `squared`.",
            input="four gradients of 300, clipped to a length of 2, at a rate of 1",
            expected=jnp.full((2, 2), -1.0),
            got=jnp.asarray(updates, jnp.float32),
        )

    def step(gradients, weights):
        made = Clipped(optim.SGD(1.0), 2.0)
        return made.step(gradients, made.init(weights), weights)[0]

    for dtype in (jnp.bfloat16, jnp.float16):
        half = {"kernel": jax.ShapeDtypeStruct((2, 2), dtype)}
        if squares_in_half(program(step, half, half)):
            raise Failed(
                f"Gradients of {dtype.__name__} are squared in {dtype.__name__}, where each square is rounded. Sum the squares in float32, "
                "with `squared`."
            )


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
