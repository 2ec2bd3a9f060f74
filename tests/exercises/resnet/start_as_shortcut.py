"""Answers to the exercise resnet.start_as_shortcut."""

import jax
import jax.numpy as jnp

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


# Right ones of unusual style


@answers.right
def by_path(trainables):
    return zeroed(trainables, lambda path: path.endswith("['layer'][4]['scale']"))


@answers.right
def by_the_package(trainables):
    return trees.update(trainables, lambda path: path.endswith("['layer'][4]['scale']"), jnp.zeros_like)


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
