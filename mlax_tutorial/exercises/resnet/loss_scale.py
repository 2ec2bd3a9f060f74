"""The loss scale that some cotangents bear."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks

LIMIT = 65504 / 8


def solution(cotangents):
    largest = max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(cotangents))
    if largest == 0:
        return 1.0
    return 2.0 ** math.floor(math.log2(65504 / 8 / largest))


# The largest number of a tree in absolute value, and what else is in it.
TREES = {
    "one array": lambda: jnp.array([0.001, 0.25, -0.125]),
    "the largest is negative": lambda: {"a": jnp.array([0.01, -3.0]), "b": (jnp.array(0.5),)},
    "in the second leaf": lambda: [jnp.full((2, 2), 1e-6), jnp.array([[2e-3, 1e-4]])],
    "a little below a power": lambda: jnp.array([65503.5 / 8 / 1024]),
    "a little above a power": lambda: jnp.array([65504.5 / 8 / 1024]),
    "the limit itself": lambda: jnp.array([8188.0, -5.0]),
    "larger than the limit": lambda: {"a": jnp.array([30_000.0, 1.0])},
    "half precision": lambda: (jnp.array([0.5, -0.75], jnp.float16), jnp.array([0.25], jnp.bfloat16)),
    "a power of two in bfloat16": lambda: [
        jnp.array([1.0, -0.5], jnp.bfloat16),
        jnp.array(0.25, jnp.bfloat16),
    ],
    "small in float16": lambda: jnp.array([1e-3, -2e-2], jnp.float16),
    "largest in bfloat16": lambda: (jnp.array([0.5], jnp.float16), jnp.array([2.5], jnp.bfloat16)),
    "a single number": lambda: {"a": jnp.array([0.25, 0.0]), "b": jnp.array(-7.0)},
    "some zeros": lambda: [jnp.zeros(2), jnp.array([0.0, 3e-3]), jnp.zeros(())],
    "in the last leaf": lambda: {"a": jnp.array([1e-4]), "b": jnp.array([1e-3]), "c": jnp.array([0.7, 0.1])},
    "tiny": lambda: jnp.array([3e-10, -1e-12]),
    "tinier": lambda: {"a": jnp.array([2e-20])},
}


def check(loss_scale):
    trees = {name: make() for name, make in TREES.items()}
    found = {name: _number(loss_scale, tree) for name, tree in trees.items()}
    for name, tree in trees.items():
        _right(found[name], tree, name, lambda: _diagnosis(found, trees))
    zeros = {"a": jnp.zeros(3)}
    got = _number(loss_scale, zeros)
    if got != 1:
        raise Failed(
            "For cotangents that are all zero the scale should be 1.", input={"cotangents": zeros}, got=got
        )


def _number(loss_scale, tree):
    got = checks.returned(loss_scale(tree), input={"cotangents": tree})
    if isinstance(got, (str, bool)):
        raise Failed(
            f"The result should be a number, and is a {type(got).__name__}.",
            input={"cotangents": tree},
            got=got,
        )
    if jnp.shape(got) != ():
        raise Failed("One number is asked for, for the whole tree.", input={"cotangents": tree}, got=got)
    return float(got)


def _in_its_dtype(tree):
    """What comes out where 8188 is divided by the largest number in its own dtype; bfloat16 rounds it to 8192."""
    largest = jnp.max(jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(tree)]))
    quotient = min(float(LIMIT / jnp.abs(largest)), 1e30)
    return 2.0 ** math.floor(math.log2(quotient))


def _right(got, tree, name, diagnosis):
    wanted = solution(tree)
    if got == wanted:
        return
    largest = _largest(_leaves(tree))
    shown = {"input": {"cotangents": tree}, "expected": wanted, "got": got}
    if not (math.isfinite(got) and got > 0):
        raise Failed("The scale should be a finite number above 0.", **shown)
    if math.frexp(got)[0] != 0.5:
        raise Failed("The scale is no power of 2: other numbers round what they multiply.", **shown)
    if said := diagnosis():
        raise Failed(said, **shown)
    if any(
        leaf.dtype in (jnp.float16, jnp.bfloat16) for leaf in jax.tree.leaves(tree)
    ) and got == _in_its_dtype(tree):
        raise Failed(
            f"The division is done in the dtype of the leaf ({name}), which has no place for 8,188 divided by it: make a Python number of the largest "
            "first, `float(…)`, or a float32.",
            **shown,
        )
    side = "more" if got * largest > LIMIT else "less than half of that, so twice the scale would do"
    raise Failed(
        f"With this scale ({name}) the largest number becomes {got * largest:.6g}. An eighth of 65,504 is {LIMIT:g}: it is {side}.",
        **shown,
    )


def _leaves(tree):
    return [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(tree)]


def _scale(size, limit=LIMIT, round=math.floor):
    return 2.0 ** round(math.log2(limit / size)) if size > 0 else math.nan


def _by(size, **how):
    """The scale for another number of the leaves than the largest."""
    return lambda leaves: _scale(size(leaves), **how)


def _largest(leaves):
    return max(np.max(np.abs(leaf)) for leaf in leaves)


MISTAKES = (
    (_by(_largest, limit=65504), "The room is missing: the largest number should reach an eighth of 65,504, no more."),
    (_by(lambda leaves: max(np.max(leaf) for leaf in leaves)), "The largest number is negative here, and counts by its absolute value."),
    (_by(lambda leaves: np.max(np.abs(leaves[0]))), "Only the first leaf counts: take the largest number of the whole tree."),
    (_by(lambda leaves: min(np.min(np.abs(leaf)) for leaf in leaves)), "That is the scale for the smallest number; the largest one would overflow."),
    (_by(_largest, round=math.ceil), "The exponent is rounded up: so the largest number exceeds an eighth of 65,504. Round down."),
    (_by(_largest, round=round), "The exponent is rounded to the nearest: so the largest number may exceed an eighth of 65,504. Round down."),
    (_by(lambda leaves: np.mean(np.abs(np.concatenate([leaf.ravel() for leaf in leaves])))), "That is the scale for the mean size of all numbers; the largest one would overflow."),
    (_by(lambda leaves: max(np.mean(np.abs(leaf)) for leaf in leaves)), "That is the scale for the largest of the leaves' mean sizes; the largest number would overflow."),
    (lambda leaves: max(_scale(_largest(leaves)), 1.0), "The scale may be less than 1, where the cotangents are too large."),
)  # fmt: skip


def _diagnosis(found, trees):
    """What is said of a mistake that gives the scales of all trees: for one tree, several may give the same."""
    for wrong, said in MISTAKES:
        scales = {name: wrong(_leaves(tree)) for name, tree in trees.items()}
        if all(
            found[name] == scale or math.isnan(scale) for name, scale in scales.items()
        ):  # of 0 there is none
            return said


exercise = Exercise(
    title="The loss scale that the cotangents bear",
    stars=2,
    minutes=8,
    why="A static loss scale need not be guessed: one backward pass in float32 says what float16 can hold.",
    hints=(
        "First the largest absolute value of all leaves: `jax.tree.leaves` and `jnp.abs`.",
        "The exponent is `math.floor(math.log2(65504 / 8 / largest))`; a tree of zeros needs a case of its own.",
    ),
    solution=solution,
    check=check,
)
