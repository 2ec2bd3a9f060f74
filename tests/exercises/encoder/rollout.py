"""Answers to the exercise encoder.rollout."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.encoder.rollout import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("The way around attention is missing")
def weights_alone(weights):
    return functools.reduce(lambda total, layer: layer @ total, weights.mean(axis=1))


@answers.wrong("The rows do not sum to 1")
def not_halved(weights):
    eye = jnp.eye(weights.shape[-1])
    return functools.reduce(lambda total, layer: (layer + eye) @ total, weights.mean(axis=1), eye)


@answers.wrong("The order is reversed")
def reversed_order(weights):
    return solution(weights[::-1])


@answers.wrong("This takes the largest weight of the heads")
def largest(weights):
    return solution(weights.max(axis=1, keepdims=True))


@answers.wrong("This is transposed")
def transposed(weights):
    return solution(weights).T


@answers.wrong("This is the last layer alone")
def last(weights):
    return (weights[-1].mean(axis=0) + jnp.eye(weights.shape[-1])) / 2


@answers.wrong("This is the mean of the layers")
def mean(weights):
    return (weights.mean(axis=(0, 1)) + jnp.eye(weights.shape[-1])) / 2


@answers.wrong("The mean is over layers")
def axes_swapped(weights):
    return solution(weights.swapaxes(0, 1))


@answers.wrong("take the mean over the heads first")
def head_by_head(weights):
    return jax.vmap(lambda one: solution(one[:, None]), in_axes=1)(weights)


@answers.wrong("`return` missing")
def nothing(weights):
    solution(weights)


# Right ones of unusual style


@answers.right
def by_scan(weights):
    half = (weights.mean(axis=1) + jnp.eye(weights.shape[-1])) / 2

    def step(total, layer):
        return layer @ total, None

    return jax.lax.scan(step, jnp.eye(weights.shape[-1]), half)[0]


@answers.right
def by_chain(weights):
    half = [0.5 * jnp.mean(layer, axis=0) + 0.5 * jnp.eye(layer.shape[-1]) for layer in weights]
    return functools.reduce(jnp.matmul, half[::-1])


answers.equivalent("-1 -> -2", because="the maps are square")
