"""Turn each sequence around within its length."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(x, lengths):
    t = jnp.arange(x.shape[1])
    index = jnp.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)
    return jnp.take_along_axis(x, index[:, :, None], axis=1)


X = np.arange(1, 31, dtype=np.float32).reshape(3, 5, 2)


def _by_numpy(x, lengths):
    t, lengths = np.arange(x.shape[1]), lengths[:, None]
    return np.take_along_axis(x, np.where(t < lengths, lengths - 1 - t, t)[:, :, None], axis=1)


def check(flip):
    lengths = np.array([5, 3, 1])
    t = np.arange(5)
    clipped = np.maximum(lengths[:, None] - 1 - t, 0)
    off = np.where(t < lengths[:, None], np.minimum(lengths[:, None] - t, 4), t)
    right = _by_numpy(X, lengths)
    _compare(flip, X, lengths, [
        (X[:, ::-1], "This turns the padding around, too, which now comes first."),
        (X, "Nothing is turned around."),
        (X[:, :, ::-1], "This turns the features around: time is the axis 1."),
        (X[::-1], "This turns the batch around: time is the axis 1."),
        (np.take_along_axis(X, clipped[:, :, None], 1), "The padding should stay as it is: here it is filled with the first step."),
        (np.take_along_axis(X, (lengths[:, None] - 1 - t)[:, :, None] % 5, 1), "The padding should stay where it was: negative indices count from the end, and turn it around as well."),
        (np.take_along_axis(X, off[:, :, None], 1), "The indices are one too large: the last of `length` steps has the index `length - 1`."),
        (np.where((t < lengths[:, None])[:, :, None], right, 0), "The padding should stay as it was; here it is zero."),
    ])  # fmt: skip
    _compare(flip, X, np.array([0, 2, 4]), [])
    holes = X.copy()
    holes[1, 3], holes[2, 1] = np.nan, np.nan  # the other steps of the padding hold numbers
    got = np.asarray(flip(jax.device_put(holes), jax.device_put(lengths)))
    if got.shape != X.shape or not np.array_equal(
        got, np.where((t < lengths[:, None])[:, :, None], right, holes), equal_nan=True
    ):
        raise Failed(
            "With NaN in the padding, other steps are wrong: pick steps by an index, do not add or multiply.",
            got=got,
        )
    jitted = checks.works_under_jit(flip, jax.device_put(X), jax.device_put(np.array([5, 0, 2])))
    half = np.arange(1, 9, dtype=np.float16).reshape(1, 8, 1)
    got = jitted(jax.device_put(half), jax.device_put(np.array([7])))
    if getattr(got, "shape", None) == half.shape and got.dtype != half.dtype:
        raise Failed(f"For a float16 input the result should be float16, got {got.dtype}.", got=got)
    checks.same(
        got,
        jax.device_put(_by_numpy(half, np.array([7]))),
        input={"x": half, "lengths": np.array([7])},
    )
    ones = jax.device_put(X)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(flip(x, jax.device_put(lengths)) * ones)))(ones)
    if not np.allclose(slope, right):
        raise Failed(
            "The values are right, and their gradient is lost: a step hands its gradient back to the step it came from."
        )


def _compare(flip, x, lengths, recognise):
    given = {"x": x, "lengths": lengths}
    got = flip(jax.device_put(x), jax.device_put(lengths))
    expected = jax.device_put(_by_numpy(x, lengths))
    checks.same(got, expected, input=given, recognise=recognise)


exercise = Exercise(
    title="Reverse within the length",
    stars=2,
    minutes=12,
    why="A permutation of each sequence is one index array and one gather; turned around twice, it is the identity.",
    hints=(
        "Step t of the answer is step `length - 1 - t` of the input where t is real, and step t itself elsewhere.",
        "`jnp.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)` has the shape (batch, time); `take_along_axis` wants one axis more.",
    ),
    solution=solution,
    check=check,
)
