"""The last output that is no padding."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(ys, lengths):
    last = (lengths - 1)[:, None, None]  # of a length of 0 it is any: see below
    found = jnp.take_along_axis(ys, last, axis=1)[:, 0]
    return jnp.where((lengths > 0)[:, None], found, 0)


YS = np.arange(1, 25, dtype=np.float32).reshape(3, 4, 2) * np.float32([1, -1])


def check(last_real):
    lengths = np.array([4, 2, 1])
    rows = np.arange(3)
    _compare(last_real, YS, lengths, [
        (YS[:, -1], "This is the last step of the batch, padding or not."),
        (YS[rows, np.minimum(lengths, 3)], "This is one step too far: the last of `length` steps has the index `length - 1`."),
        (np.where(np.arange(4)[:, None] < lengths[:, None, None], YS, 0).sum(axis=1), "This adds up all real outputs."),
        (YS[:, lengths - 1][:, 0], "`ys[:, lengths - 1]` takes every index for every sequence: pair the indices with their rows."),
    ])  # fmt: skip
    empty = np.array([0, 3, 0])
    wrapped, clipped = YS[rows, empty - 1], YS[rows, np.maximum(empty - 1, 0)]
    _compare(last_real, YS, empty, [
        (wrapped, "For a length of 0 the index is -1, which counts from the end: that is padding. Give zeros there."),
        (clipped, "For a length of 0 this gives the first step, which is padding. Give zeros there."),
    ])  # fmt: skip
    lost = YS.copy()
    lost[0, 1:], lost[1] = np.nan, np.nan
    got = last_real(jax.device_put(lost), jax.device_put(np.array([1, 0, 4])))
    if np.isnan(np.asarray(got)).any():
        raise Failed(
            "NaN in the padding reaches the result: zero times NaN is NaN. Choose by an index or by `jnp.where`, do not multiply by a mask.",
            input={"ys": lost, "lengths": np.array([1, 0, 4])},
            got=got,
        )
    jitted = checks.works_under_jit(last_real, jax.device_put(YS), jax.device_put(np.array([4, 2, 0])))
    lost = np.full((2, 5, 1), 3, np.float16)
    lost[0, 4] = np.nan
    got = jitted(jax.device_put(lost), jax.device_put(np.array([5, 0])))
    if getattr(got, "shape", None) == (2, 1) and got.dtype != lost.dtype:
        raise Failed(f"For float16 outputs the result should be float16, got {got.dtype}.", got=got)
    if not np.array_equal(got, [[np.nan], [0]], equal_nan=True):
        said = "This is wrong for two sequences of 5 steps and 1 feature: take all sizes from `ys`."
        if getattr(got, "shape", None) == (2, 1) and got[0, 0] == 0:
            said = "A NaN in a real step is lost. It belongs to the result: only padding should be kept out."
        raise Failed(said, input={"ys": lost, "lengths": np.array([5, 0])}, got=got)
    ys, lengths = jax.device_put(YS), jax.device_put(np.array([4, 2, 0]))
    gradient = np.asarray(jax.jit(jax.grad(lambda ys: last_real(ys, lengths).sum()))(ys))
    wanted = np.zeros_like(YS)
    wanted[0, 3], wanted[1, 1] = 1, 1
    if not np.allclose(gradient, wanted):
        raise Failed(
            "The gradient should reach the chosen steps, and no others.", expected=wanted, got=gradient
        )


def _compare(last_real, ys, lengths, recognise):
    given = {"ys": ys, "lengths": lengths}
    got = last_real(jax.device_put(ys), jax.device_put(lengths))
    expected = np.asarray(solution(jax.device_put(ys), jax.device_put(lengths)))
    if getattr(got, "shape", None) == (3, 1, 2):
        raise Failed("The axis of time is still there, with one step: take it away.", input=given, got=got)
    checks.same(got, jax.device_put(expected), input=given, recognise=recognise)


exercise = Exercise(
    title="The last real output",
    stars=2,
    minutes=10,
    why="An index for each sequence picks its last step in one gather, and the gradient goes to that step alone.",
    hints=(
        "NumPy's indexing pairs two index arrays: `ys[rows, columns]` with `rows = jnp.arange(len(ys))`.",
        "A length of 0 gives the index -1: `jnp.where(lengths[:, None] > 0, picked, 0)`.",
    ),
    solution=solution,
    check=check,
)
