"""Divide by the root mean square of the last axes."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.exercises.layers._layers import outlines, variables
from mlax_tutorial.exercises.normalization._compare import (
    COSTLY,
    EPSILON,
    WIDE,
    compare,
    drawn,
    gradient,
    no_overflow,
    output,
    rounded_once,
    slope_of_standardized,
    standardized,
    the_same_in_inference,
)


class RMSNorm(nn.Layer):
    axes: int = 1

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        axes = tuple(range(-self.axes, 0))
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        square = jnp.mean(wide**2, axes, keepdims=True)
        return (wide * jax.lax.rsqrt(square + 1e-5)).astype(x.dtype), non_trainables


def _divided(x, axes, mean=np.mean, epsilon=EPSILON):
    x = np.asarray(x, np.float64)
    return x / np.sqrt(mean(x**2, axis=axes, keepdims=True) + epsilon)


def check(RMSNorm):
    x = drawn(3, 2, 4)
    square = np.mean(np.square(x, dtype=np.float64), -1, keepdims=True) + EPSILON
    recognise = [
        (standardized(x, -1), "This subtracts the mean first, as layer norm does: here it stays."),
        (x / square, "This divides by the mean square: take its square root."),
        (x / np.sqrt(x.var(-1, keepdims=True) + EPSILON), "This divides by the standard deviation, in which the mean is subtracted: divide by the root of the mean square of x itself."),
        (_divided(x, -1, np.sum), "This divides by the length of each row, so its entries get smaller with every feature: take the mean of the squares, not their sum."),
        (_divided(x, 0), "The mean square is taken over the first axis, so examples are mixed: take the last ones."),
        (_divided(x, None), "The mean square is taken over all axes, so examples are mixed: take the last ones."),
        (x * np.sqrt(square), "This multiplies by the root mean square: divide by it."),
    ]  # fmt: skip
    layer = checks.make(RMSNorm)
    variables(layer, x, None, made=outlines(layer, x))
    compare(output(layer, x), _divided(x, -1), {"x": x}, recognise)
    two = [
        (_divided(x, -1), "With `axes=2` the last two axes share one mean square. This takes the last one alone."),
        (_divided(x, -2), "With `axes=2` the last two axes share one mean square. This takes the second axis from the end alone."),
        (_divided(x, None), "With `axes=2` the mean square is taken over all axes: take the last two."),
        (_divided(x, (0, 1)), "With `axes=2` the first two axes are taken: take the last two."),
    ]  # fmt: skip
    compare(output(checks.make(RMSNorm, 2), x), _divided(x, (-2, -1)), {"x": x, "axes": 2}, two)
    tiny = x * np.float32(1e-3)
    missing = [(_divided(tiny, -1, epsilon=0), "Epsilon is missing: a row of zeros would give NaN.")]
    rooted = tiny / (np.sqrt(square - EPSILON) * 1e-3 + EPSILON)
    missing.append((rooted, "Epsilon belongs under the square root."))
    wrong = "For small numbers the output is wrong: is epsilon 1e-5, and under the square root?"
    compare(output(layer, tiny), _divided(tiny, -1), {"x": tiny}, missing, wrong)
    y = _divided(x, -1)
    the_same_in_inference(layer, x, y)
    gradient(layer, x, slope_of_standardized(x, np.cos(y), -1, centered=False))
    no_overflow(layer, np.full((1, 4), 300.0))
    rounded_once(layer, lambda x: _divided(x, -1))
    checks.obeys_laws(layer, x, accumulates=WIDE, but=COSTLY)


exercise = Exercise(
    title="Divide by the root mean square",
    stars=1,
    minutes=8,
    why="It mixes no examples and has no state, so training, inference, one token and a batch are all the same program.",
    hints=(
        "It is `LayerNorm` without the subtraction, over `self.axes` axes. The last two axes are `(-2, -1)`.",
        "`tuple(range(-self.axes, 0))` are the axes, `jnp.mean(wide**2, axes, keepdims=True)` the mean square.",
    ),
    solution=RMSNorm,
    check=check,
)
