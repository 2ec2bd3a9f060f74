"""A layer that multiplies each feature by a number of its own."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.layers._layers import MATRIX, compare, variables


class Scale(nn.Layer):
    def init(self, key, x):
        return {"scale": jnp.ones(x.shape[-1:], x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scale"].astype(x.dtype), non_trainables


def check(Scale):
    layer = checks.make(Scale)
    (trainables, _) = variables(layer, MATRIX, {"scale": (4,)})
    if not np.all(trainables["scale"] == 1):
        raise Failed(
            "The scale should begin at 1, so that the layer changes nothing at first.",
            got=trainables["scale"],
        )
    scale = np.array([2.0, 0.5, -1.0, 3.0])
    recognise = [(MATRIX + scale, "This adds the scale, as `Bias` does: multiply by it.")]
    compare(layer, MATRIX, {"scale": scale}, (), MATRIX * scale, recognise)
    checks.obeys_laws(layer, MATRIX)


exercise = Exercise(
    title="A layer that scales",
    stars=1,
    minutes=8,
    why="Two methods, and the layer stands beside those of the package: the same laws hold for both.",
    hints=(
        "Copy Bias. What does its init make zeros of, and which number changes nothing when one multiplies by it?",
        "The law on dtypes wants the scale in the dtype of x: `jnp.ones(shape, x.dtype)` in init, and in fwd "
        "`.astype(x.dtype)`, since the weights may be float32 while x is bfloat16.",
    ),
    solution=Scale,
    check=check,
)
