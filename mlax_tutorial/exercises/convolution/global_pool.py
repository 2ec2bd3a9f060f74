"""The mean over the steps of a sequence that are real."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(x, lengths):
    real = jnp.arange(x.shape[1]) < lengths[:, None]  # (n, steps)
    # A sum in float16 overflows, and bfloat16 has no odd length such as 257.
    wide = jnp.promote_types(x.dtype, jnp.float32)
    total = jnp.sum(jnp.where(real[..., None], x, 0), axis=1, dtype=wide)
    return (total / jnp.maximum(lengths, 1)[:, None]).astype(x.dtype)


X = np.array(
    [
        [[1.0, 2.0], [3.0, -4.0], [5.0, 9.0], [8.0, 2.0]],
        [[2.0, 8.0], [5.0, -3.0], [50.0, 60.0], [70.0, 80.0]],
        [[6.0, 5.0], [30.0, 20.0], [40.0, 10.0], [90.0, 70.0]],
    ],
    np.float32,
)
LENGTHS = np.array([4, 2, 1], np.int32)  # powers of two, so that weights and means are exact in any precision


def check(global_pool):
    x, lengths = jax.device_put(X), jax.device_put(LENGTHS)
    expected = np.stack([row[:length].mean(axis=0) for row, length in zip(X, LENGTHS)])
    real = (np.arange(4) < LENGTHS[:, None])[..., None]
    recognise = [
        (X.mean(axis=1), "This averages over the padding, too."),
        ((X * real).mean(axis=1), "The sum is right, but it is divided by all steps: divide by the length of each sequence."),
        ((X * real).sum(axis=1), "This is the sum over the real steps: divide by how many they are."),
        (expected // 1, "The means are rounded down to integers: divide with `/`."),
        (np.stack([row[: length + 1].mean(axis=0) for row, length in zip(X, LENGTHS)]), "One step too many counts: of a sequence of length 2 the steps 0 and 1 are real."),
        (np.where(real, X, -np.inf).max(axis=1), "This is the maximum; the mean is asked for."),
    ]  # fmt: skip
    got = global_pool(x, lengths)
    shown = {"input": {"x": x, "lengths": lengths}}
    checks.same(got, jax.device_put(expected), rtol=1e-4, recognise=recognise, **shown)
    checks.works_under_jit(global_pool, x, lengths)
    _ignores_what_is_there(global_pool, real)
    _empty(global_pool, x)
    _half(global_pool)


def _ignores_what_is_there(global_pool, real):
    x = jax.device_put(np.where(real, X, np.float32([np.nan, np.inf])))  # one for each channel
    got = global_pool(x, jax.device_put(LENGTHS))
    if not np.isfinite(got).all():
        raise Failed(
            "NaN or infinity in the padding reaches the result. Either times 0 is NaN: choose with `jnp.where` by the lengths, in place of a "
            "product with a mask.",
            input={"x": x, "lengths": LENGTHS},
            got=got,
        )
    slope = jax.jit(jax.grad(lambda x: jnp.sum(global_pool(x, jax.device_put(LENGTHS)))))(x)
    if not np.isfinite(slope).all() or np.any(np.where(real, 0, slope) != 0):
        raise Failed("The gradient does not ignore the padding: there it should be 0.", got=slope)
    share = np.broadcast_to(real / LENGTHS[:, None, None], X.shape).astype(np.float32)
    if not np.allclose(slope, share, rtol=1e-4):
        raise Failed(
            "The result is right, but not its gradient by x: each real step should get 1 / length. Is there a `stop_gradient`, or a "
            "division by another number?",
            expected=share,
            got=slope,
        )
    x = X.copy()
    x[0, 1, 0] = np.nan
    x = jax.device_put(x)
    got = global_pool(x, jax.device_put(LENGTHS))
    if not np.isnan(np.asarray(got)[0, 0]):
        raise Failed(
            "A NaN in a step that is *real* does not show in the result, so a fault in the data goes unnoticed: choose by the mask "
            "alone, and not by what is NaN.",
            input={"x": x, "lengths": LENGTHS},
            got=got,
        )


def _empty(global_pool, x):
    none = jax.device_put(np.array([2, 0, 4], np.int32))
    got = global_pool(x, none)
    if np.any(np.asarray(got)[1] != 0):
        raise Failed(
            "A sequence of length 0 should give zeros: divide by `jnp.maximum(lengths, 1)`, say.",
            input={"lengths": none},
            got=got,
        )


def _half(global_pool):
    """1024 times 100 is no float16, and 257 no bfloat16: the mean is both."""
    lengths = jax.device_put(np.array([1024, 257], np.int32))
    # Not under `jit`: a compiler may keep in float32 what the program rounds.
    for dtype in (jnp.float16, jnp.bfloat16):
        name, x = jnp.dtype(dtype).name, jax.device_put(np.full((2, 1024, 1), 100, dtype))
        got = global_pool(x, lengths)
        shown = {"input": f"x: 2 sequences of 1024 steps of 100, {name}; lengths: 1024 and 257", "got": got}
        if getattr(got, "shape", None) != (2, 1):
            raise Failed("This is wrong for 1024 steps and 1 channel: take all sizes from `x`.", **shown)
        if got.dtype != dtype:
            raise Failed(
                f"For {name} the result should be {name}, got {got.dtype}: end with `.astype(x.dtype)`.",
                **shown,
            )
        mean = np.asarray(got, np.float32)
        mend = "Add up and divide in float32, and only then convert the mean to the dtype of x."
        if not np.isfinite(mean).all():
            raise Failed(f"The sum of 1024 steps of 100 is above 65504, the largest float16. {mend}", **shown)
        if not np.allclose(mean, 100, rtol=2e-3):
            lost = "bfloat16 has no 257" if dtype == jnp.bfloat16 else "float16 rounds at each step"
            raise Failed(f"The mean of many steps of 100 is off in {name}: {lost}. {mend}", **shown)


exercise = Exercise(
    title="A mean that ignores padding",
    stars=2,
    minutes=8,
    why="Shapes are fixed under `jit`, lengths are not: what is padding has to be said by values, and must not leak into the result.",
    hints=(
        "`jnp.arange(x.shape[1]) < lengths[:, None]` is True where a step is real; give it a last axis to go with the channels.",
        "Half precision holds neither a large sum nor each length: add up in `jnp.promote_types(x.dtype, jnp.float32)`, by `dtype=`.",
        "`jnp.where(real[..., None], x, 0)`, summed over axis 1 in that dtype, divided by `jnp.maximum(lengths, 1)[:, None]`; then "
        "`.astype(x.dtype)`.",
    ),
    solution=solution,
    check=check,
)
