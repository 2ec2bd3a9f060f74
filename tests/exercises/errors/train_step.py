"""Answers to the exercise errors.train_step."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.errors.train_step import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("Output was (")
def broken(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    gradient = jax.grad(loss)(w)
    return w - rate * gradient, loss(w)[0], loss(w)[1]


@answers.wrong("Output had shape")
def vector(w, x, y, rate):
    predictions = jnp.tanh(x @ w)
    gradient = jax.grad(lambda w: (jnp.tanh(x @ w) - y) ** 2)(w)
    return w - rate * gradient, jnp.mean((predictions - y) ** 2), predictions


@answers.wrong("Something is computed twice")
def twice(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    gradient, predictions = jax.grad(loss, has_aux=True)(w)
    return w - rate * gradient, loss(w)[0], predictions


@answers.wrong("those of the new weights")
def afterwards(w, x, y, rate):
    new, _, _ = solution(w, x, y, rate)
    _, value, predictions = solution(new, x, y, rate)
    return new, value, predictions


@answers.wrong("uphill")
def uphill(w, x, y, rate):
    return solution(w, x, y, -rate)


@answers.wrong("The order is: new weights")
def swapped(w, x, y, rate):
    w, value, predictions = solution(w, x, y, rate)
    return w, predictions, value


@answers.wrong("The predictions are missing")
def without_predictions(w, x, y, rate):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - rate * gradient, value


@answers.wrong("outlived its trace")
def leaks(w, x, y, rate):
    kept = []

    def loss(w):
        kept.append(jnp.tanh(x @ w))
        return jnp.mean((kept[0] - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return w - rate * gradient, value, kept[0] + 0.0


@answers.wrong("A tracer got out of its trace")
def keeps(w, x, y, rate):
    kept = {}

    def loss(w):
        kept["predictions"] = jnp.tanh(x @ w)
        return jnp.mean((kept["predictions"] - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return w - rate * gradient, value, kept["predictions"]


@answers.wrong("in place of the new weights")
def gradient(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    (value, predictions), gradient = jax.value_and_grad(loss, has_aux=True)(w)
    return gradient, value, predictions


# Right ones of unusual style, and wrong ones that look right


@answers.right
@jax.jit
def with_vjp(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    value, pull, predictions = jax.vjp(loss, w, has_aux=True)
    (gradient,) = pull(jnp.ones_like(value))
    return w - rate * gradient, value, predictions


@answers.right
def by_hand(w, x, y, rate):
    predictions = jnp.tanh(x @ w)
    residual = predictions - y
    gradient = x.T @ (2 * residual * (1 - predictions**2)) / residual.size
    return w - rate * gradient, jnp.mean(residual**2), predictions


@answers.right
def value_as_well(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(jnp.dot(x, w))
        value = jnp.square(predictions - y).mean()
        return value, (value, predictions)

    gradient, (value, predictions) = jax.grad(loss, has_aux=True)(w)
    return w - rate * gradient, value, predictions


@answers.wrong()
def sums(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.sum((predictions - y) ** 2), predictions

    (value, predictions), gradient = jax.value_and_grad(loss, has_aux=True)(w)
    return w - rate * gradient, value / predictions.size, predictions


@answers.wrong()
def predicts_again(w, x, y, rate):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - rate * gradient, value, jnp.tanh(x @ w)
