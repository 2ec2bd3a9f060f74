"""A gradient of two results."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks, inputs
from mlax_tutorial.exercises.errors._explain import no_tracers


def solution(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    (value, predictions), gradient = jax.value_and_grad(loss, has_aux=True)(w)
    return w - rate * gradient, value, predictions


def check(train_step):
    w = np.float32([[0.5, -0.25], [1.0, 0.75], [-0.5, 0.0]])
    x = np.float32([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0], [-1.5, 0.25, 0.5], [0.5, 0.5, 0.5]])
    y = np.float32([[1.0, 0.0], [0.5, -0.5], [0.0, 0.25], [-1.0, 0.0]])
    w, x, y, rate = jax.device_put((w, x, y, np.float32(0.5)))

    def afterwards(w, x, y, rate):
        new, _, _ = solution(w, x, y, rate)
        return new, *solution(new, x, y, rate)[1:]

    def uphill(w, x, y, rate):
        return solution(w, x, y, -rate)

    def gradient_only(w, x, y, rate):
        new, value, predictions = solution(w, x, y, rate)
        return (w - new) / rate, value, predictions

    def swapped(w, x, y, rate):
        new, value, predictions = solution(w, x, y, rate)
        return new, predictions, value

    recognise = [
        (afterwards, "Loss and predictions are those of the new weights; asked for are those of the step."),
        (uphill, "The step goes uphill: minus the rate times the gradient."),
        (gradient_only, "The gradient is returned in place of the new weights."),
        (swapped, "The order is: new weights, loss, predictions."),
        (lambda *a: solution(*a)[:2], "The predictions are missing."),
    ]
    example = w, x, y, rate
    no_tracers(train_step(*example), "What `grad` is not asked for, `has_aux` hands through.")
    checks.values(train_step, solution, examples=[example], recognise=recognise)
    jitted = checks.works_under_jit(train_step, *example)
    checks.values(
        jitted,
        jax.jit(solution),
        inputs.arrays(2, 1, low=-1, high=1),
        inputs.arrays(3, 2, low=-1, high=1),
        inputs.arrays(3, 1, low=-1, high=1),
        jax.device_put(np.float32(0.25)),
        count=5,
        recognise=recognise,
    )
    with checks.says(
        "Something is computed twice. `has_aux` hands the predictions through, and `value_and_grad` gives the loss as well."
    ):
        checks.jaxpr(train_step, *example, counts={"tanh": 1, "dot_general": 2})


exercise = Exercise(
    title="A gradient of two results",
    stars=3,
    minutes=15,
    why="One forward pass, one backward pass, and all that is wanted from both: every training step is written so.",
    hints=(
        "`jax.grad(f, has_aux=True)` takes an `f` that returns a pair: the number, and what else is wanted.",
        "`jax.value_and_grad` returns the value beside the gradient, and takes `has_aux` as well.",
        "`(value, predictions), gradient = jax.value_and_grad(loss, has_aux=True)(w)`.",
    ),
    solution=solution,
    check=check,
)
