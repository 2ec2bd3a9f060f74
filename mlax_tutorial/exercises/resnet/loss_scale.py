"""The loss scale that some cotangents bear."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed

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
    "tiny": lambda: jnp.array([3e-10, -1e-12]),
}


def check(loss_scale):
    for name, make in TREES.items():
        tree = make()
        _compare(loss_scale, tree, solution(tree), name)
    zeros = {"a": jnp.zeros(3)}
    got = _number(loss_scale, zeros)
    if got != 1:
        raise Failed(
            "For cotangents that are all zero the scale should be 1.", input={"cotangents": zeros}, got=got
        )


def _number(loss_scale, tree):
    got = loss_scale(tree)
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?", input={"cotangents": tree})
    if jnp.shape(got) != ():
        raise Failed("One number is asked for, for the whole tree.", input={"cotangents": tree}, got=got)
    return float(got)


def _compare(loss_scale, tree, wanted, name):
    got = _number(loss_scale, tree)
    if got == wanted:
        return
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(tree)]
    largest = max(np.max(np.abs(leaf)) for leaf in leaves)
    shown = {"input": {"cotangents": tree}, "expected": wanted, "got": got}
    if not (math.isfinite(got) and got > 0):
        raise Failed("The scale should be a finite number above 0.", **shown)
    if math.frexp(got)[0] != 0.5:
        raise Failed("The scale is no power of 2: other numbers round what they multiply.", **shown)

    def scale(size, limit=LIMIT, round=math.floor):
        return 2.0 ** round(math.log2(limit / size)) if size > 0 else math.nan

    signed = max(np.max(leaf) for leaf in leaves)
    for wrong, said in (
        (scale(largest, 65504), "The room is missing: the largest number should reach an eighth of 65,504, no more."),
        (scale(signed), "The largest number is negative here, and counts by its absolute value."),
        (scale(np.max(np.abs(leaves[0]))), "Only the first leaf counts: take the largest number of the whole tree."),
        (scale(min(np.min(np.abs(leaf)) for leaf in leaves)), "That is the scale for the smallest number; the largest one would overflow."),
        (scale(largest, round=math.ceil), "The exponent is rounded up: so the largest number exceeds an eighth of 65,504. Round down."),
        (scale(largest, round=round), "The exponent is rounded to the nearest: so the largest number may exceed an eighth of 65,504. Round down."),
        (scale(np.mean(np.abs(np.concatenate([leaf.ravel() for leaf in leaves])))), "That is the scale for the mean size; the largest number would overflow."),
        (max(scale(largest), 1.0), "The scale may be less than 1, where the cotangents are too large."),
    ):  # fmt: skip
        if got == wrong:
            raise Failed(said, **shown)
    side = "more" if got * largest > LIMIT else "less than half of that, so twice the scale would do"
    raise Failed(
        f"With this scale ({name}) the largest number becomes {got * largest:.6g}. An eighth of 65,504 is {LIMIT:g}: it is {side}.",
        **shown,
    )


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
