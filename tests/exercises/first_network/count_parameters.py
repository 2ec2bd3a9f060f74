"""Answers to the exercise first_network.count_parameters."""

import math

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.first_network.count_parameters import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("number of arrays")
def count_arrays(tree):
    return len(jax.tree.leaves(tree))


@answers.wrong("These are bytes")
def count_bytes(tree):
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


@answers.wrong("*product*")
def count_axes(tree):
    return sum(sum(leaf.shape) for leaf in jax.tree.leaves(tree))


@answers.wrong("The shape of a leaf is all")
def count_raveled(tree):
    return jax.flatten_util.ravel_pytree(tree)[0].size


@answers.wrong("first axis only")
def count_first_axis(tree):
    return sum(len(leaf) for leaf in jax.tree.leaves(tree))


@answers.wrong("Your code raised AttributeError")
def count_flat_dict(tree):
    return sum(leaf.size for leaf in tree.values())


@answers.wrong("the last digits are lost")
def count_float32(tree):
    return int(jnp.sum(jnp.array([float(leaf.size) for leaf in jax.tree.leaves(tree)])))


@answers.wrong("Each shape is counted once")
def count_each_shape_once(tree):
    return sum(math.prod(shape) for shape in {leaf.shape for leaf in jax.tree.leaves(tree)})


@answers.wrong("holds one number, not none")
def count_no_scalars(tree):
    return sum(math.prod(leaf.shape) if leaf.shape else 0 for leaf in jax.tree.leaves(tree))


@answers.wrong("The shape of a leaf is all")
def count_makes_arrays(tree):
    return sum(jnp.zeros(leaf.shape).size for leaf in jax.tree.leaves(tree))


@answers.wrong("finds the arrays in any")
def count_by_recursion(tree):
    if hasattr(tree, "shape"):
        return math.prod(tree.shape)
    return sum(map(count_by_recursion, tree.values() if isinstance(tree, dict) else tree))


@answers.wrong("finds the arrays in any")
def count_by_recursion_and_none(tree):
    if hasattr(tree, "shape"):
        return math.prod(tree.shape)
    if tree is None:
        return 0
    return sum(map(count_by_recursion_and_none, tree.values() if isinstance(tree, dict) else tree))


@answers.right
def count_by_reduce(tree):
    return jax.tree.reduce(lambda total, leaf: total + leaf.size, tree, 0)


@answers.wrong("is the float 1.0")
def count_by_numpy(tree):
    return sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(tree))
