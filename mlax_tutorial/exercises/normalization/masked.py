"""Batch norm over what is real."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.normalization._compare import (
    EPSILON,
    ONE_PASS,
    close,
    drawn,
    slope_of_standardized,
    standardized,
)


def solution(x, mask):
    mask = mask[..., None]
    count = jnp.maximum(jnp.sum(mask), 1)
    x = jnp.where(mask, x, 0.0)
    mean = jnp.sum(x, axis=(0, 1)) / count
    centered = jnp.where(mask, x - mean, 0.0)
    variance = jnp.sum(centered**2, axis=(0, 1)) / count
    return centered / jnp.sqrt(variance + 1e-5), mean, variance


MASK = np.array([[True, True, False, True], [False, True, False, False]])  # not only the end is padding


def check(masked):
    x = drawn(2, 4, 3)
    real, kept = x[MASK], MASK[..., None]
    mean, variance = real.mean(0), real.var(0)
    y = np.where(kept, (x - mean) / np.sqrt(variance + EPSILON), 0.0)
    given = {"x": x, "mask": MASK}
    got = _three(masked, x, MASK, given)

    zeroed = np.where(kept, x, 0.0)
    spread = np.square(zeroed - mean)
    wrong_means = [
        (zeroed.mean((0, 1)), "The mean is divided by the number of all places: divide the sum by the number of those that are real."),
        (x.mean((0, 1)), "The mean is taken over all places, padding, too."),
    ]  # fmt: skip
    wrong_variances = [
        (spread.mean((0, 1)), "The variance counts the padding, which lies as far from the mean as zero does: set to zero what is squared, where the mask is false."),
        (spread.sum((0, 1)) / len(real), "The variance counts the padding, which lies as far from the mean as zero does: set to zero what is squared, where the mask is false."),
        (np.where(kept, spread, 0).mean((0, 1)), "The variance is divided by the number of all places: divide by the number of those that are real."),
        (x.var((0, 1)), "The variance is taken over all places, padding, too."),
        (real.var(0, ddof=1), "The variance is unbiased: divide by the number of real places, not by one less."),
        (np.sqrt(variance), "This is the standard deviation, and the variance is asked for."),
    ]  # fmt: skip
    wrong_outputs = [  # both reach a place where the mask is false
        ((zeroed - mean) / np.sqrt(variance + EPSILON), "Where the mask is false y should be zero: subtracting the mean put something there."),
        ((x - mean) / np.sqrt(variance + EPSILON), "Where the mask is false y should be zero."),
    ]  # fmt: skip
    for value, expected, what, recognise in [
        (got[1], mean, "mean", wrong_means),
        (got[2], variance, "variance", wrong_variances),
        (got[0], y, "output", wrong_outputs),
    ]:
        if not close(value, expected):
            said = next((text for wrong, text in recognise if close(value, wrong)), f"The {what} is wrong.")
            raise Failed(said, input=given, expected=np.asarray(expected, np.float32), got=value)

    poisoned = np.where(kept, x, [np.nan, np.inf, -np.inf]).astype(np.float32)  # one for each feature
    shown = {"x": poisoned, "mask": MASK}
    _agree(
        _three(masked, poisoned, MASK, shown),
        (y, mean, variance),
        "With NaN or infinity in the padding the result is another one: either times zero is NaN. Choose with `jnp.where`, by the "
        "mask, before anything is computed.",
        shown,
    )

    @jax.jit
    def gradient(x, mask):
        return jax.grad(lambda x: jnp.sum(jnp.sin(masked(x, mask)[0])))(x)

    slope = gradient(jax.device_put(poisoned), jax.device_put(MASK))
    if not np.all(np.isfinite(slope)):
        raise Failed(
            "With NaN or infinity in the padding the gradient is NaN: after the computation `jnp.where` comes too late, since zero times "
            "NaN is NaN on the way back, too. Choose before anything is computed.",
            input=shown,
            got=slope,
        )
    expected = np.zeros_like(x)
    expected[MASK] = slope_of_standardized(real, np.cos(y[MASK]), 0)
    if not close(slope, expected, 1e-2):
        raise Failed(
            "The numbers are right, but not the gradient by x: mean and variance depend on x, too, so no `stop_gradient` belongs here. "
            "In the padding the gradient is 0.",
            input=shown,
            expected=expected,
            got=slope,
        )
    for given, said in [
        (x * np.float32(1e-3), "For small numbers the output is wrong: is epsilon 1e-5, and under the square root?"),
        (x + np.float32(1000), ONE_PASS),
    ]:  # fmt: skip
        got = _three(masked, given, MASK, {"x": given, "mask": MASK})
        real = given[MASK]
        expected = np.zeros_like(given)
        expected[MASK] = standardized(real, 0)
        if not (close(got[0], expected) and close(np.asarray(got[2]) / real.var(0), np.ones(3))):
            raise Failed(said, input={"x": given, "mask": MASK}, expected=expected, got=got[0])
    spoilt = x.copy()
    spoilt[0, 1, 0] = np.nan
    if not np.isnan(np.asarray(_three(masked, spoilt, MASK, {"x": spoilt, "mask": MASK})[1])[0]):
        raise Failed(
            "A NaN in a place that is *real* does not show in the mean, so a fault in the data goes unnoticed: choose by the mask alone.",
            input={"x": spoilt, "mask": MASK},
        )
    single = np.zeros_like(MASK)
    single[1, 2] = True
    shown = {"x": x, "mask": single}
    _agree(
        _three(masked, x, single, shown),
        (np.zeros_like(x), x[1, 2], np.zeros(3)),
        "Where a single place is real, the mean is what stands there, and the variance is 0: divide by the number of real places, "
        "which is 1 here.",
        shown,
    )
    nothing = np.zeros_like(MASK)
    shown = {"x": x, "mask": nothing}
    for value, what in zip(
        _three(masked, x, nothing, shown), ("output is", "mean is", "variance is"), strict=True
    ):
        if np.any(np.asarray(value) != 0):
            raise Failed(
                f"Where nothing is real the {what} not zero: divide by the number of real places, but at least by 1.",
                input=shown,
                got=value,
            )


def _agree(got, expected, said, shown):
    for value, wanted in zip(got, expected, strict=True):
        if not close(value, wanted):
            raise Failed(said, input=shown, expected=np.asarray(wanted, np.float32), got=value)


def _three(masked, x, mask, shown):
    got = masked(jax.device_put(x), jax.device_put(mask))
    names = "`y`", "The mean", "The variance"
    asked = "Return three arrays: y, the mean and the variance."
    checks.returned(got, *names, lists=True, asked=asked, input=shown)
    for value, shape, what in zip(got, (x.shape, x.shape[-1:], x.shape[-1:]), names):
        if np.shape(value) != shape:
            raise Failed(f"{what} should have the shape {shape}, got {np.shape(value)}.", input=shown)
    return got


exercise = Exercise(
    title="Batch norm under a mask",
    stars=3,
    minutes=15,
    why="Padding is in every batch of sequences: a mean that counts it depends on how long the longest neighbor is.",
    hints=(
        "First replace what is not real by zeros, with `jnp.where` and `mask[..., None]`. Then sums are right; but by what do you "
        "divide them, and what does `x - mean` put where the zeros were?",
        "`count = jnp.maximum(mask.sum(), 1)`; `mean = x.sum((0, 1)) / count`; `centered = jnp.where(mask[..., None], x - mean, 0.0)`; the "
        "variance is the sum of the squares of that by `count`.",
    ),
    solution=solution,
    check=check,
)
