"""Answers to the exercise placement.standardizer."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.placement.standardizer import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@jax.jit
def formula(images, mean, deviation):
    return (images - mean) / deviation


@answers.wrong("copies something from the host")
def eager_numpy(mean, deviation):
    return lambda images: (images - mean) / deviation


@answers.wrong("copies something from the host")
def jitted_numpy(mean, deviation):
    return lambda images: formula(images, mean, deviation)


@answers.wrong("copies something from the host")
def python_number(mean, deviation):
    mean, inverse = jax.device_put((mean, 1 / deviation))
    return lambda images: ((images - mean) * inverse) * 2 / 2


@answers.wrong("copies something from the host")
def put_at_each_call(mean, deviation):
    return lambda images: formula(images, *jax.device_put((mean, deviation)))


@answers.wrong("compiles again for shapes that it has seen")
def jits_each_time(mean, deviation):
    mean, deviation = jax.device_put((mean, deviation))
    return lambda images: jax.jit(lambda x: (x - mean) / deviation)(images)


@answers.wrong("Return a function of images")
def at_once(mean, deviation):
    return jnp.asarray(mean) / deviation


@answers.wrong("is wrong")
def without_deviation(mean, deviation):
    mean = jax.device_put(mean)
    return jax.jit(lambda images: images - mean)


@answers.wrong("`return` missing")
def nothing(mean, deviation):
    mean, deviation = jax.device_put((mean, deviation))

    def apply(images):
        formula(images, mean, deviation)

    return apply


# Right ones of unusual style


@answers.right
def constants_of_the_program(mean, deviation):
    return jax.jit(lambda images: (images - mean) / deviation)


@answers.right
def by_partial(mean, deviation):
    return functools.partial(formula, mean=jax.device_put(mean), deviation=jnp.array(deviation))


@answers.right
def eagerly_on_the_device(mean, deviation):
    mean, deviation = jax.device_put([mean, deviation])

    def apply(images):
        return (images - mean) / deviation

    return apply
