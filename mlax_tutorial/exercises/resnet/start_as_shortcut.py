"""Weights by which every block begins as its shortcut."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed


def solution(trainables):
    def start(item):
        if not isinstance(item, dict) or "layer" not in item:
            return item
        *front, last = item["layer"]
        last = last | {"scale": jnp.zeros_like(last["scale"])}
        return item | {"layer": (*front, last)}

    return tuple(start(item) for item in trainables)


def check(start_as_shortcut):
    for dtype in ("float32", "bfloat16"):
        given = _weights(dtype)
        before = jax.tree.map(lambda leaf: leaf, given)
        got = start_as_shortcut(given)
        shown = {"input": {"trainables": before}}
        if jax.tree.structure(given) != jax.tree.structure(before):
            raise Failed("Your function changes the tree that it is given: build a new one.", **shown)
        kept = zip(jax.tree.leaves(given), jax.tree.leaves(before))
        if any(one is not two for one, two in kept):
            raise Failed(
                "Your function changes a dict that the caller still has: build new ones, `item | {…}`.",
                **shown,
            )
        _compare(got, before, shown)


def _weights(dtype):
    """A model of a convolution and a norm, a block, a block with a shortcut, and a linear layer."""
    counter = iter(range(1, 100))

    def leaf(*shape):
        return jax.device_put(np.full(shape, next(counter) / 4, jnp.dtype(dtype)))

    def conv(out, inputs, size=3):
        return {"kernel": leaf(out, size, size, inputs)}

    def norm(channels):
        return {"bias": leaf(channels), "scale": leaf(channels)}

    def branch(out, inputs):
        return conv(out, inputs), norm(out), (), conv(out, out), norm(out)

    return (
        conv(2, 1), norm(2), (), {"layer": branch(2, 2)}, (),
        {"layer": branch(3, 2), "shortcut": (conv(3, 2, 1), norm(3))}, (),
        (), {"kernel": leaf(3, 2)}, {"bias": leaf(2)},
    )  # fmt: skip


def _compare(got, given, shown):
    wanted = solution(given)
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?", **shown)
    if jax.tree.structure(got) != jax.tree.structure(wanted):
        said = "The new trainables should be built like the old ones, tuples, dicts and all."
        raise Failed(said, expected=jax.tree.map(jnp.shape, wanted), got=got, **shown)
    flat = [jax.tree_util.tree_flatten_with_path(tree)[0] for tree in (wanted, got, given)]
    changed = {}
    for (path, expected), (_, found), (_, old) in zip(*flat):
        name = jax.tree_util.keystr(path)
        if jnp.shape(found) != expected.shape or jnp.asarray(found).dtype != expected.dtype:
            said = f"`{name}` should keep its shape and dtype, {expected.dtype}{list(expected.shape)}."
            raise Failed(said, got=found, **shown)
        if bool(jnp.any(found != old)):
            changed[name] = bool(jnp.all(found == expected))
    blocks = ["[3]", "[5]"]
    asked = [f"{place}['layer'][4]['scale']" for place in blocks]
    wrong = [name for name in changed if name not in asked]
    if not changed:
        raise Failed("Nothing is changed.", **shown)
    if any("shortcut" in name for name in wrong):
        raise Failed("The shortcut's norm is changed, too: then the block would begin as nothing.", **shown)
    if any("['layer'][1]['scale']" in name for name in wrong):
        raise Failed(
            "The first norm of a branch is changed, too: then no gradient reaches its first convolution for longer than needed. One zero, "
            "at the end of the branch, is enough.",
            **shown,
        )
    if any("bias" in name for name in wrong):
        raise Failed("A bias is changed. It is zero at the start, and stays the reader's.", **shown)
    if any("kernel" in name for name in wrong):
        raise Failed(
            "A kernel is changed. With a kernel of zeros the norm after it divides 0 by the root of epsilon; set the scale instead.",
            **shown,
        )
    if wrong:
        raise Failed(f"`{wrong[0]}` is changed, which is in no branch.", **shown)
    missing = [name for name in asked if not changed.get(name)]
    if missing:
        raise Failed(f"`{missing[0]}` is not zero: every block begins as its shortcut.", got=got, **shown)


exercise = Exercise(
    title="Blocks that begin as their shortcut",
    stars=1,
    minutes=8,
    why="What a fresh network computes is your choice: weights are a tree, and a tree can be edited.",
    hints=(
        'A residual block is the entry that is a dict with `"layer"`; the last norm of its branch is `item["layer"][-1]`.',
        'Build new containers: `item | {"layer": (*front, last | {"scale": jnp.zeros_like(last["scale"])})}`.',
    ),
    solution=solution,
    check=check,
    differentiable=False,
)
