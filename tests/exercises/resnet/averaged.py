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


@answers.wrong("`steps` is no floating-point number")
def averages_counts(average, new, decay):
    return jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, average, new)


@answers.wrong("The statistics are the new ones")
def weights_alone(average, new, decay):
    return trees.average(average[0], new[0], decay), new[1]


@answers.wrong("The decay is the other way round")
def swapped(average, new, decay):
    one = lambda old, new: (1 - decay) * old + decay * new.astype(old.dtype) if floating(new) else new  # noqa: E731
    return jax.tree.map(one, average, new)


@answers.wrong("`steps` is no floating-point number")
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


def convert(old, new, decay):
    return decay * old + (1 - decay) * new.astype(old.dtype)


@answers.wrong("`temperature` is a single number")
def single_numbers_are_counts(average, new, decay):
    one = lambda old, new: convert(old, new, decay) if new.ndim and floating(new) else new  # noqa: E731
    return jax.tree.map(one, average, new)


@answers.wrong("`left` is no floating-point number")
def not_unsigned(average, new, decay):
    one = lambda old, new: new if new.dtype in (jnp.int32, jnp.bool_) else convert(old, new, decay)  # noqa: E731
    return jax.tree.map(one, average, new)


@answers.wrong("The statistics are the new ones")
def knows_two_dtypes(average, new, decay):
    one = lambda old, new: convert(old, new, decay) if new.dtype in (jnp.float32, jnp.bfloat16) else new  # noqa: E731
    return jax.tree.map(one, average, new)


@answers.wrong("`steps` is no floating-point number")
def counts_of_statistics_alone(average, new, decay):
    every = lambda old, new: convert(old, new, decay)  # noqa: E731
    some = lambda old, new: every(old, new) if floating(new) else new  # noqa: E731
    return jax.tree.map(every, average[0], new[0]), jax.tree.map(some, average[1], new[1])


@answers.wrong("the dtype of the average stays")
def wider_than_float16(average, new, decay):
    def one(old, new):
        if not floating(new):
            return new
        return convert(old.astype(jnp.float32) if old.dtype == jnp.float16 else old, new, decay)

    return jax.tree.map(one, average, new)


@answers.wrong("should keep its shape")
def at_least_one_axis(average, new, decay):
    one = lambda old, new: jnp.atleast_1d(convert(old, new, decay)) if floating(new) else new  # noqa: E731
    return jax.tree.map(one, average, new)


@answers.wrong()
def one_level(average, new, decay):
    def one(old, new):
        return convert(old, new, decay) if floating(new) else new

    return tuple({name: one(old[name], fresh[name]) for name in old} for old, fresh in zip(average, new))


@answers.wrong("changes a dict that it is given")
def in_place(average, new, decay):
    made = of_the_package(average, new, decay)
    average[1].update(made[1])
    return made[0], average[1]


@answers.wrong("The average of the weights is wrong")
def at_least_half(average, new, decay):
    return of_the_package(average, new, jnp.clip(decay, 0.5, 1))


# Right ones of unusual style


@answers.right
def by_flattening(average, new, decay):
    leaves, structure = jax.tree.flatten(average)
    pairs = zip(leaves, structure.flatten_up_to(new))
    return structure.unflatten([convert(*pair, decay) if floating(pair[1]) else pair[1] for pair in pairs])


@answers.right
def jitted(average, new, decay):
    return jax.jit(trees.average)(average, new, decay)


@answers.right
def with_a_decay_of_the_dtype(average, new, decay):
    def one(old, new):
        if not floating(old):
            return new
        return jnp.asarray(decay, old.dtype) * old + jnp.asarray(1 - decay, old.dtype) * new.astype(old.dtype)

    return jax.tree.map(one, average, new)


@answers.right
def whole_numbers_and_switches_stay(average, new, decay):
    def one(old, new):
        whole = jnp.issubdtype(new.dtype, jnp.integer) or new.dtype == jnp.bool_
        return new if whole else convert(old, new, decay)

    return jax.tree.map(one, average, new)


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
