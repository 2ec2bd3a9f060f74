"""A convolution of slices and one product."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.convolution._reference import convolve, waves
from mlax_tutorial.exercises.layers._layers import compare, drawn, outlines, subject, variables

# Laws whose programs take long to compile, or that the values below show already.
COSTLY = {
    "a reused key is caught",
    "batch equals loop",
    "finite in half precision",
    "gradients",
    "init sharded",
    "keys used once",
    "scan and checkpoint",
    "shard_map",
}


class PatchConv(nn.Layer):
    out_channels: int
    size: int

    def init(self, key, x):
        shape = (self.size, self.size, x.shape[-1], self.out_channels)
        return {"kernel": jax.nn.initializers.lecun_normal()(key, shape, x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        height, width = x.shape[-3] - self.size + 1, x.shape[-2] - self.size + 1
        taps = [x[..., i : i + height, j : j + width, :] for i in range(self.size) for j in range(self.size)]
        kernel = trainables["kernel"].astype(x.dtype).reshape(-1, self.out_channels)
        return jnp.concatenate(taps, axis=-1) @ kernel, non_trainables


def check(PatchConv):
    layer, x = checks.make(PatchConv, 3, 2), waves(2, 4, 5, 2)
    variables(layer, x, {"kernel": (2, 2, 2, 3)}, made=outlines(layer, x))
    large, images = checks.make(PatchConv, 16, 2), np.zeros((1, 3, 3, 30), np.float32)
    made, _ = variables(large, images, {"kernel": (2, 2, 30, 16)})
    kernel = waves(2, 2, 2, 3)
    recognise = [
        (convolve(x, kernel[::-1, ::-1]), "This rotates the kernel by 180 degrees: slide it as it is."),
        (
            convolve(x, kernel.swapaxes(0, 1)),
            "Rows and columns of the window are swapped: in the kernel the rows come first, so let `i` be the outer loop.",
        ),
        (convolve(x, kernel.reshape(2, 4, 3).swapaxes(0, 1).reshape(2, 2, 2, 3)), _ORDER),
    ]
    y, _ = subject(layer).fwd(*jax.device_put((x, {"kernel": kernel}, ())))
    if jnp.shape(y) == (2, 4, 5, 3):
        raise Failed(
            "The output is as large as the input: no padding is wanted here, so a window of 2 fits into 4 rows 3 times."
        )
    compare(layer, x, {"kernel": kernel}, (), convolve(x, kernel), recognise)
    program = str(jax.make_jaxpr(layer.fwd)(x, {"kernel": kernel}, ()))
    if "conv_general_dilated" in program:
        raise Failed(
            "The numbers are right, but this asks for `conv_general_dilated`: use slices and a product."
        )
    _single(checks.make(PatchConv, 1, 3))
    fwd = lambda x, kernel: layer.fwd(x, {"kernel": kernel}, ())[0]  # noqa: E731
    checks.gradients(fwd, None, *jax.device_put((x, kernel)), argnums=(0, 1), jit=True)
    wanted = "draw it with lecun_normal in the shape (size, size, in, out), so that the initializer finds the inputs"
    drawn(made["kernel"], 'trainables["kernel"]', 1 / np.sqrt(2 * 2 * 30), wanted)
    checks.obeys_laws(large, images, but=COSTLY)  # whose kernel has been drawn already


def _single(layer):
    """Axes of length 1 stay, and so do the places of a window as large as the image."""
    x, kernel = waves(1, 3, 3, 1), waves(3, 3, 1, 1)
    compare(layer, x, {"kernel": kernel}, (), convolve(x, kernel))


_ORDER = (
    "The numbers of a patch stand in another order than those of the kernel: rows of the window first, then columns, then "
    "channels. Joined along the last axis, whole slices have this order."
)

exercise = Exercise(
    title="A convolution of slices and one product",
    stars=2,
    minutes=12,
    why="A convolution is a matrix product in which many rows share their numbers; that is how most libraries compute it.",
    hints=(
        "There are `x.shape[-3] - size + 1` rows of outputs. For each (i, j) in the window, take the slice of x that lies under this "
        "weight, as large as the output; join all of them along the last axis.",
        "`jnp.concatenate(slices, axis=-1) @ kernel.reshape(-1, self.out_channels)`, with the kernel in the dtype of x.",
    ),
    solution=PatchConv,
    check=check,
)
