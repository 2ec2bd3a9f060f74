"""Answers to the exercise resnet.averaged."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import trees
from mlax_tutorial.exercises.resnet.averaged import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def floating(leaf):
    return jnp.issubdtype(leaf.dtype, jnp.floating)


@answers.wrong("`count` is no floating-point number")
def averages_counts(average, new, decay):
    return jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, average, new)


@answers.wrong("The statistics are the new ones")
def weights_alone(average, new, decay):
    mean = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, average[0], new[0])
    return mean, new[1]


@answers.wrong("The decay is the other way round")
def swapped(average, new, decay):
    one = lambda old, new: (1 - decay) * old + decay * new.astype(old.dtype) if floating(new) else new  # noqa: E731
    return jax.tree.map(one, average, new)


@answers.wrong("`count` is no floating-point number")
def keeps_old_counts(average, new, decay):
    one = lambda old, new: decay * old + (1 - decay) * new.astype(old.dtype) if floating(new) else old  # noqa: E731
    return jax.tree.map(one, average, new)


@answers.wrong("The average comes back in bfloat16")
def dtype_of_the_new(average, new, decay):
    one = lambda old, new: (decay * old + (1 - decay) * new).astype(new.dtype) if floating(new) else new  # noqa: E731
    return jax.tree.map(one, average, new)


@answers.wrong("does not move to 1.001")
def rounds_on_the_way(average, new, decay):
    def one(old, new):
        if not floating(new):
            return new
        step = (
            jnp.asarray(decay, new.dtype) * old.astype(new.dtype) + (1 - jnp.asarray(decay, new.dtype)) * new
        )
        return step.astype(old.dtype)

    return jax.tree.map(one, average, new)


@answers.wrong("does not move to 1.3")
def product_in_half(average, new, decay):
    return jax.tree.map(
        lambda old, new: decay * old + (1 - decay) * new if floating(new) else new, average, new
    )


@answers.wrong("becomes the new values")
def floating_to_numpy(average, new, decay):
    def one(old, new):
        if not np.issubdtype(old.dtype, np.floating):
            return new
        return decay * old + (1 - decay) * new.astype(old.dtype)

    return jax.tree.map(one, average, new)


@answers.wrong("the dtype of the average stays")
def at_least_float32(average, new, decay):
    def one(old, new):
        return decay * old + (1 - decay) * new.astype(jnp.float32) if floating(new) else new

    return jax.tree.map(one, average, new)


@answers.wrong("Return a pair")
def trainables_only(average, new, decay):
    return jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, average[0], new[0])


@answers.wrong()
def python_branch(average, new, decay):
    return new if decay < 0.5 else jax.tree.map(lambda old, new: new, average, new)


# Right ones of unusual style


@answers.right
def of_the_package(average, new, decay):
    return trees.average(average, new, decay)


@answers.right
def by_difference(average, new, decay):
    def one(old, new):
        return old + (1 - decay) * (new.astype(old.dtype) - old) if floating(new) else new

    return jax.tree.map(one, average, new)


@answers.right
def one_tree_after_the_other(average, new, decay):
    def mean(old, new):
        return old * decay + new.astype(old.dtype) * (1 - decay) if floating(new) else new

    return tuple(jax.tree.map(mean, *pair) for pair in zip(average, new))
