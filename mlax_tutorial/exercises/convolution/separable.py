"""A convolution in two cheap steps: over neighbors, then over channels."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import Raised
from mlax_tutorial.exercises.convolution._reference import convolve, waves
from mlax_tutorial.exercises.convolution.patches import COSTLY
from mlax_tutorial.exercises.layers._layers import compare, drawn, outlines, subject, variables
from mlax_tutorial.inspection import costs


class Separable(nn.Layer):
    out_channels: int

    def init(self, key, x):
        draw = jax.nn.initializers.lecun_normal()
        channels = x.shape[-1]
        first, second = jax.random.split(key)
        depthwise = draw(first, (3, 3, 1, channels), x.dtype)
        return {
            "depthwise": depthwise,
            "pointwise": draw(second, (channels, self.out_channels), x.dtype),
        }, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        batch, (height, width, channels) = x.shape[:-3], x.shape[-3:]
        y = lax.conv_general_dilated(
            x.reshape(-1, height, width, channels),
            trainables["depthwise"].astype(x.dtype),
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=channels,
        )
        y = y.reshape(*batch, height, width, channels)
        return y @ trainables["pointwise"].astype(x.dtype), non_trainables


def _depthwise(x, kernel):
    """``(n, h, w, c)`` with zeros round it already, and ``(3, 3, 1, c)``."""
    dense = np.zeros((3, 3, x.shape[-1], x.shape[-1]), np.float32)
    for channel in range(x.shape[-1]):
        dense[:, :, channel, channel] = kernel[:, :, 0, channel]
    return convolve(x, dense)


def check(Separable):
    layer, x = checks.make(Separable, 2), waves(2, 5, 4, 3)
    variables(layer, x, {"depthwise": (3, 3, 1, 3), "pointwise": (3, 2)}, made=outlines(layer, x))
    wide, images = checks.make(Separable, 40), np.zeros((1, 3, 3, 48), np.float32)
    made, _ = variables(wide, images, {"depthwise": (3, 3, 1, 48), "pointwise": (48, 40)})
    given = {"depthwise": waves(3, 3, 1, 3), "pointwise": waves(5, 2)[2:]}
    rim = ((0, 0), (1, 1), (1, 1), (0, 0))
    middle = _depthwise(np.pad(x, rim), given["depthwise"])
    swapped = _depthwise(np.pad(x, rim), given["depthwise"].swapaxes(0, 1))
    recognise = [
        (x @ given["pointwise"], "The depthwise convolution is missing: this is the pointwise product alone."),
        (swapped @ given["pointwise"], "Rows and columns of the window are swapped."),
        (np.maximum(middle, 0) @ given["pointwise"], "There is a ReLU between the two steps: none is asked for."),
        (_depthwise(np.pad(x, rim), given["depthwise"][::-1, ::-1]) @ given["pointwise"], "This rotates the kernel by 180 degrees."),
    ]  # fmt: skip
    y, _ = subject(layer).fwd(*jax.device_put((x, given, ())))
    if jnp.shape(y) == (2, 3, 2, 2):
        raise Failed(
            'The output is smaller than the input: pad as `"SAME"` does, with one zero on each side.'
        )
    compare(layer, x, given, (), middle @ given["pointwise"], recognise)
    _cheap(checks.make(Separable, 64))

    def fwd(x, depthwise, pointwise):
        return layer.fwd(x, {"depthwise": depthwise, "pointwise": pointwise}, ())[0]

    checks.gradients(fwd, None, *jax.device_put((x, *given.values())), argnums=(0, 1, 2), jit=True)
    _draws(wide, images, made)
    checks.obeys_laws(wide, images, but=COSTLY)  # whose kernels have been drawn already


def _draws(layer, x, trainables):
    """Both kernels come from keys of their own, and have the variance that `lecun_normal` gives."""
    layer = subject(layer)

    key = jax.random.key(2)
    try:
        with jax.debug_key_reuse(True):
            jax.eval_shape(jax.jit(layer.init), key, x)  # found by the trace, before anything is compiled
    except (jax.errors.KeyReuseError, Raised) as error:
        if not isinstance(getattr(error, "error", error), jax.errors.KeyReuseError):
            raise
        raise Failed(
            "`init` uses a key twice, so one kernel repeats the numbers of the other, or depends on them: "
            "`first, second = jax.random.split(key)`, and use each of the new ones once."
        ) from None
    one, other = (np.ravel(trainables[name])[:400] for name in ("depthwise", "pointwise"))
    if np.allclose(one / one.std(), other / other.std(), atol=1e-3):
        raise Failed(
            "Both kernels hold the same random numbers, as many as each needs, but for a factor: draw each from a key of its own."
        )
    wanted = "draw it with lecun_normal, in the shape that is asked for"
    drawn(trainables["depthwise"], 'trainables["depthwise"]', 1 / 3, wanted)
    drawn(trainables["pointwise"], 'trainables["pointwise"]', 1 / np.sqrt(48), wanted)


def _cheap(layer):
    """No more work than two separate steps need, by a wide margin; a dense kernel takes eight times as much."""
    height, channels, out = 16, 64, 64
    weights = {
        "depthwise": jax.ShapeDtypeStruct((3, 3, 1, channels), jnp.float32),
        "pointwise": jax.ShapeDtypeStruct((channels, out), jnp.float32),
    }
    x = jax.ShapeDtypeStruct((1, height, height, channels), jnp.float32)
    spent = costs.cost(lambda x, weights: layer.fwd(x, weights, ())[0], x, weights).flops
    needed = 2 * height * height * channels * (9 + out)
    if spent > 2.5 * needed:
        raise Failed(
            f"The numbers are right, but with {channels} channels your program takes {spent / needed:.1f} times the FLOPs of a depthwise "
            "and a pointwise step: keep the channels apart in the first step, with `feature_group_count`, or one product for each "
            "place in the window."
        )


exercise = Exercise(
    title="A separable convolution",
    stars=2,
    minutes=12,
    why="Neighbors first, channels after: two small sums in place of one large one, which is what small networks are made of.",
    hints=(
        "The depthwise step is `lax.conv_general_dilated` with `feature_group_count` equal to the channels; it wants one batch axis, so "
        "merge them before and split them after. The pointwise step is `y @ pointwise`.",
        'init splits its key in two and draws `"depthwise"` of shape (3, 3, 1, channels) and `"pointwise"` of shape (channels, '
        "out_channels), both in the dtype of x. fwd converts them to the dtype of x.",
    ),
    solution=Separable,
    check=check,
)
