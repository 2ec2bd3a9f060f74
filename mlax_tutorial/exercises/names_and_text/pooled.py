"""The mean and the maximum over the real steps."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(y, lengths):
    real = (jnp.arange(y.shape[1]) < lengths[:, None])[..., None]
    y = jnp.where(real, y, 0)
    mean = y.sum(axis=1) / jnp.maximum(lengths, 1)[:, None]
    lowest = jnp.asarray(-jnp.inf, y.dtype)
    highest = jnp.where(real, y, lowest).max(axis=1)
    return jnp.concatenate([mean, jnp.where((lengths > 0)[:, None], highest, 0)], axis=-1)


Y = -np.arange(1, 25, dtype=np.float32).reshape(3, 4, 2) % 13 - 14  # all negative


def check(pooled):
    lengths = np.array([4, 2, 1])
    real = (np.arange(4) < lengths[:, None])[..., None]
    zeroed = np.where(real, Y, 0)
    mean, most = zeroed.sum(axis=1) / lengths[:, None], np.where(real, Y, -np.inf).max(axis=1)
    given = {"y": Y, "lengths": lengths}
    got = pooled(*map(jax.device_put, (Y, lengths)))
    wrong = [
        (np.concatenate([Y.mean(axis=1), Y.max(axis=1)], 1), "The padding is a part of both: this is the plain mean and the plain maximum."),
        (np.concatenate([zeroed.mean(axis=1), most], 1), "The mean is divided by the time of the batch, not by each length."),
        (np.concatenate([zeroed.mean(axis=1), zeroed.max(axis=1)], 1), "The mean is divided by the time of the batch; and the zeros of the padding take part in the maximum."),
        (np.concatenate([mean, zeroed.max(axis=1)], 1), "The maximum is 0 where all real numbers are negative: the zeros in the padding win. Put -inf there."),
        (np.concatenate([most, mean], 1), "The mean comes first, then the maximum."),
        (mean, "This is the mean alone: the maximum goes beside it."),
    ]  # fmt: skip
    checks.same(
        got,
        jnp.asarray(np.concatenate([mean, most], 1), jnp.float32),
        input=given,
        rtol=1e-4,
        atol=1e-4,
        recognise=wrong,
    )
    got = pooled(jax.device_put(1e5 * Y), jax.device_put(lengths))
    wanted = jnp.asarray(1e5 * np.concatenate([mean, most], 1), jnp.float32)
    if not np.allclose(got, wanted, rtol=1e-4):
        raise Failed(
            "Where all real numbers are below -1,000,000, the result is wrong: no number but -inf is low enough for the padding.",
            expected=wanted,
            got=got,
        )
    jitted = checks.works_under_jit(pooled, jax.device_put(Y), jax.device_put(np.array([4, 0, 3])))
    got = np.asarray(jitted(Y, np.array([4, 0, 3])))
    if got[1].any():
        raise Failed(
            "For a length of 0 there is no mean and no maximum: zeros are asked for.",
            input={"lengths": np.array([4, 0, 3])},
            got=got,
        )
    lost = np.where(real, Y, np.nan)
    got = np.asarray(pooled(*map(jax.device_put, (lost, lengths))))
    if np.isnan(got).any():
        raise Failed(
            "A NaN in the padding reaches the result: zero times NaN is NaN. Choose with `jnp.where`, or by the argument `where=` of a reduction.",
            input={"y": lost, "lengths": lengths},
            got=got,
        )
    wanted = np.concatenate([mean, most], 1)
    for held, name in ((np.nan, "NaN"), (np.inf, "Infinity"), (-np.inf, "Minus infinity")):
        held = np.where(real, Y, np.float32(held))
        got = np.asarray(pooled(*map(jax.device_put, (held, lengths))))
        if not np.allclose(got, wanted, rtol=1e-4):
            raise Failed(
                f"{name} in the padding changes the result: what the padding holds has no influence.",
                input={"y": held, "lengths": lengths}, expected=wanted, got=got,
            )  # fmt: skip
    held = Y.copy()
    held[1, 0, 1] = np.nan
    wanted[1, 1::2] = np.nan
    got = np.asarray(pooled(*map(jax.device_put, (held, lengths))))
    if not np.allclose(got, wanted, rtol=1e-4, equal_nan=True):
        raise Failed(
            "A NaN in a real step does not come through to the mean and the maximum of its feature, and to these alone. Choose by "
            "the lengths, not by what is NaN: a NaN that is hidden is not found.",
            input={"y": held, "lengths": lengths}, expected=wanted, got=got,
        )  # fmt: skip
    gradient = jax.jit(jax.grad(lambda y: pooled(y, jnp.array([4, 2, 0])).sum()))(
        np.where((np.arange(4) < np.array([4, 2, 0])[:, None])[..., None], Y, np.nan)
    )
    wanted = jax.grad(lambda y: solution(y, jnp.array([4, 2, 0])).sum())(jnp.asarray(Y))
    if not np.allclose(gradient, wanted, atol=1e-5):
        raise Failed(
            "With NaN in the padding, or a length of 0, the gradient is wrong: it should reach the real steps, and be 0 elsewhere.",
            expected=wanted,
            got=gradient,
        )
    half = pooled(jnp.asarray(Y[:2, :3], jnp.bfloat16), jnp.array([3, 2]))
    if half.dtype != jnp.bfloat16:
        raise Failed(
            f"For bfloat16 the result should be bfloat16, got {half.dtype}: come back to the dtype of `y`.",
            got=half,
        )


exercise = Exercise(
    title="Pool over the real steps",
    stars=2,
    minutes=10,
    why="A padded batch and its sequences alone now give the same numbers, whatever stands in the padding.",
    hints=(
        "A mask of shape (batch, time, 1): `(jnp.arange(y.shape[1]) < lengths[:, None])[..., None]`.",
        "For the mean put 0 into the padding, and divide the sum by the length, at least 1. For the maximum put `-jnp.inf`, and then 0 where a length is 0.",
    ),
    solution=solution,
    check=check,
)
