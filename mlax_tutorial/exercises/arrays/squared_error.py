"""A loss that does not broadcast."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks, inputs


def solution(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError(f"predictions have shape {predictions.shape}, targets {targets.shape}")
    return jnp.mean((predictions - targets) ** 2)


def check(squared_error):
    def pair(*shape):
        def draw_both(draw):
            predictions = draw(inputs.arrays(*shape, sizes=(1, 3)))
            return predictions, draw(inputs.arrays(*predictions.shape))

        return inputs.together(draw_both)

    recognise = [
        (lambda p, t: jnp.sum((p - t) ** 2), "This is the sum of the squares, not their mean."),
        (lambda p, t: jnp.mean(p - t) ** 2, "You average first and square after: opposite errors cancel."),
        (
            lambda p, t: jnp.sqrt(jnp.mean((p - t) ** 2)),
            "This is the root of the mean square: one root too many.",
        ),
        (
            lambda p, t: jnp.mean(jnp.abs(p - t)),
            "You average the sizes of the errors; their squares are asked for.",
        ),
        (lambda p, t: 0.5 * jnp.mean((p - t) ** 2), "This is half of the mean squared error."),
    ]
    by_rows = (
        lambda p, t: jnp.sum((p - t) ** 2) / len(p),
        "You divide by the number of rows; a mean divides by the number of all elements.",
    )
    telling = jax.device_put((np.float32([3, -1, 2]), np.zeros(3, np.float32)))
    checks.values(squared_error, solution, pair("n"), examples=[telling], recognise=recognise)
    checks.values(squared_error, solution, pair(3, 2), recognise=[by_rows])
    pairs = [
        ((3, 1), (3,)),
        ((3,), (1,)),
        ((2, 3), (3, 2)),
        ((), (3,)),
        ((3, 1), (3, 4)),
        ((1, 4), (3, 4)),
        ((3, 4), (4,)),
    ]
    for one, other in pairs:
        checks.refuses(squared_error, *(jax.device_put(np.ones(shape, np.float32)) for shape in (one, other)))
    checks.works_under_jit(squared_error, *telling)


exercise = Exercise(
    title="A loss that does not broadcast",
    stars=1,
    minutes=5,
    why="A (n, 1) that meets a (n,) is the most common silent mistake with arrays, and this loss refuses it.",
    hints=(
        "Shapes are known before any number is: `predictions.shape` is a tuple, and an `if` may ask for it.",
        "`raise ValueError(...)` where the two shapes differ; then the mean of the squared differences.",
    ),
    solution=solution,
    check=check,
)
