"""Muon for matrices, signs for the rest."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.optimizers._chapter import Tunable, orthogonal, zeros
from mlax_tutorial.exercises.optimizers._walk import arrays, compare, keeps_defaults, walk


class Muon(Tunable):
    learning_rate: float
    other_rate: float = 1e-3
    decay: float = 0.95

    def init(self, weights):
        return zeros(weights)

    def step(self, gradients, velocity, weights):
        velocity = jax.tree.map(lambda v, g: self.decay * v + g, velocity, gradients)

        def move(v):
            if v.ndim != 2:
                return -self.other_rate * jnp.sign(v)
            rows, columns = v.shape
            return -self.learning_rate * max(1, columns / rows) ** 0.5 * orthogonal(v)

        return jax.tree.map(move, velocity), velocity


RATE, OTHER, DECAY = 0.1, 0.02, 0.6
RATES = RATE, 2.0, RATE, RATE  # another one at the second step, which must not act on what came before
DRAW = np.random.default_rng(0).normal
WEIGHTS = {
    "wide": np.ones((2, 5)),
    "tall": np.ones((3, 1)),
    "filter": np.ones((2, 2, 2)),
    "bias": np.ones(2),
    "gain": np.array(1.0),
    "large": np.ones(2),
    "still": np.ones((2, 3)),
    "still bias": np.ones(3),
}
GRADIENTS = [{name: DRAW(size=leaf.shape) for name, leaf in WEIGHTS.items()} for _ in RATES]
for each, large in zip(GRADIENTS, (1000.0, -100.0, 10.0, -100.0), strict=True):
    each |= {"large": np.array([large, -large]), "still": np.zeros((2, 3)), "still bias": np.zeros(3)}


def _orthogonal(v, rounds=5):
    """As the chapter's `orthogonal`, in NumPy, which compiles nothing."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = v.T if v.shape[0] > v.shape[1] else v
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(rounds):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if v.shape[0] > v.shape[1] else x


def _formula(
    *,
    decay=DECAY,
    scaled=True,
    upside_down=False,
    signs=True,
    others=OTHER,
    sign=(-1.0, -1.0),
    exact=False,
    power=0.5,
    floor=False,
    smallest=1,
    rates=RATES,
    inside=False,
):
    memory, found = {}, []
    for rate, each in zip(rates, GRADIENTS, strict=True):
        updates = {}
        for name, g in each.items():
            v = memory[name] = decay * memory.get(name, 0 * g) + (rate * g if inside else g)
            if v.ndim == 2 and min(v.shape) >= smallest:
                ratio = v.shape[0] / v.shape[1] if upside_down else v.shape[1] / v.shape[0]
                ratio = ratio // 1 if floor else ratio
                u, _, w = np.linalg.svd(v, full_matrices=False)
                flat = u @ w if exact else _orthogonal(v)
                updates[name] = sign[0] * rate * flat * (max(1, ratio) ** power if scaled else 1)
            else:
                updates[name] = sign[1] * (others or rate) * (np.sign(v) if signs else v)
        found.append(updates)
    return found


def check(Muon):
    found = walk([checks.make(Muon, rate, OTHER, DECAY) for rate in RATES], WEIGHTS, GRADIENTS)
    if any(np.isnan(leaf).any() for leaf in jax.tree.leaves(found.updates)):
        raise Failed(
            "A weight whose gradients are all zero gets NaN: `jnp.sign` of 0 is 0.",
            input="gradients of zeros",
        )
    compare(
        found,
        _formula(),
        [
            (_formula(scaled=False), "The factor for wide matrices is missing: the root of max(1, columns / rows)."),
            (_formula(upside_down=True), "The factor is upside down: max(1, columns / rows), for a kernel of inputs × outputs. (PyTorch's are outputs × inputs.)"),
            (_formula(decay=0.0), "There is no momentum: the gradient itself is made orthogonal."),
            (_formula(inside=True), "The rate is a part of your velocity, so a new rate acts on new gradients only. Keep the velocity free of it."),
            (_formula(rates=RATES[:1] * len(RATES)), "A new learning rate, at the second step, makes no difference: read it from the field."),
            (_formula(signs=False), "What is no matrix moves by the velocity; it should move by its sign."),
            (_formula(others=None), "What is no matrix moves by the learning rate of the matrices: it has a rate of its own."),
            (_formula(sign=(1.0, 1.0)), "The updates point up: they are added to the weights, so they need a minus."),
            (_formula(sign=(1.0, -1.0)), "The updates of matrices point up: they are added to the weights, so they lack a minus."),
            (_formula(sign=(-1.0, 1.0)), "The updates of what is no matrix point up: they are added to the weights, so they lack a minus."),
            (_formula(power=1), "The factor for wide matrices lacks its root: it is the *root* of max(1, columns / rows)."),
            (_formula(floor=True), "The ratio of columns to rows is rounded down: divide with `/`, not with `//`."),
            (
                _formula(smallest=2),
                "A matrix with one row or one column is treated as a vector. Two axes make a matrix, whatever their lengths.",
            ),
            (
                _formula(exact=True),
                "All singular values are exactly 1. That is what `orthogonal` comes near to; use it, so that a step needs no decomposition.",
            ),
        ],
        GRADIENTS,
    )  # fmt: skip
    _velocity(found.state)
    keeps_defaults(Muon, exercise.answer)
    made, ones = Muon(RATE, OTHER, DECAY), arrays(jax.tree.map(np.ones_like, WEIGHTS))
    program = str(jax.make_jaxpr(lambda g, w: made.step(g, made.init(w), w)[0])(ones, ones))
    if "svd" in program or "eigh" in program:
        raise Failed(
            "There is a decomposition in your step: `orthogonal` does with products, which accelerators like."
        )
    checks.obeys_optimizer_laws(
        Muon,
        double=False,
        but={"no weights", "gradients through a step", "ensemble by vmap", "equals Optax", "sums keep growing", "state is sharded", "numbers are cast", "donation", "pure and under jit", "rounded once", "one trace"},
    )  # fmt: skip


def _velocity(state):
    """Neither signs nor orthogonal matrices tell how long the velocity is, but the state does."""
    right = 0.0
    for each in GRADIENTS:
        right = DECAY * right + each["wide"]
    short = (1 - DECAY) * right
    for leaf in jax.tree.leaves(state):
        if np.shape(leaf) == short.shape and np.allclose(leaf, short, rtol=1e-3, atol=1e-5):
            raise Failed(
                "The gradient enters the velocity with the share 1 - decay. In this convention it enters whole.",
                expected=jnp.asarray(right, jnp.float32),
                got=leaf,
            )


exercise = Exercise(
    title="Muon for matrices",
    stars=3,
    minutes=20,
    why="For a matrix, the axes of its inputs and outputs are as arbitrary as the compass in a ravine: Muon's step turns with them.",
    hints=(
        "Begin with `Momentum`: the velocity is the same, only what is made of it differs from leaf to leaf.",
        "Shapes are known while tracing: `if v.ndim == 2` and `rows, columns = v.shape` are ordinary Python.",
        "For a matrix `-self.learning_rate * max(1, columns / rows) ** 0.5 * orthogonal(v)`, else `-self.other_rate * jnp.sign(v)`.",
    ),
    solution=Muon,
    check=check,
)
