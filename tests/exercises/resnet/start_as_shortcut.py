"""Answers to the exercise resnet.start_as_shortcut."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import trees
from mlax_tutorial.exercises.resnet.start_as_shortcut import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def zeroed(trainables, where):
    def one(path, leaf):
        return jnp.zeros_like(leaf) if where(jax.tree_util.keystr(path)) else leaf

    return jax.tree_util.tree_map_with_path(one, trainables)


@answers.wrong("The shortcut's norm is changed")
def every_scale_of_a_block(trainables):
    return zeroed(
        trainables,
        lambda path: "layer" in path and "[4]['scale']" in path or "shortcut" in path and "scale" in path,
    )


@answers.wrong("The first norm of a branch is changed")
def both_scales(trainables):
    return zeroed(trainables, lambda path: "layer" in path and "scale" in path)


@answers.wrong("A bias is changed")
def the_whole_norm(trainables):
    return zeroed(trainables, lambda path: "['layer'][4]" in path)


@answers.wrong("A kernel is changed")
def last_kernel(trainables):
    return zeroed(trainables, lambda path: "['layer'][3]" in path)


@answers.wrong("changes a dict that the caller still has")
def in_place(trainables):
    for item in trainables:
        if isinstance(item, dict) and "layer" in item:
            item["layer"][-1]["scale"] = jnp.zeros_like(item["layer"][-1]["scale"])
    return trainables


@answers.wrong("is not zero")
def first_block_only(trainables):
    return zeroed(trainables, lambda path: path == "[3]['layer'][4]['scale']")


@answers.wrong("built like the old ones")
def lists(trainables):
    return list(zeroed(trainables, lambda path: "['layer'][4]['scale']" in path))


@answers.wrong("should keep its shape and dtype")
def float32_always(trainables):
    def one(path, leaf):
        return jnp.zeros(leaf.shape) if "['layer'][4]['scale']" in jax.tree_util.keystr(path) else leaf

    return jax.tree_util.tree_map_with_path(one, trainables)


@answers.wrong("Nothing is changed")
def forgets(trainables):
    return trainables


@answers.wrong("is not zero")
def counted_off(trainables):
    return trainables[:1] + started(trainables[1:])


@answers.wrong("in the middle of a branch")
def fifth_layer(trainables):
    return zeroed(trainables, lambda path: "['layer'][4]['scale']" in path)


@answers.wrong("is not zero")
def of_two_or_three_channels(trainables):
    return tuple(
        started((item,))[0] if "layer" in item and len(item["layer"][-1]["scale"]) < 4 else item
        for item in trainables
    )


@answers.wrong("is not zero")
def less_its_first(trainables):
    return started(trainables, lambda scale: scale - scale[0])


@answers.wrong("should keep its shape and dtype")
def one_zero(trainables):
    return started(trainables, lambda scale: 0.0)


@answers.wrong("should keep its shape and dtype")
def wide_zeros(trainables):
    return started(trainables, lambda scale: np.zeros(scale.shape))


@answers.wrong("should keep its shape and dtype")
def others_in_half(trainables):
    return jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), started(trainables))


def started(trainables, zeros=jnp.zeros_like):
    new = []
    for item in trainables:
        if "layer" in item:
            *front, last = item["layer"]
            item = {**item, "layer": (*front, {**last, "scale": zeros(last["scale"])})}
        new.append(item)
    return tuple(new)


# Right ones of unusual style


@answers.right
def numpy_zeros(trainables):
    return started(trainables, np.zeros_like)


@answers.right
def jitted(trainables):
    return jax.jit(started)(trainables)


@answers.right
def in_a_copy(trainables):
    copy = jax.tree.map(lambda leaf: leaf, trainables)
    for item in copy:
        if "layer" in item:
            item["layer"][-1]["scale"] *= 0
    return copy


@answers.right
def last_of_the_norms(trainables):
    places = [
        max(path for path in paths if f"[{i}]['layer']" in path)
        for paths in [[jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(trainables)]]
        for i, item in enumerate(trainables)
        if "layer" in item
    ]
    return zeroed(trainables, lambda path: path in places)


@answers.right
def by_path(trainables):
    ends = [
        f"[{i}]['layer'][{len(item['layer']) - 1}]['scale']"
        for i, item in enumerate(trainables)
        if "layer" in item
    ]
    return zeroed(trainables, lambda path: path in ends)


@answers.right
def by_the_package(trainables):
    ends = [
        f"[{i}]['layer'][{len(item['layer']) - 1}]['scale']"
        for i, item in enumerate(trainables)
        if "layer" in item
    ]
    return trees.update(trainables, lambda path: path in ends, jnp.zeros_like)


@answers.right
def by_product(trainables):
    return zeroed_by_product(trainables)


def zeroed_by_product(trainables):
    new = []
    for item in trainables:
        if isinstance(item, dict) and "layer" in item:
            branch = list(item["layer"])
            branch[-1] = {**branch[-1], "scale": branch[-1]["scale"] * 0}
            item = {**item, "layer": tuple(branch)}
        new.append(item)
    return tuple(new)
