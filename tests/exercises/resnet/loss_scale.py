"""Answers to the exercise resnet.loss_scale."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.resnet.loss_scale import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)
LIMIT = 65504 / 8


def sizes(tree):
    return np.concatenate([np.abs(np.asarray(leaf, np.float64)).ravel() for leaf in jax.tree.leaves(tree)])


def power(size, limit=LIMIT, round=math.floor):
    return 2.0 ** round(math.log2(limit / size)) if size > 0 else 1.0


@answers.wrong("The room is missing")
def no_room(tree):
    return power(sizes(tree).max(), 65504)


@answers.wrong("counts by its absolute value")
def signed(tree):
    return power(max(float(jnp.max(leaf)) for leaf in jax.tree.leaves(tree)))


@answers.wrong("Only the first leaf counts")
def first_leaf(tree):
    return power(sizes(jax.tree.leaves(tree)[0]).max())


@answers.wrong("for the smallest number")
def smallest(tree):
    return power(sizes(tree).min())


@answers.wrong("The exponent is rounded up")
def rounds_up(tree):
    return power(sizes(tree).max(), round=math.ceil)


@answers.wrong("no power of 2")
def exact(tree):
    size = sizes(tree).max()
    return LIMIT / size if size else 1.0


@answers.wrong("may be less than 1")
def at_least_one(tree):
    return max(1.0, power(sizes(tree).max()))


@answers.wrong("all zero")
def no_case_for_zero(tree):
    size = sizes(tree).max()
    return power(size) if size else 0.0


@answers.wrong("One number is asked for")
def one_for_each_leaf(tree):
    return jnp.stack([jnp.float32(power(sizes(leaf).max())) for leaf in jax.tree.leaves(tree)] * 2)


@answers.wrong("twice the scale would do")
def of_a_round_number(tree):
    return power(sizes(tree).max(), 65500 / 8)


@answers.wrong()
def always_twelve(tree):
    return 2.0**12


# Right ones of unusual style


@answers.right
def by_halving(tree):
    size, scale = sizes(tree).max(), 2.0**100
    if size == 0:
        return 1
    while scale * size > LIMIT:
        scale /= 2
    return scale


@answers.right
def by_frexp(tree):
    largest = jnp.max(
        jnp.stack([jnp.max(jnp.abs(leaf)).astype(jnp.float32) for leaf in jax.tree.leaves(tree)])
    )
    _, exponent = jnp.frexp(LIMIT / largest)
    return jnp.where(largest == 0, 1.0, jnp.ldexp(jnp.float32(1), exponent - 1))


@answers.right
def by_reduce(tree):
    largest = jax.tree.reduce(lambda most, leaf: max(most, float(jnp.abs(leaf).max())), tree, 0.0)
    return power(largest)


@answers.wrong("twice the scale would do")
def below_the_limit(tree):
    largest = sizes(tree).max()
    return 2.0 ** (math.ceil(math.log2(LIMIT / largest)) - 1) if largest > 0 else 1.0


@answers.wrong("for the mean size of all numbers")
def mean(tree):
    return power(sizes(tree).mean())


@answers.wrong("the largest of the leaves' mean sizes")
def largest_mean(tree):
    return power(max(sizes(leaf).mean() for leaf in jax.tree.leaves(tree)))


@answers.wrong("it is more")
def twice_the_room(tree):
    return power(sizes(tree).max(), 65504 / 4)


@answers.wrong("it is more")
def the_root_of_the_mean_square(tree):
    return power(np.sqrt(np.mean(sizes(tree) ** 2)))


@answers.wrong("in the dtype of the leaf")
def divides_in_half(tree):
    quotients = [float(LIMIT / jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(tree)]
    least = min(quotients)
    return 2.0 ** math.floor(math.log2(least)) if math.isfinite(least) else 1.0


@answers.wrong("twice the scale would do")
def one_where_a_leaf_is_zero(tree):
    if any(sizes(leaf).max() == 0 for leaf in jax.tree.leaves(tree)):
        return 1.0
    return power(sizes(tree).max())


@answers.wrong("it is more")
def arrays_with_axes(tree):
    return power(sizes([leaf if leaf.ndim else leaf * 0 for leaf in jax.tree.leaves(tree)]).max())


@answers.wrong("it is more")
def two_leaves(tree):
    return power(sizes(jax.tree.leaves(tree)[:2]).max())


@answers.wrong("twice the scale would do")
def tiny_ones_are_zero(tree):
    return power(sizes(tree).max()) if sizes(tree).max() > 1e-12 else 1.0


@answers.wrong("The result should be a number")
def as_text(tree):
    return str(power(sizes(tree).max()))


@answers.right
def jitted(tree):
    return jax.jit(by_frexp)(tree)


@answers.right
def up_and_down(tree):
    size, scale = sizes(tree).max(), 1.0
    while size and scale * size > LIMIT:
        scale /= 2
    while size and 2 * scale * size <= LIMIT:
        scale *= 2
    return scale


@answers.right
def in_numpy(tree):
    size = sizes(tree).max()
    return np.exp2(np.floor(np.log2(LIMIT / size))) if size else np.float64(1)
