"""A moving average without a loop."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.inspection import jaxprs


def solution(x, width):
    return jnp.convolve(x, jnp.full(width, 1 / width), mode="valid")


def check(moving_average):
    recognise = [
        (
            lambda x, width: jnp.convolve(x, jnp.ones(width), mode="valid"),
            "This is the sum of each window; the mean is asked for.",
        ),
        (
            lambda x, width: jnp.convolve(x, jnp.full(width, 1 / width), mode="same"),
            "There is a result for every element, so some windows reach beyond the ends, where there is nothing. Only "
            "whole windows count.",
        ),
        (
            lambda x, width: jnp.convolve(x, jnp.full(width, 1 / width)),
            "Some windows reach beyond the ends, where there is nothing. Only whole windows count.",
        ),
        (
            clamped,
            "The last windows would reach beyond the end, and are clamped: they are repeats.",
        ),
        (
            no_first,
            "The first window is missing: a running sum starts before the first element, at 0.",
        ),
        (
            lambda x, width: solution(x, width)[:-1],
            "The last whole window is missing: there are `len(x) - width + 1`.",
        ),
        (
            repeats,
            "The last windows reach beyond the end, where an index is clamped to the last element.",
        ),
        (
            lambda x, width: solution(x, width + 1),
            "The windows are too wide by one.",
        ),
        (
            lambda x, width: jnp.convolve(x, jnp.ones(width), mode="valid") / (width - 1),
            "You divide by `width - 1`, but a window has `width` elements.",
        ),
        (
            lambda x, width: solution(x, width)[::width],
            "The windows stand side by side; one begins at every element.",
        ),
    ]

    def draw_both(draw):
        size, width = draw(inputs.one_of((4, 4), (5, 1), (8, 2)))
        return draw(inputs.arrays(size)), width

    telling = (jnp.array([1.0, 3.0, 8.0, 0.0, 4.0]), 3)  # with 2, mistakes look alike: 2 - 1 is 1
    checks.values(
        moving_average,
        solution,
        inputs.together(draw_both),
        examples=[telling],
        recognise=recognise,
        count=10,
    )
    checks.works_under_jit(moving_average, *telling, static_argnums=1)

    def program(size, width):
        closed = jax.make_jaxpr(lambda x: moving_average(x, width))(
            jax.ShapeDtypeStruct((size,), jnp.float32)
        )
        equations = [equation for _, equation in jaxprs.walk(closed)]
        if {"while", "scan"} & {equation.primitive.name for equation in equations}:
            raise Failed(
                "There is a loop in the program: JAX's own loops also take one step after the other. Let one "
                "operation take all windows."
            )
        largest = max((out.aval.size for equation in equations for out in equation.outvars), default=0)
        return len(equations), largest

    (base, small), (longer, large), (wider, _) = program(64, 4), program(128, 4), program(64, 32)
    if longer > base or wider > base:
        what = "the array" if longer > base else "the window"
        raise Failed(
            f"The program grows with {what}: Python runs a loop, or a recursion, while JAX records, and each of its "
            "steps leaves equations of its own.",
            shown=[
                ("64 elements, window 4", f"{base} equations"),
                ("128 elements, window 4", f"{longer} equations"),
                ("64 elements, window 32", f"{wider} equations"),
            ],
        )
    if large > 3 * small:
        raise Failed(
            "The largest array in the program grows with the square of the series. One of 20,000 elements would need "
            "gigabytes.",
            shown=[
                ("64 elements, window 4", f"{small:,} numbers"),
                ("128 elements, window 4", f"{large:,} numbers"),
            ],
        )
    x = np.arange(20_000)
    x = jax.device_put(np.float32(np.where(x < 10_000, 8000, 0) + x % 7))
    exact = np.convolve(np.asarray(x, np.float64), np.full(7, 1 / 7), "valid")
    got = moving_average(x, 7)
    if np.shape(got) != exact.shape:
        raise Failed(
            f"On a series of 20,000 elements the shape is wrong: expected {exact.shape}, got {np.shape(got)}."
        )
    wrong = np.abs(np.asarray(got, np.float64) - exact)

    def is_what(other):
        return bool(jnp.allclose(got, other(x, 7), rtol=0, atol=1e-2))

    if not bool(np.all(wrong < 0.05)):
        said = "On a long series the means are wrong."
        if is_what(running_sum) or is_what(centred):
            said += (
                " A running sum over 20,000 elements goes to tens of millions, where float32 has no digit left "
                "behind the point; what was lost there is missing in the difference of two such sums."
            )
        elif is_what(half):
            said += " Half precision holds about three digits, and these numbers have four."
        raise Failed(
            said,
            input="x = 8000 + (0, 1, 2, 3, 4, 5, 6, 0, 1, …), 10,000 elements, then 10,000 more without the 8000; "
            "width 7",
            expected="8003, later 3",
            shown=[("got", f"wrong by up to {wrong.max():.2g}")],
        )


def clamped(x, width):
    starts = jnp.arange(len(x))
    return jax.vmap(lambda start: jax.lax.dynamic_slice(x, (start,), (width,)).mean())(starts)


def no_first(x, width):
    sums = jnp.cumsum(x)
    return (sums[width:] - sums[:-width]) / width


def running_sum(x, width):
    sums = jnp.concatenate([jnp.zeros(1), jnp.cumsum(x)])
    return (sums[width:] - sums[:-width]) / width


def centred(x, width):
    return x.mean() + running_sum(x - x.mean(), width)


def half(x, width):
    return solution(x.astype(jnp.float16).astype(jnp.float32), width)


def repeats(x, width):
    return x[jnp.arange(len(x))[:, None] + jnp.arange(width)].mean(axis=1)


exercise = Exercise(
    title="A moving average without a loop",
    stars=2,
    minutes=15,
    why="The program has the same few equations for any length and any window; the loop is the compiler's to write.",
    hints=(
        "A matrix of indices picks all windows at once: what does `jnp.arange(3)[:, None] + jnp.arange(2)` hold?",
        "There are `len(x) - width + 1` whole windows. `x[starts[:, None] + jnp.arange(width)]` has a row for each.",
        "Or look for `jnp.convolve`: with which weights, and which `mode`?",
    ),
    solution=solution,
    check=check,
)
