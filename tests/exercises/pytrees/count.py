"""Answers to the exercise pytrees.count."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.pytrees.count import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


def count_wrong(meant, size, tree, name):
    return sum(size(leaf) for path, leaf in jax.tree.leaves_with_path(tree) if meant(path, name))


def on_path(path, name):
    return any(isinstance(step, jax.tree_util.DictKey) and step.key == name for step in path)


def leaf_size(leaf):
    return leaf.size


def counts(meant=on_path, size=leaf_size):
    return functools.partial(count_wrong, meant, size)


answers.wrong("a part of another name")(counts(lambda path, name: name in jax.tree_util.keystr(path)))
answers.wrong("anywhere on the path")(counts(lambda path, name: path[-1].key == name))
answers.wrong("anywhere on the path")(counts(lambda path, name: getattr(path[-1], "key", None) == name))


@answers.wrong("anywhere on the path")
def top(tree, name):
    return sum(leaf.size for leaf in jax.tree.leaves(tree.get(name)))


@answers.wrong("anywhere on the path")
def recursive_dicts(tree, name):
    total = 0
    for key, item in tree.items():
        if key == name:
            total += sum(leaf.size for leaf in jax.tree.leaves(item))
        elif isinstance(item, dict):
            total += recursive_dicts(item, name)
    return total


answers.wrong("whatever the paths")(counts(lambda path, name: True))
answers.wrong("how many leaves there are")(counts(size=lambda leaf: 1))
answers.wrong("first axis")(counts(size=lambda leaf: len(leaf) if leaf.ndim else 1))
answers.wrong("not bytes")(counts(size=lambda leaf: leaf.nbytes))
answers.wrong("Return an `int`")(counts(size=lambda leaf: np.prod(leaf.shape)))
answers.wrong("Return an `int`")(counts(size=lambda leaf: jnp.sum(jnp.ones_like(leaf))))
answers.wrong("The name may be a number")(
    counts(lambda path, name: f"'{name}'" in jax.tree_util.keystr(path))
)
answers.wrong("compare the keys, not their text")(
    counts(lambda path, name: any(str(getattr(step, "key", "")) == name for step in path))
)
answers.wrong("takes it for a single object")(
    counts(size=lambda leaf: int(jnp.sum(jnp.ones(leaf.shape, bool))))
)
answers.wrong("without axes")(counts(size=lambda leaf: leaf.size if leaf.ndim else 0))


@answers.wrong("A leaf counts once")
def twice(tree, name):
    if not isinstance(tree, (dict, list, tuple)):
        return 0
    total = 0
    for key, item in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if key == name:
            total += sum(leaf.size for leaf in jax.tree.leaves(item))
        total += twice(item, name)
    return total


@answers.wrong("Registered classes are containers")
def by_hand(tree, name):
    if isinstance(tree, dict):
        total = 0
        for key, item in tree.items():
            below = sum(leaf.size for leaf in jax.tree.leaves(item))
            total += below if key == name else by_hand(item, name)
        return total
    return sum(by_hand(item, name) for item in tree) if isinstance(tree, (list, tuple)) else 0


def on_path_or_field(path, name):
    return any(getattr(step, "key", getattr(step, "name", None)) == name for step in path)


answers.wrong("Only the key of a dict")(counts(on_path_or_field))
answers.wrong("Only the key of a dict")(
    counts(lambda path, name: name in jax.tree_util.keystr(path, simple=True, separator="/").split("/"))
)
answers.wrong("takes it for a single object")(counts(size=lambda leaf: np.asarray(leaf).size))


@answers.wrong("changed its input")
def and_clear(tree, name):
    total = solution(tree, name)
    tree.clear()
    return total


@answers.wrong("is a `return` missing")
def prints(tree, name):
    print(solution(tree, name))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def with_sizes_of_a_map(tree, name):
    def numbers(path, leaf):
        named = [step.key for step in path if isinstance(step, jax.tree_util.DictKey)]
        return math.prod(leaf.shape) if name in named else 0

    return sum(jax.tree.leaves(jax.tree.map_with_path(numbers, tree)))


@answers.right
def by_stopping(tree, name):
    is_named = lambda item: isinstance(item, dict) and name in item  # noqa: E731
    total = 0
    for item in jax.tree.leaves(tree, is_leaf=is_named):
        if is_named(item):
            total += sum(x.size for x in jax.tree.leaves(item[name]))
            total += sum(by_stopping(other, name) for key, other in item.items() if key != name)
    return total


@answers.right
def numpy_integer(tree, name):
    return np.int64(solution(tree, name))


answers.wrong("Place 1 of a list")(counts(lambda path, name: f"[{name!r}]" in jax.tree_util.keystr(path)))
answers.wrong("Place 1 of a list")(
    counts(lambda path, name: any(getattr(step, "key", getattr(step, "idx", None)) == name for step in path))
)
answers.wrong("Child 1 of an object")(
    counts(lambda path, name: any(getattr(step, "key", None) == name for step in path))
)
