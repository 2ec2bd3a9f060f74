"""A carry of the wrong type."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.inspection import jaxprs


def solution(x):
    def step(carry, row):
        total, count = carry
        total, count = total + row, count + 1
        return (total, count), total / count

    first = jnp.zeros(x.shape[1:], x.dtype), jnp.zeros((), x.dtype)
    return lax.scan(step, first, x)[1]


def _size(function, *specs):
    return sum(jaxprs.count(lambda *arguments: function(*arguments), *specs).values())


def check(running_mean):
    def rows(x):
        return jnp.arange(1, len(x) + 1, dtype=x.dtype)[:, None]

    recognise = [
        (lambda x: jnp.cumsum(x, axis=0) / len(x), "Every row is divided by the number of all rows."),
        (lambda x: jnp.cumsum(x, axis=0) / (rows(x) + 1), "The count is one too large."),
        (lambda x: x / rows(x), "The total is not handed on: each row is divided by its number."),
        (lambda x: jnp.cumsum(x, axis=0), "These are the sums; the means are asked for."),
        (
            lambda x: jnp.cumsum(x, axis=1) / jnp.arange(1, x.shape[1] + 1, dtype=x.dtype),
            "This goes along the columns; the mean is over rows.",
        ),
    ]
    table = np.float32([[2.0, 4.0, 0.5], [4.0, 0.0, 1.5], [0.0, 5.0, -2.0], [2.0, -1.0, 8.0]])
    x, row, column = jax.device_put((table, table[:1], table[:, :1]))
    right = jax.jit(solution)
    checks.values(running_mean, right, examples=[(x,)], recognise=recognise)
    drawn = inputs.together(lambda draw: (draw(inputs.arrays(*draw(inputs.one_of((1, 1), (4, 3), (5, 2))))),))
    jitted = checks.works_under_jit(running_mean, x)
    checks.values(jitted, right, drawn, examples=[(row,), (column,)], count=6, recognise=recognise)
    for dtype in (jnp.float16, jnp.bfloat16):
        half = jax.device_put(table.astype(dtype))
        with checks.says(
            f"This is right for float32, but not for {jnp.dtype(dtype)}: the result has the dtype of `x`. With a loop, that "
            "begins with the first carry."
        ):
            checks.same(jitted(half), right(half), input={"x": half})
    few, many = (_size(running_mean, jax.ShapeDtypeStruct((n, 3), jnp.float32)) for n in (8, 64))
    if many > 4 * few:  # a tree of sums grows with the logarithm
        raise Failed(
            "The program grows with the number of rows: Python's loop is written out. Keep it a loop, as it was.",
            shown=[("equations", f"{few} for 8 rows, {many} for 64 rows")],
        )
    checks.gradients(running_mean, right, x, finite_differences=False, jit=True)


exercise = Exercise(
    title="A carry of the wrong type",
    stars=2,
    minutes=10,
    why="The first carry decides the type of the whole loop: make it of the input's shape and dtype.",
    hints=(
        "The message names the part of the carry, and its type before and after.",
        "`total + row` has the shape of a row, so the first total must have it, too.",
        "`jnp.zeros(x.shape[1:], x.dtype)`.",
    ),
    solution=solution,
    check=check,
)
