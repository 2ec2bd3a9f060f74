"""Weights by which every block begins as its shortcut."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(trainables):
    def start(item):
        if not isinstance(item, dict) or "layer" not in item:
            return item
        *front, last = item["layer"]
        last = last | {"scale": jnp.zeros_like(last["scale"])}
        return item | {"layer": (*front, last)}

    return tuple(start(item) for item in trainables)


def check(start_as_shortcut):
    for dtype, make in (("float32", _weights), ("bfloat16", _weights), ("float32", _others)):
        given = make(dtype)
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


def _parts(dtype):
    """Functions that make the variables of a convolution and of a norm, all numbers different."""
    counter = iter(range(1, 1000))

    def leaf(*shape):
        numbers = [next(counter) % 250 for _ in range(math.prod(shape))]  # exact in bfloat16
        return jax.device_put(np.array(numbers, jnp.dtype(dtype)).reshape(shape))

    def conv(out, inputs, size=1):
        return {"kernel": leaf(out, size, size, inputs)}

    def norm(channels):
        return {"bias": leaf(channels), "scale": leaf(channels)}

    return leaf, conv, norm


def _weights(dtype):
    """A model of a convolution and a norm, a block, a block with a shortcut, and a linear layer."""
    leaf, conv, norm = _parts(dtype)

    def branch(out, inputs):
        return conv(out, inputs, 3), norm(out), (), conv(out, out, 3), norm(out)

    return (
        conv(2, 1, 3), norm(2), (), {"layer": branch(2, 2)}, (),
        {"layer": branch(3, 2), "shortcut": (conv(3, 2), norm(3))}, (),
        (), {"kernel": leaf(3, 2)}, {"bias": leaf(2)},
    )  # fmt: skip


def _others(dtype):
    """Blocks at other places, one with a branch of three convolutions."""
    leaf, conv, norm = _parts(dtype)
    three = conv(2, 3), norm(2), (), conv(2, 2, 3), norm(2), (), conv(4, 2), norm(4)
    two = conv(3, 3), norm(3), (), conv(3, 3), norm(3)
    return {"layer": two}, (), {"layer": three, "shortcut": (conv(4, 3), norm(4))}, {"kernel": leaf(4, 2)}


def _compare(got, given, shown):
    checks.returned(got, **shown)
    if jax.tree.structure(got) != jax.tree.structure(given):
        said = "The new trainables should be built like the old ones, tuples, dicts and all."
        raise Failed(said, expected=jax.tree.map(jnp.shape, given), got=got, **shown)
    flat = [jax.tree_util.tree_flatten_with_path(tree)[0] for tree in (given, got)]
    changed = {}
    for (path, old), (_, found) in zip(*flat):
        name = jax.tree_util.keystr(path)
        if jnp.shape(found) != old.shape or getattr(found, "dtype", None) != old.dtype:
            said = f"`{name}` should keep its shape and dtype, {old.dtype}{list(old.shape)}."
            raise Failed(said, got=found, **shown)
        if np.any(np.asarray(found) != np.asarray(old)):
            changed[name] = not np.any(np.asarray(found))  # to zeros
    blocks = {f"[{i}]": len(item["layer"]) for i, item in enumerate(given) if "layer" in item}
    asked = [f"{place}['layer'][{length - 1}]['scale']" for place, length in blocks.items()]
    wrong = [name for name in changed if name not in asked]
    if not changed:
        raise Failed("Nothing is changed.", **shown)
    if any("shortcut" in name for name in wrong):
        raise Failed("The shortcut's norm is changed, too: then the block would begin as nothing.", **shown)
    if any("['layer']" in name and "['scale']" in name for name in wrong):
        both = "The first norm of a branch is changed, too: then no gradient reaches its first convolution for longer than needed."
        other = "A norm in the middle of a branch is changed: the *last* one ends the branch, and a branch may be longer than five layers."
        first = any("['layer'][1]['scale']" in name for name in wrong)
        raise Failed(f"{both if first else other} One zero, at the end of the branch, is enough.", **shown)
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
        raise Failed(
            f"`{missing[0]}` is not zero: every block begins as its shortcut. It may be at any place of the model: its entry is a dict "
            'with `"layer"`.',
            got=got,
            **shown,
        )


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
