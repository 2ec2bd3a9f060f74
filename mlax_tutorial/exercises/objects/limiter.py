"""Theirs to functions: an object with state as a layer."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.layers._layers import MATRIX, compare, subject, variables


class Limiter(nn.Layer):
    def init(self, key, x):
        ones = jnp.ones(x.shape[-1:], x.dtype)
        return {"gain": ones}, {"largest": ones}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        largest = non_trainables["largest"]
        y = trainables["gain"].astype(x.dtype) * x / largest.astype(x.dtype)
        if not inference_mode:
            seen = jnp.abs(x).reshape(-1, x.shape[-1]).max(axis=0)
            largest = jnp.maximum(largest, seen.astype(largest.dtype))
        return y, {"largest": largest}


def check(Limiter):
    layer = checks.make(Limiter)
    made = variables(layer, MATRIX, {"gain": (4,)}, {"largest": (4,)})
    for name, leaf in [("gain", made[0]["gain"]), ("largest", made[1]["largest"])]:
        if not np.all(np.asarray(leaf) == 1):
            raise Failed(f"`{name}` begins at 1 in the object, and should here.", got=leaf)
    gain, largest = np.array([2.0, 1.0, -1.0, 3.0], np.float32), np.array([2.0, 2.0, 0.5, 4.0], np.float32)
    seen = np.maximum(largest, np.abs(MATRIX).max(axis=0))
    recognise = [
        (gain * MATRIX / seen, "This divides by the new largest value. The object divides first, and looks at x afterwards."),
        (gain * MATRIX, "This does not divide by `largest`."),
        (MATRIX / largest, "This does not multiply by `gain`."),
    ]  # fmt: skip
    compare(layer, MATRIX, {"gain": gain}, {"largest": largest}, gain * MATRIX / largest, recognise)
    arguments = jax.device_put((MATRIX, {"gain": gain}, {"largest": largest}))
    _state(subject(layer).fwd(*arguments)[1], seen, largest, "in training")
    _state(subject(layer).fwd(*arguments, inference_mode=True)[1], largest, seen, "in inference")
    half = jax.ShapeDtypeStruct(MATRIX.shape, jnp.float16)
    kept = jax.eval_shape(subject(layer).fwd, half, *arguments[1:])[1]["largest"]
    if kept.dtype != jnp.float32:
        raise Failed(
            f"The new state has the dtype of the old one: here float32 for a float16 input, got {kept.dtype}."
        )
    checks.obeys_laws(layer, MATRIX)
    _dtypes(layer, half, *arguments)
    narrow = {"gain": gain[:3]}, {"largest": largest[:3]}
    compare(layer, MATRIX[:, :3], *narrow, (gain * MATRIX / largest)[:, :3])


def _dtypes(layer, half, x, trainables, non_trainables):
    """Where x is narrower than the state, and where the state is narrower than x."""
    got = jax.eval_shape(subject(layer).fwd, half, trainables, non_trainables)[0].dtype
    if got != half.dtype:
        raise Failed(
            f"The output has the dtype of x: for a float16 input and a state of float32 it is {got}."
        )
    state = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), non_trainables)
    got = jax.eval_shape(subject(layer).fwd, x, trainables, state)[1]["largest"].dtype
    if got != jnp.bfloat16:
        raise Failed(
            f"The new state should have the dtype that the old one has: for a state of bfloat16 and a float32 input it is {got}. Convert what was seen in x."
        )


def _state(got, expected, other, when):
    if not isinstance(got, dict) or set(got) != {"largest"} or np.shape(got["largest"]) != (4,):
        raise Failed('`fwd` should return y and `{"largest": …}` with a number for each feature.', got=got)
    if np.allclose(got["largest"], expected):
        return
    said = f"`largest` is wrong after a call {when}."
    if np.allclose(got["largest"], other):
        said = {
            "in training": "`largest` is not updated: `fwd` returns the non_trainables as they came.",
            "in inference": "`largest` is updated in inference, too: look at `inference_mode`.",
        }[when]
    raise Failed(said, expected=expected, got=jax.tree.map(np.asarray, got["largest"]))


exercise = Exercise(
    title="Theirs to functions",
    stars=2,
    minutes=12,
    why="Sorting attributes into three kinds is all there is to it, and the laws then find what the object hid: dtypes, batches, order.",
    hints=(
        "What is assigned in `__call__` is a non-trainable: take it from `non_trainables`, and return the new one.",
        "`training` is `not inference_mode`. Cast `gain` and `largest` to `x.dtype` where y is computed, and keep the dtype of `largest` in the state.",
    ),
    solution=Limiter,
    check=check,
)
