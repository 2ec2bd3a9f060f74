"""Answers to the exercise arrays.squared_error."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.arrays.squared_error import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("but it returned a result")
def trusts(predictions, targets):
    return jnp.mean((predictions - targets) ** 2)


@answers.wrong("AssertionError")
def asserts(predictions, targets):
    assert predictions.shape == targets.shape
    return jnp.mean((predictions - targets) ** 2)


@answers.wrong("but it returned a result")
def flattens(predictions, targets):
    return jnp.mean((predictions.ravel() - targets.ravel()) ** 2)


@answers.wrong("but it returned a result")
def same_rank(predictions, targets):
    if predictions.ndim != targets.ndim:
        raise ValueError("ranks")
    return jnp.mean((predictions - targets) ** 2)


def same(part):
    def squared_error(predictions, targets):
        if part(predictions) != part(targets):
            raise ValueError("shapes")
        return jnp.mean((predictions - targets) ** 2)

    return squared_error


answers.wrong("but it returned a result")(same(lambda x: (x.ndim, x.shape[:1])))
answers.wrong("but it returned a result")(same(lambda x: (x.ndim, x.shape[-1:])))
answers.wrong("but it returned a result")(same(lambda x: x.shape[-1:]))


@answers.wrong("the sum of the squares")
def squared_error_sum(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError
    return ((predictions - targets) ** 2).sum()


@answers.wrong("NumPy's functions compute on the host")
def numpy(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError(f"{predictions.shape} and {targets.shape}")
    return np.mean((np.asarray(predictions) - np.asarray(targets)) ** 2)


@answers.wrong("by the number of rows")
def by_rows(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError("shapes")
    return jnp.sum((predictions - targets) ** 2) / len(predictions)


@answers.wrong("average the sizes of the errors")
def absolute(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError("shapes")
    return jnp.abs(predictions - targets).mean()


@answers.wrong("half of the mean squared error")
def half(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError("shapes")
    return jnp.mean((predictions - targets) ** 2) / 2


@answers.wrong("but it returned a result")
def guarded(predictions, targets):
    with jax.numpy_rank_promotion("raise"):  # (3,) and (1,) have the same rank
        return jnp.mean((predictions - targets) ** 2)


@answers.wrong("returned a float")
def squared_error_float(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError("shapes")
    return float(jnp.mean((predictions - targets) ** 2))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def flat_product(predictions, targets):
    if not (predictions.ndim == targets.ndim and predictions.shape == targets.shape):
        raise ValueError
    difference = (predictions - targets).ravel()
    return jnp.vdot(difference, difference) / difference.size


@answers.right
def element_by_element(predictions, targets):
    class ShapeError(ValueError):
        pass

    if jnp.shape(predictions) != jnp.shape(targets):
        raise ShapeError
    return jax.vmap(lambda a, b: (a - b) ** 2)(predictions.ravel(), targets.ravel()).mean()


answers.right(jax.jit(flat_product))
