"""A ReLU whose negative slope is learned."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.layers._layers import MATRIX, compare, variables


class PReLU(nn.Layer):
    slope: float = 0.25

    def init(self, key, x):
        return {"slope": jnp.full(x.shape[-1:], self.slope, x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        slope = trainables["slope"].astype(x.dtype)
        return jnp.where(x > 0, x, slope * x), non_trainables


def check(PReLU):
    for begin in (None, 0.125, 0.1):  # the last one has no end in binary
        layer = checks.make(PReLU) if begin is None else checks.make(PReLU, begin)
        trainables, _ = variables(layer, MATRIX, {"slope": (4,)})
        wanted = 0.25 if begin is None else begin
        if not np.allclose(trainables["slope"], wanted):
            raise Failed(
                f"The slopes of `PReLU({'' if begin is None else begin})` should begin at {wanted}.",
                got=trainables["slope"],
            )
    slope = np.array([2.0, 0.25, -1.0, 0.0])
    recognise = [
        (np.maximum(MATRIX, slope * MATRIX), "`maximum(x, slope * x)` is right for slopes from 0 to 1, but a trained slope may leave that range: choose by the sign of x."),
        (np.where(MATRIX > 0, MATRIX, wanted * MATRIX), "The hyperparameter is used: it says only where the slopes begin. Use the trainables."),
        (slope * MATRIX, "Everything is multiplied by the slope. Choose for each number by itself, with `jnp.where`: a Python `if` chooses once for all of x."),
        (MATRIX, "Nothing is multiplied by the slope. Choose for each number by itself, with `jnp.where`: a Python `if` chooses once for all of x."),
        (np.where(MATRIX > 0, slope * MATRIX, MATRIX), "The slope multiplies what is positive: it belongs to the other side."),
        (np.where(MATRIX > 0, MATRIX, slope), "Where x is negative, the slope is a factor: multiply x by it."),
    ]  # fmt: skip
    compare(layer, MATRIX, {"slope": slope}, (), np.where(MATRIX > 0, MATRIX, slope * MATRIX), recognise)
    checks.obeys_laws(layer, MATRIX)


exercise = Exercise(
    title="An activation that learns",
    stars=2,
    minutes=10,
    why="The same word names two things, and they live apart: where a slope begins is static, what it is now is traced.",
    hints=(
        "The hyperparameter says where the slopes begin: init fills an array with it. fwd looks at the trainables alone.",
        "`jnp.full(x.shape[-1:], self.slope, x.dtype)` in init; in fwd `jnp.where(x > 0, x, slope * x)`, with the slope in "
        "the dtype of x.",
    ),
    solution=PReLU,
    check=check,
)
