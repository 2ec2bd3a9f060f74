"""A slow average of weights and statistics."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(average, new, decay):
    def one(old, new):
        if not jnp.issubdtype(new.dtype, jnp.floating):
            return new
        return decay * old + (1 - decay) * new.astype(old.dtype)

    return jax.tree.map(one, average, new)


def check(averaged):
    average, new = _pair(jnp.float32, 1.0), _pair(jnp.float32, 3.0)
    got = averaged(average, new, 0.75)
    shown = {"input": {"average": average, "new": new, "decay": 0.75}}
    wanted = solution(average, new, 0.75)
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?", **shown)
    if jax.tree.structure(got) != jax.tree.structure(wanted):
        raise Failed(
            "Return a pair like the two that come in, `(trainables, non_trainables)`, each built as it was.",
            expected=wanted,
            got=got,
            **shown,
        )
    _leaves(got, wanted, average, new, shown)
    half = _pair(jnp.bfloat16, 5.0)
    got = averaged(average, half, 0.75)
    if any(leaf.dtype == jnp.bfloat16 for leaf in jax.tree.leaves(got)):
        raise Failed(
            "The average comes back in bfloat16, and is float32: `1 - decay` of 0.001 would be lost in it.",
            input={"average": average, "new": half, "decay": 0.75},
            got=got,
        )
    _leaves(
        got,
        solution(average, half, 0.75),
        average,
        half,
        {"input": {"average": average, "new": half, "decay": 0.75}},
    )
    exact = jax.tree.map(lambda leaf: jnp.full_like(leaf, 1.0), average)
    for decay, right in ((0.999, 1.001), (0.7, 1.3)):
        moved = averaged(exact, jax.tree.map(lambda leaf: jnp.full_like(leaf, 2.0), half), decay)
        mean = moved[1]["mean"]
        if not np.allclose(mean, right, atol=2e-5):
            raise Failed(
                f"With bfloat16 weights and a decay of {decay} the average does not move to {right}: convert what is new to the dtype of the "
                "average before you multiply.",
                got=mean,
            )
    _narrow(averaged)
    traced = lambda decay: averaged(average, new, decay)  # noqa: E731
    checks.works_under_jit(traced, jnp.float32(0.75))


def _narrow(averaged):
    """An average that is in bfloat16 itself."""
    average, new = _pair(jnp.bfloat16, 1.0), _pair(jnp.float32, 5.0)
    got = averaged(average, new, 0.75)
    shown = {"input": {"average": average, "new": new, "decay": 0.75}}
    kernel = np.asarray(got[0]["kernel"])
    if np.array_equal(kernel.astype(np.float32), new[0]["kernel"]):
        raise Failed(
            "An average in bfloat16 becomes the new values: it is floating-point, too, which `jnp.issubdtype(leaf.dtype, jnp.floating)` "
            "knows, and NumPy's `issubdtype` does not.",
            got=got,
            **shown,
        )
    if kernel.dtype != jnp.bfloat16:
        raise Failed(
            f"An average in bfloat16 comes back in {kernel.dtype}: the dtype of the average stays.",
            got=got,
            **shown,
        )
    _leaves(got, solution(average, new, 0.75), average, new, shown)


def _pair(dtype, value):
    """Weights, statistics, a count and a switch; the two pairs differ by ``value``."""
    statistics = {
        "mean": jnp.full(2, value, dtype),
        "count": jnp.int32(10 * value),
        "on": jnp.bool_(value > 2),
        "variance": jnp.full(2, 2 * value, dtype),
    }
    return {"kernel": jnp.array([value, -value, 0.5], dtype), "scale": jnp.full(1, value, dtype)}, statistics


def _leaves(got, wanted, average, new, shown):
    numbers = lambda tree: jax.tree.map(np.asarray, tree)  # noqa: E731
    (weights, statistics), (right, right_statistics) = numbers(got), numbers(wanted)
    old, fresh = numbers(average), numbers(new)
    for name in ("count", "on"):
        if statistics[name].dtype != right_statistics[name].dtype or statistics[name] != fresh[1][name]:
            raise Failed(
                f"`{name}` is no floating-point number, so it has no average: it should be the new one's, {fresh[1][name]}, of dtype "
                f"{fresh[1][name].dtype}.",
                got=got[1][name],
                **shown,
            )
    kernel, expected = weights["kernel"], right["kernel"]
    if not np.allclose(kernel, expected):
        said = "The average of the weights is wrong."
        if np.allclose(kernel, 0.25 * old[0]["kernel"] + 0.75 * fresh[0]["kernel"]):
            said = "The decay is the other way round: it is how much of the *average* is kept."
        elif np.allclose(kernel, fresh[0]["kernel"]):
            said = "The weights are the new ones: they should move to them by a quarter of the way."
        raise Failed(said, expected=expected, got=kernel, **shown)
    if not np.allclose(weights["scale"], right["scale"]):
        raise Failed("Some weights are not averaged: go through the whole tree.", got=got[0], **shown)
    for name in ("mean", "variance"):
        if np.allclose(statistics[name], right_statistics[name]):
            continue
        said = f"The average of the {name} is wrong."
        if np.allclose(statistics[name], fresh[1][name]):
            said = (
                "The statistics are the new ones. They belong to the weights by which they were gathered, and the averaged weights "
                "are others: average both."
            )
        elif np.allclose(statistics[name], old[1][name]):
            said = "The statistics stay what they were: average both trees."
        raise Failed(said, expected=right_statistics[name], got=statistics[name], **shown)


exercise = Exercise(
    title="Average weights and statistics",
    stars=2,
    minutes=10,
    why="Batch norm's statistics are as much a part of the model as its weights: what happens to one must happen to the other.",
    hints=(
        "One `jax.tree.map` over both pairs is enough: a pair of trees is a tree.",
        "Leave a leaf that is not floating as it is in `new`: `jnp.issubdtype(leaf.dtype, jnp.floating)`.",
        "`decay * old + (1 - decay) * new.astype(old.dtype)`.",
    ),
    solution=solution,
    check=check,
)
