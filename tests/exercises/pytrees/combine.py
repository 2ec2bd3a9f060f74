"""Answers to the exercise pytrees.combine."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.pytrees.combine import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def is_none(item):
    return item is None


def combine_with(choose, is_leaf=is_none):
    return lambda first, second: jax.tree.map(choose, first, second, is_leaf=is_leaf)


answers.wrong("not a leaf, so the trees differ")(
    combine_with(lambda a, b: b if a is None else a, is_leaf=None)
)
answers.wrong("neither true nor false")(combine_with(lambda a, b: a or b))
answers.wrong("do not compute with it")(combine_with(lambda a, b: a + b))
answers.wrong("Zero and False")(combine_with(lambda a, b: a if a is not None and a.any() else b))
answers.wrong("may be a plain number")(combine_with(lambda a, b: a if isinstance(a, jax.Array) else b))
answers.wrong("may be a plain number")(combine_with(lambda a, b: a if hasattr(a, "shape") else b))
answers.wrong("You return the first tree")(combine_with(lambda a, b: a))
answers.wrong("You return the second tree")(lambda a, b: b)
answers.wrong("You return the second tree")(lambda a, b: {**a, **b})
answers.wrong("Nothing is left")(combine_with(lambda a, b: a if a is None else b))
answers.wrong("not both")(lambda a, b: (a, b))
answers.wrong("These are the leaves")(lambda a, b: jax.tree.leaves((a, b)))


@answers.wrong("may have any depth")
def dicts(first, second):
    return {name: second[name] if first[name] is None else first[name] for name in first}


@answers.wrong("of the tree that has one there")
def unflatten(first, second):
    structure = jax.tree.structure(first, is_leaf=is_none)
    leaves = jax.tree.leaves(first) + jax.tree.leaves(second)
    return jax.tree.unflatten(structure, leaves[: structure.num_leaves])


@answers.wrong("of any registered kind")
def nested(first, second):
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, dict):
        return {name: nested(first[name], second[name]) for name in first}
    return [nested(one, two) for one, two in zip(first, second, strict=True)]


@answers.wrong("may have any depth")
def merged(first, second):
    return {**first, **{name: item for name, item in second.items() if item is not None}}


answers.wrong("None is no value for `jnp`")(combine_with(lambda a, b: jnp.asarray(b if a is None else a)))


@answers.wrong("changed its input")
def in_place(first, second):
    for name in first:
        if first[name] is None:
            first[name] = second[name]
    return first


# Right ones of unusual style, and wrong ones that look right


@answers.right
def the_other_way(first, second):
    return jax.tree.map(lambda a, b: a if b is None else b, first, second, is_leaf=lambda item: item is None)


@answers.right
def only_what_is_there(first, second):
    def choose(*found):
        return next((item for item in found if item is not None), None)

    return jax.tree_util.tree_map(choose, first, second, is_leaf=lambda item: item is None)


@answers.right
def with_structures(first, second):
    def is_none(item):
        return item is None

    structure = jax.tree.structure(first, is_leaf=is_none)
    ones, twos = jax.tree.leaves(first, is_leaf=is_none), jax.tree.leaves(second, is_leaf=is_none)
    return structure.unflatten([b if a is None else a for a, b in zip(ones, twos, strict=True)])


answers.right(jax.jit(the_other_way))
