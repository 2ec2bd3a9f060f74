"""A slice with a traced start."""

import jax
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, checks, inputs
from mlax_tutorial.checking.guarding import original
from mlax_tutorial.checking.programs import fresh, under


def solution(x, start):
    return lax.dynamic_slice_in_dim(x, start, 3)


def check(window):
    def some_rows(draw):
        x = draw(inputs.arrays("n", 2, sizes=(3, 8)))
        return x, int(draw(inputs.integers(0, len(x) - 3)))

    table = np.arange(16, dtype=np.float32).reshape(8, 2)
    x = jax.device_put(table)
    # Without jit numbers of Python only: `jax.ds` refuses arrays there.
    calls = [(x, start) for start in (0, 2, 5)]
    recognise = [
        (
            lambda x, start: lax.dynamic_slice_in_dim(x, start - 1, 3),
            "The window begins one row too early.",
        ),
        (lambda x, start: lax.dynamic_slice_in_dim(x, start + 1, 3), "The window begins one row too late."),
        (lambda x, start: x[:3], "This is the beginning of `x`, wherever `start` is."),
    ]
    if hasattr(original(window), "lower"):
        advice = "Every start makes a program of its own. Only the size has to be known while tracing."
        with checks.says(advice):
            checks.traces(window, *calls, exactly=1)
    checks.values(window, solution, inputs.together(some_rows), examples=calls, recognise=recognise, count=10)
    jitted = jax.jit(fresh(window))
    with under("`jax.jit`"):
        got = jitted(x, np.int32(2))
    checks.same(got, jax.device_put(table[2:5]), where="under `jax.jit`", input={"x": x, "start": 2})
    checks.traces(window, *calls, exactly=1)
    starts = jax.device_put(np.int32([0, 3, 5]))
    with under("`jax.vmap`"):
        got = jax.vmap(jitted, in_axes=(None, 0))(x, starts)
    expected = jax.device_put(np.stack([table[:3], table[3:6], table[5:]]))
    checks.same(got, expected, where="under `jax.vmap`", input={"x": x, "start": starts})
    checks.gradients(window, solution, *calls[1], finite_differences=False, jit=True)


exercise = Exercise(
    title="A slice with a traced start",
    stars=1,
    minutes=5,
    why="A size is part of a type, and a start is not: `dynamic_slice` takes the first from Python, the second from the program.",
    hints=(
        "The message of the error names the function that can do it.",
        "`lax.dynamic_slice_in_dim(x, start, size)` slices along axis 0.",
    ),
    solution=solution,
    check=check,
)
