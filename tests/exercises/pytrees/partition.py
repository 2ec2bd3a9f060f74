"""Answers to the exercise pytrees.partition."""

import collections
import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.pytrees.partition import (
    by_path,
    dropped,
    exercise,
    pairs,
    partition_with,
    solution,
    swapped,
    zeros,
)
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("The two are swapped")(swapped)
answers.wrong("here it is 0.")(partition_with(0.0))
answers.wrong("an array of zeros")(zeros)
answers.wrong("an empty tuple")(partition_with(()))
answers.wrong("left out")(dropped)
answers.wrong("in a dict by their paths")(by_path)
answers.wrong("this is a list")(lambda tree, chosen: list(solution(tree, chosen)))
answers.wrong("the rest is needed")(lambda tree, chosen: solution(tree, chosen)[0])
answers.wrong("a pair of trees")(pairs)
answers.wrong("still holds what was chosen")(lambda tree, chosen: (solution(tree, chosen)[0], tree))


@answers.wrong("wants the path as text")
def unpaired_path(tree, chosen):
    def keep(wanted, path, leaf):
        return leaf if chosen(path) == wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


@answers.wrong("gets the whole path")
def last_step(tree, chosen):
    def keep(wanted, path, leaf):
        return leaf if bool(chosen(jax.tree_util.keystr(path[-1:]))) == wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


@answers.wrong("gets the whole path")
def simple(tree, chosen):
    def keep(wanted, path, leaf):
        text = jax.tree_util.keystr(path, simple=True, separator="/")
        return leaf if bool(chosen(text)) == wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


@answers.wrong("may have any depth")
def top(tree, chosen):
    first = {name: item if chosen(f"[{name!r}]") else None for name, item in tree.items()}
    second = {name: None if chosen(f"[{name!r}]") else item for name, item in tree.items()}
    return first, second


@answers.wrong("do not ask with `is`")
def partition_is(tree, chosen):
    def keep(wanted, path, leaf):
        return leaf if chosen(jax.tree_util.keystr(path)) is wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


@answers.wrong("changed its input")
def emptied(tree, chosen):
    first, second = solution(tree, chosen)
    if isinstance(tree, dict):
        tree.clear()
    return first, second


@answers.wrong("of any registered kind")
def by_hand(tree, chosen, text=""):
    if isinstance(tree, dict):
        parts = {k: by_hand(v, chosen, f"{text}[{k!r}]") for k, v in tree.items()}
        return {k: a for k, (a, _) in parts.items()}, {k: b for k, (_, b) in parts.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        parts = [by_hand(getattr(tree, k), chosen, f"{text}.{k}") for k in tree._fields]
        return type(tree)(*(a for a, _ in parts)), type(tree)(*(b for _, b in parts))
    if isinstance(tree, (list, tuple)):
        parts = [by_hand(item, chosen, f"{text}[{i}]") for i, item in enumerate(tree)]
        return type(tree)(a for a, _ in parts), type(tree)(b for _, b in parts)
    return (tree, None) if chosen(text) else (None, tree)


@answers.wrong("Leaves stay as they are")
def into_arrays(tree, chosen):
    return jax.tree.map(jnp.asarray, solution(tree, chosen))


def by_leaf(decides):
    """Takes a tree apart by what ``decides(answer, leaf)`` says of the leaf, besides the answer for its path."""

    def partition(tree, chosen):
        def keep(wanted, path, leaf):
            return leaf if bool(decides(chosen(jax.tree_util.keystr(path)), leaf)) == wanted else None

        return tuple(jax.tree.map_with_path(functools.partial(keep, w), tree) for w in (True, False))

    return partition


answers.wrong("not what kind of leaf")(
    by_leaf(lambda yes, leaf: yes and isinstance(leaf, (jax.Array, float, int)))
)
answers.wrong("not what kind of leaf")(by_leaf(lambda yes, leaf: yes and not isinstance(leaf, bool)))
answers.wrong("not what kind of leaf")(
    by_leaf(lambda yes, leaf: yes and jnp.issubdtype(jnp.result_type(leaf), jnp.floating))
)
answers.wrong("not what kind of leaf")(by_leaf(lambda yes, leaf: yes and isinstance(leaf, jax.Array)))
answers.wrong("ask with `if`")(by_leaf(lambda yes, leaf: yes == True))  # noqa: E712


@answers.wrong("ask with `if`")
def equal_to_each(tree, chosen):
    def keep(wanted, path, leaf):
        return leaf if chosen(jax.tree_util.keystr(path)) == wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


@answers.wrong("not what kind of leaf")
def without_what_is_false(tree, chosen):
    def hole(leaf):
        return None if isinstance(leaf, (int, float, str)) and not leaf else leaf

    return tuple(jax.tree.map(hole, part) for part in solution(tree, chosen))


@answers.wrong("stands at two places")
def by_identity(tree, chosen):
    found = {id(leaf) for path, leaf in jax.tree.leaves_with_path(tree) if chosen(jax.tree_util.keystr(path))}
    first = jax.tree.map(lambda leaf: leaf if id(leaf) in found else None, tree)
    return first, jax.tree.map(lambda leaf: None if id(leaf) in found else leaf, tree)


@answers.wrong("not about the containers on the way")
def below_what_is_chosen(tree, chosen):
    def on_the_way(path):
        return any(chosen(jax.tree_util.keystr(path[:i])) for i in range(len(path) + 1))

    return solution_by(on_the_way, tree)


def solution_by(decides, tree):
    def keep(wanted, path, leaf):
        return leaf if decides(path) == wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


@answers.wrong("Leaves stay as they are")
def arrays_of_jax(tree, chosen):
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf) if hasattr(leaf, "shape") else leaf, solution(tree, chosen)
    )


# Right ones of unusual style, and wrong ones that look right


@answers.right
def flat_partition(tree, chosen):
    pairs, structure = jax.tree.flatten_with_path(tree)
    marks = [chosen(jax.tree_util.keystr(path)) for path, _ in pairs]
    leaves = [leaf for _, leaf in pairs]
    first = [leaf if mark else None for leaf, mark in zip(leaves, marks, strict=True)]
    second = [None if mark else leaf for leaf, mark in zip(leaves, marks, strict=True)]
    return structure.unflatten(first), structure.unflatten(second)


@answers.right
def two_maps(tree, chosen):
    marks = jax.tree.map_with_path(lambda path, _: chosen(jax.tree_util.keystr(path)), tree)
    first = jax.tree.map(lambda leaf, mark: leaf if mark else None, tree, marks)
    second = jax.tree.map(lambda leaf, mark: None if mark else leaf, tree, marks)
    return first, second


Parts = collections.namedtuple("Parts", "chosen rest")


@answers.right
def transposed(tree, chosen):
    def pair(path, leaf):
        return [leaf, None] if chosen(jax.tree_util.keystr(path)) else [None, leaf]

    pairs = jax.tree.map_with_path(pair, tree)
    first, second = (
        jax.tree.map(lambda _, two, i=i: two[i], tree, pairs) for i in range(2)
    )  # the pairs lie below the leaves
    return Parts(first, second)
