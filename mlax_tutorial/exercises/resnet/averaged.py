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
    held = jax.tree.map(lambda leaf: leaf, (average, new))
    got = averaged(average, new, 0.75)
    shown = {"input": {"average": held[0], "new": held[1], "decay": 0.75}}
    same = jax.tree.structure((average, new)) == jax.tree.structure(held)
    if not same or any(one is not two for one, two in zip(*map(jax.tree.leaves, ((average, new), held)))):
        raise Failed("Your function changes a dict that it is given: the caller still has it. Build new ones, as `jax.tree.map` does.", **shown)  # fmt: skip
    checks.returned(got, **shown)
    if jax.tree.structure(got) != jax.tree.structure(average):
        raise Failed(
            "Return a pair like the two that come in, `(trainables, non_trainables)`, each built as it was.",
            expected=jax.tree.map(jnp.shape, average),
            got=got,
            **shown,
        )
    _leaves(got, average, new, 0.75)
    half = _pair(jnp.bfloat16, 5.0, jnp.float16)
    got = averaged(average, half, 0.75)
    if any(leaf.dtype == jnp.bfloat16 for leaf in jax.tree.leaves(got)):
        raise Failed(
            "The average comes back in bfloat16, and is float32: `1 - decay` of 0.001 would be lost in it.",
            input={"average": average, "new": half, "decay": 0.75},
            got=got,
        )
    _leaves(got, average, half, 0.75)
    ones, twos = _filled(average, 1), _filled(half, 2)
    for decay, right in ((0.999, 1.001), (0.7, 1.3)):
        moved = averaged(ones, twos, decay)
        kernel = moved[0][0]["kernel"]
        if not np.allclose(kernel, right, atol=2e-5):
            raise Failed(
                f"With bfloat16 weights and a decay of {decay} the average does not move to {right}: convert what is new to the dtype of the "
                "average before you multiply.",
                got=kernel,
            )
    _narrow(averaged)
    traced = lambda decay: averaged(average, new, decay)  # noqa: E731
    checks.works_under_jit(traced, jnp.float32(0.75))


def _narrow(averaged):
    """An average that is in half precision itself: weights in bfloat16, statistics in float16."""
    average, new = _pair(jnp.bfloat16, 1.0, jnp.float16), _pair(jnp.float32, 5.0)
    got = averaged(average, new, 0.25)
    kernel = np.asarray(got[0][0]["kernel"])
    if np.array_equal(kernel.astype(np.float32), new[0][0]["kernel"]):
        raise Failed(
            "An average in bfloat16 becomes the new values: it is floating-point, too, which `jnp.issubdtype(leaf.dtype, jnp.floating)` "
            "knows, and NumPy's `issubdtype` does not.",
            got=got,
            input={"average": average, "new": new, "decay": 0.25},
        )
    _leaves(got, average, new, 0.25)


def _filled(tree, value):
    return jax.tree.map(lambda leaf: jax.device_put(np.full(leaf.shape, value, leaf.dtype)), tree)


def _pair(dtype, value, other=None):
    """Weights, nested as a model's are, and statistics, counts and a switch; the two pairs differ by ``value``."""
    dtype = np.dtype(dtype)  # of one shape: each new one compiles
    other = np.dtype(other or dtype)
    branch = {"kernel": np.full(3, 2 * value, dtype)}, (), {"scale": np.full(3, value, dtype)}
    statistics = {
        "mean": np.full(3, value, other),
        "count": np.int32(10 * value),
        "left": np.array([90 - 10 * value, 7], np.uint8),
        "on": np.bool_(value > 2),
        "variance": np.full(3, 2 * value, other),
    }
    single = {"steps": np.int32(value), "temperature": np.array(value, dtype)}
    weights = {"kernel": np.array([value, -value, 0.5], dtype)}, {"layer": branch}, single
    return jax.device_put((weights, statistics))


def _leaves(got, average, new, decay):
    shown = {"input": {"average": average, "new": new, "decay": decay}}
    numbers = lambda tree: [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]  # noqa: E731
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(average)[0]]
    every = list(zip(names, *map(numbers, (got, average, new))))
    for name, leaf, _, fresh in every:
        counted = not jnp.issubdtype(fresh.dtype, jnp.floating)
        if counted and (leaf.dtype != fresh.dtype or not np.array_equal(leaf, fresh)):
            raise Failed(
                f"`{_last(name)}` is no floating-point number, so it has no average: it should be the new one's, {fresh}, of dtype {fresh.dtype}.",
                got=leaf,
                **shown,
            )
    floating = [row for row in every if jnp.issubdtype(row[3].dtype, jnp.floating)]
    for name, leaf, old, fresh in floating:
        right = decay * old.astype(np.float32) + (1 - decay) * fresh.astype(np.float32)  # exact for these
        if leaf.shape != right.shape:
            raise Failed(f"`{_last(name)}` should keep its shape.", expected=right, got=leaf, **shown)
        if not np.allclose(leaf.astype(np.float32), right):
            raise Failed(_said(name, leaf, old, fresh, decay), expected=right, got=leaf, **shown)
    for name, leaf, old, _ in floating:
        if leaf.dtype != old.dtype:
            raise Failed(
                f"`{_last(name)}` comes back in {leaf.dtype}, and its average is {old.dtype}: the dtype of the average stays.",
                got=leaf,
                **shown,
            )


def _said(name, leaf, old, fresh, decay):
    leaf, old, fresh = (number.astype(np.float32) for number in (leaf, old, fresh))
    is_new, is_old = np.allclose(leaf, fresh), np.allclose(leaf, old)
    if np.allclose(leaf, (1 - decay) * old + decay * fresh):
        return "The decay is the other way round: it is how much of the *average* is kept."
    if name.startswith("[0]"):
        if leaf.ndim == 0 and is_new:
            return f"`{_last(name)}` is a single number, but a floating-point one: it has an average, too."
        if "[0]['kernel']" not in name[:14] and (is_new or is_old):
            return "Some weights are not averaged: go through the whole tree."
        if is_new:
            return f"The weights are the new ones: they should move to them by {1 - decay:g} of the way."
        return "The average of the weights is wrong."
    if is_new:
        return (
            "The statistics are the new ones. They belong to the weights by which they were gathered, and the averaged weights "
            "are others: average both."
        )
    if is_old:
        return "The statistics stay what they were: average both trees."
    return f"The average of the {_last(name)} is wrong."


def _last(name):
    """The last key of a path."""
    return name.rsplit("'", 2)[-2]


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
