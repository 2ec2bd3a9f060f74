"""Normalize groups of channels, with any batch axes in front."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.normalization._compare import (
    COSTLY,
    EPSILON,
    ONE_PASS,
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


class GroupNorm(nn.Layer):
    groups: int

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        *front, channels = x.shape
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        split = wide.reshape(*front, self.groups, channels // self.groups)
        axes = (-4, -3, -1)
        centered = split - jnp.mean(split, axes, keepdims=True)
        variance = jnp.mean(centered**2, axes, keepdims=True)
        y = centered * jax.lax.rsqrt(variance + 1e-5)
        return y.reshape(x.shape).astype(x.dtype), non_trainables


def _grouped(x, groups, axes=(-4, -3, -1), epsilon=EPSILON):
    split = x.reshape(*x.shape[:-1], groups, -1)
    return standardized(split, axes, epsilon).reshape(x.shape)


def _strided(x, groups):
    split = x.reshape(*x.shape[:-1], -1, groups)
    return standardized(split, (-4, -3, -2)).reshape(x.shape)


def _unbiased(x, groups):
    split, axes = x.reshape(*x.shape[:-1], groups, -1).astype(np.float64), (-4, -3, -1)
    centered = split - split.mean(axes, keepdims=True)
    return (centered / np.sqrt(split.var(axes, ddof=1, keepdims=True) + EPSILON)).reshape(x.shape)


def check(GroupNorm):
    layer = checks.make(GroupNorm, 2)
    x = drawn(3, 2, 2, 6)
    recognise = [
        (_strided(x, 2), "The groups are every second channel: they should be neighbors. Split the channels into (groups, channels of a group), in this order."),
        (_grouped(x, 3), "There are 3 groups of 2 channels here, and there should be 2 groups of 3: the number of groups comes first in the split."),
        (_grouped(x, 2, (0, 1, 2, 4)), "The examples of the batch share a mean: a group has a mean of its own in each example."),
        (_grouped(x, 2, (1, 2, 3, 4)), "All channels of an example share a mean, so this is layer norm over three axes: each group has a mean of its own."),
        (_grouped(x, 2, (4,)), "Each place has a mean of its own: height and width belong to what is averaged."),
        (_unbiased(x, 2), "The variance is unbiased: divide by the number of values in the group, not by one less."),
        (_grouped(x, 2, (1, 2)), "Each channel has a mean of its own, so this is instance norm: the channels of a group share one."),
    ]  # fmt: skip
    compare(output(layer, x), _grouped(x, 2), {"x": x, "groups": 2}, recognise)
    for given, groups, what in [
        (x[0], 2, "one picture without batch axes"),
        (np.stack([x, 2 - x], 1), 3, "pictures with two batch axes, and 3 groups"),
    ]:
        try:
            y = output(checks.make(GroupNorm, groups), given)
        except Exception as error:
            raised = type(getattr(error, "error", error)).__name__
            raise Failed(
                f"For {what}, of shape {given.shape}, it raises {raised}: count the axes from the end.",
                input={"x": given},
            ) from None
        said = (
            f"For {what}, of shape {given.shape}, the output is wrong: count the axes from the end, so that "
            "batch axes may stand in front."
        )
        fixed = [
            (_grouped(given, 2), "With 3 groups the output is wrong: take their number from `self.groups`.")
        ]
        compare(
            y, _grouped(given, groups), {"x": given, "groups": groups}, fixed if groups == 3 else (), said
        )
    tiny = x[0] * np.float32(1e-3)
    missing = [
        (_grouped(tiny, 2, epsilon=0), "Epsilon is missing: where all numbers are equal there would be NaN.")
    ]
    said = "For small numbers the output is wrong: is epsilon 1e-5, and under the square root?"
    compare(output(layer, tiny), _grouped(tiny, 2), {"x": tiny, "groups": 2}, missing, said)
    far = x[0] + np.float32(1000)
    compare(output(layer, far), _grouped(far, 2), {"x": far, "groups": 2}, otherwise=ONE_PASS)
    the_same_in_inference(layer, x, y := _grouped(x, 2))
    split = (3, 2, 2, 2, 3)
    slope = slope_of_standardized(x.reshape(split), np.cos(y).reshape(split), (1, 2, 4))
    gradient(layer, x, slope.reshape(x.shape))
    no_overflow(layer, 300 * np.array([1.0, -1, 1, 1, -1, -1]) * np.ones_like(x))
    rounded_once(layer, lambda x: _grouped(x, 2))
    checks.obeys_laws(checks.make(GroupNorm, 3), x, accumulates=WIDE, but=COSTLY)


exercise = Exercise(
    title="Groups of channels",
    stars=2,
    minutes=12,
    why="A reshape makes a new axis, and the one formula does the rest; axes counted from the end leave room for any batch.",
    hints=(
        "Split the last axis in two, normalize over height, width and the second of the two, and put it back. With axes "
        "counted from the end it does not matter how many there are in front.",
        "`*front, channels = x.shape` and `split = x.reshape(*front, groups, channels // groups)`. Now the last axis is -1, the groups "
        "are -2, width and height -3 and -4: `standardize(split, (-4, -3, -1))`, in float32.",
    ),
    solution=GroupNorm,
    check=check,
)
