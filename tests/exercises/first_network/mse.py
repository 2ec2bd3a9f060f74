"""Answers to the exercise first_network.mse."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.first_network.mse import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("sum first and square after")
def notes(preds, targets):
    return jnp.sum(preds - targets) ** 2


@answers.wrong("grows with the number of predictions")
def mse_sum(preds, targets):
    return jnp.sum((preds - targets) ** 2)


@answers.wrong("mean of the absolute differences")
def absolute(preds, targets):
    return jnp.abs(preds - targets).mean()


@answers.wrong("over the first axis only")
def first_axis(preds, targets):
    return jnp.mean((preds - targets) ** 2, axis=0)


@answers.wrong("number of rows")
def by_rows(preds, targets):
    return jnp.sum((preds - targets) ** 2) / len(preds)


@answers.wrong("binds tighter than `-`")
def no_parentheses(preds, targets):
    return jnp.mean(preds - targets**2)


@answers.wrong("targets are not used")
def without_targets(preds, targets):
    return jnp.mean(preds**2)


@answers.wrong("The gradient is wrong")
def flat(preds, targets):
    return jnp.mean((jax.lax.stop_gradient(preds) - targets) ** 2)


@answers.wrong("NumPy")
def numpy(preds, targets):
    return np.mean((np.asarray(preds) - np.asarray(targets)) ** 2)


@answers.wrong("hides the one thing")
def without_nan(preds, targets):
    return jnp.nanmean((preds - targets) ** 2)


@answers.wrong("very large error")
def capped(preds, targets):
    return jnp.mean(jnp.minimum((preds - targets) ** 2, 1e4))


@answers.wrong("its gradient is not finite")
def by_norm(preds, targets):
    return jnp.linalg.norm((preds - targets).ravel()) ** 2 / preds.size


@answers.wrong("its gradient is not finite")
def root_and_square(preds, targets):
    return jnp.mean(jnp.sqrt((preds - targets) ** 2) ** 2)


@answers.wrong()
def by_two_axes(preds, targets):
    count = preds.shape[0] * preds.shape[-1] if preds.ndim > 1 else len(preds)
    return jnp.sum((preds - targets) ** 2) / count


@answers.right
def by_product(preds, targets):
    difference = jnp.ravel(preds - targets)
    return difference @ difference / difference.size


@answers.right
def by_size(preds, targets):
    return jnp.sum(jnp.square(preds - targets)) / preds.size
