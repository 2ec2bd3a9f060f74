"""Answers to the exercise names_and_text.weighted."""

import jax
import jax.numpy as jnp
import optax

from mlax_tutorial.exercises.names_and_text.weighted import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong()
def rare_ones_never(logits, labels, counts):
    return solution(logits, labels, jnp.where(counts > 1, counts, 0))


each = optax.losses.softmax_cross_entropy_with_integer_labels


@answers.wrong("the counts have no effect")
def plain(logits, labels, counts):
    return each(logits, labels).mean()


@answers.wrong("not by the number of examples")
def mean_of_products(logits, labels, counts):
    return jnp.mean(each(logits, labels) / counts[labels])


@answers.wrong("not with one over it")
def wrong_way_round(logits, labels, counts):
    weights = (counts / counts.sum())[labels]
    return jnp.sum(weights * each(logits, labels)) / weights.sum()


@answers.wrong("of the *examples*, not of the classes")
def all_classes(logits, labels, counts):
    weights = 1 / counts
    return jnp.sum(weights[labels] * each(logits, labels)) / weights.sum()


@answers.wrong("makes a NaN or an infinity")
def nan_for_zero(logits, labels, counts):
    weights = 1 / counts
    chosen = jax.nn.one_hot(labels, len(counts)) @ weights
    return jnp.sum(chosen * each(logits, labels)) / chosen.sum()


@answers.wrong("should have the weight 0")
def infinite_weight(logits, labels, counts):
    weights = (1 / counts)[labels]
    return jnp.sum(weights * each(logits, labels)) / weights.sum()


@answers.wrong("should have the weight 0")
def as_if_one(logits, labels, counts):
    weights = (1 / jnp.maximum(counts, 1))[labels]
    return jnp.sum(weights * each(logits, labels)) / weights.sum()


@answers.wrong("not the logarithm of a softmax")
def overflows(logits, labels, counts):
    p = jnp.exp(logits) / jnp.exp(logits).sum(axis=-1, keepdims=True)
    weights = jnp.where(counts > 0, 1 / jnp.maximum(counts, 1), 0)[labels]
    losses = -jnp.log(p[jnp.arange(len(labels)), labels])
    return jnp.sum(weights * losses) / weights.sum()


@answers.wrong("The sign is wrong")
def no_minus(logits, labels, counts):
    return -solution(logits, labels, counts)


@answers.wrong("`return` missing")
def nothing(logits, labels, counts):
    solution(logits, labels, counts)


# Right ones of unusual style


@answers.right
def by_optax(logits, labels, counts):
    weights = jnp.where(counts > 0, 1 / jnp.maximum(counts, 1), 0.0)
    return jnp.average(each(logits, labels), weights=weights[labels])


@answers.right
def by_one_hot(logits, labels, counts):
    safe = jnp.where(counts == 0, 1, counts)
    weights = jnp.where(counts == 0, 0, 1000 / safe)  # any scale
    chosen = jax.nn.one_hot(labels, len(counts), dtype=logits.dtype) * weights
    return -jnp.sum(chosen * jax.nn.log_softmax(logits)) / chosen.sum()


answers.equivalent(
    "jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1) -> jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None])",
    "-1 -> 1",
    because="logits have two axes, the last one is axis 1, and it is what JAX takes where none is named",
)
answers.equivalent(
    "(:, 0) -> (:, -1)",
    "(:, 0) -> (:, 1)",
    because="there is one column, and JAX takes the last for an index outside",
)
answers.equivalent(
    "1 / jnp.maximum(counts, 1) -> 2 / jnp.maximum(counts, 1)",
    because="a factor of all weights cancels, as the sum is divided by that of the weights",
)
answers.equivalent(
    "jnp.maximum(counts, 1) -> counts",
    "jnp.maximum(counts, 1) -> jnp.maximum(counts, 0)",
    because="the infinity that 1 / 0 makes is not chosen, and nobody differentiates by counts",
)
