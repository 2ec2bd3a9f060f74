"""Answers to the exercise measuring.roofline."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.measuring.roofline import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def roof(measured):
    flops, size, seconds = np.array(measured, float).T
    return (flops / seconds).max(), (size / seconds).max()


@answers.wrong("This adds both times")
def added(measured):
    rate, bandwidth = roof(measured)
    return lambda flops, size: flops / rate + size / bandwidth


@answers.wrong("the shorter of the two times")
def shorter(measured):
    rate, bandwidth = roof(measured)
    return lambda flops, size: min(flops / rate, size / bandwidth)


@answers.wrong("the arithmetic alone")
def arithmetic(measured):
    rate, _ = roof(measured)
    return lambda flops, size: flops / rate


@answers.wrong("the bytes alone")
def memory(measured):
    _, bandwidth = roof(measured)
    return lambda flops, size: size / bandwidth


@answers.wrong("neither means nor the first and the last")
def means(measured):
    flops, size, seconds = np.array(measured, float).T
    rate, bandwidth = (flops / seconds).mean(), (size / seconds).mean()
    return lambda flops, size: max(flops / rate, size / bandwidth)


@answers.wrong("neither means nor the first and the last")
def first_and_last(measured):
    (flops, _, one), *_, (_, size, other) = measured
    return lambda f, b: max(f / (flops / one), b / (size / other))


@answers.wrong("neither means nor the first and the last")
def of_the_largest(measured):
    flops, _, one = max(measured)
    _, size, other = max(measured, key=lambda each: each[1])
    return lambda f, b: max(f / (flops / one), b / (size / other))


@answers.wrong("neither means nor the first and the last")
def by_intensity(measured):
    copy, *_, product = sorted(measured, key=lambda each: each[0] / each[1])
    rate, bandwidth = product[0] / product[2], copy[1] / copy[2]
    return lambda flops, size: max(flops / rate, size / bandwidth)


@answers.wrong("This is a rate")
def attainable(measured):
    rate, bandwidth = roof(measured)
    return lambda flops, size: min(rate, flops / size * bandwidth)


@answers.wrong("Return a function")
def numbers(measured):
    return roof(measured)


@answers.wrong("is a `return` missing")
def nothing(measured):
    rate, bandwidth = roof(measured)

    def predict(flops, size):
        max(flops / rate, size / bandwidth)

    return predict


# Right ones of unusual style


@answers.right
def by_attainable_rate(measured):
    rate, bandwidth = roof(measured)
    return lambda flops, size: flops / min(rate, flops / size * bandwidth)


@answers.right
def by_inverses(measured):
    flop = min(seconds / flops for flops, _, seconds in measured)
    byte = min(seconds / size for _, size, seconds in measured)
    return lambda flops, size: np.maximum(flops * flop, size * byte)


@answers.right
def by_jax(measured):
    flops, size, seconds = jnp.array(measured, jnp.float32).T
    rate, bandwidth = (flops / seconds).max(), (size / seconds).max()
    return lambda flops, size: jnp.maximum(flops / rate, size / bandwidth)
