"""Answers to the exercise convolution.global_pool."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.convolution.global_pool import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def real(x, lengths):
    return (jnp.arange(x.shape[1]) < lengths[:, None])[..., None]


def divisor(x, lengths):
    return jnp.maximum(lengths, 1)[:, None].astype(x.dtype)


def total(x, lengths):
    return jnp.where(real(x, lengths), x, 0).sum(axis=1, dtype=jnp.float32)


@answers.wrong("averages over the padding, too")
def all_steps(x, lengths):
    return x.mean(axis=1)


@answers.wrong("it is divided by all steps")
def divides_by_all(x, lengths):
    return jnp.where(real(x, lengths), x, 0).mean(axis=1)


@answers.wrong("This is the sum over the real steps")
def only_the_sum(x, lengths):
    return jnp.where(real(x, lengths), x, 0).sum(axis=1)


@answers.wrong("NaN or infinity in the padding reaches the result")
def by_product(x, lengths):
    return (x * real(x, lengths).astype(x.dtype)).sum(axis=1) / divisor(x, lengths)


@answers.wrong("NaN or infinity in the padding reaches the result")
def mends_only_nan(x, lengths):
    clean = jnp.where(jnp.isnan(x) & ~real(x, lengths), 0, x).astype(jnp.float32)
    return ((clean * real(x, lengths)).sum(axis=1) / jnp.maximum(lengths, 1)[:, None]).astype(x.dtype)


@answers.wrong("One step too many")
def one_more(x, lengths):
    mask = (jnp.arange(x.shape[1]) <= lengths[:, None])[..., None]
    return jnp.where(mask, x, 0).sum(axis=1) / jnp.minimum(lengths + 1, x.shape[1])[:, None].astype(x.dtype)


@answers.wrong("should give zeros")
def divides_by_zero(x, lengths):
    return jnp.where(real(x, lengths), x, 0).sum(axis=1) / lengths[:, None].astype(x.dtype)


@answers.wrong("This is the maximum")
def maximum(x, lengths):
    return jnp.where(real(x, lengths), x, -jnp.inf).max(axis=1)


@answers.wrong("the result should be float16, got float32")
def always_float32(x, lengths):
    return total(x, lengths) / jnp.maximum(lengths, 1)[:, None]


@answers.wrong("above 65504, the largest float16")
def sums_in_half(x, lengths):
    return jnp.where(real(x, lengths), x, 0).sum(axis=1) / divisor(x, lengths)


@answers.wrong("above 65504, the largest float16")
def divides_wide(x, lengths):
    sums = jnp.where(real(x, lengths), x, 0).sum(axis=1)
    return (sums.astype(jnp.float32) / jnp.maximum(lengths, 1)[:, None]).astype(x.dtype)


@answers.wrong("bfloat16 has no 257")
def lengths_in_half(x, lengths):
    return (total(x, lengths) / divisor(x, lengths)).astype(x.dtype)


@answers.wrong("float16 rounds at each step")
def shares_in_half(x, lengths):
    shares = jnp.where(real(x, lengths), x, 0) / divisor(x, lengths)[:, None]
    start = jnp.zeros_like(x[:, 0])
    return jax.lax.scan(lambda mean, share: (mean + share, None), start, shares.swapaxes(0, 1))[0]


@answers.wrong("take all sizes from `x`")
def two_channels(x, lengths):
    mean = total(x, lengths) / jnp.maximum(lengths, 1)[:, None]
    return jnp.broadcast_to(mean, (len(x), 2)).astype(x.dtype)


@answers.wrong()
def by_a_loop(x, lengths):
    return jnp.stack([row[: int(length)].mean(axis=0) for row, length in zip(x, lengths)])


@answers.wrong("rounded down to integers")
def floors(x, lengths):
    return jnp.where(real(x, lengths), x, 0).sum(axis=1) // divisor(x, lengths)


@answers.wrong("not its gradient")
def no_gradient(x, lengths):
    return jnp.where(real(x, lengths), jax.lax.stop_gradient(x), 0).sum(axis=1) / divisor(x, lengths)


@answers.wrong()
def with_an_epsilon(x, lengths):
    return jnp.where(real(x, lengths), x, 0).sum(axis=1) / (lengths[:, None] + 1e-3).astype(x.dtype)


@answers.wrong("a fault in the data goes unnoticed")
def hides_nan(x, lengths):
    return (jnp.nan_to_num(x) * real(x, lengths).astype(x.dtype)).sum(axis=1) / divisor(x, lengths)


@answers.right
def by_scan(x, lengths):
    def add(total, step):
        i, now = step
        return total + jnp.where((i < lengths)[:, None], now, 0), None

    steps = jnp.arange(x.shape[1]), x.swapaxes(0, 1)
    sums, _ = jax.lax.scan(add, jnp.zeros(x[:, 0].shape, jnp.float32), steps)
    return (sums / jnp.maximum(lengths, 1)[:, None]).astype(x.dtype)


@answers.right
def by_cumsum(x, lengths):
    sums = jnp.cumsum(x, axis=1, dtype=jnp.float32)[jnp.arange(len(x)), lengths - 1]
    mean = jnp.where(lengths[:, None] > 0, sums, 0) / jnp.maximum(lengths, 1)[:, None]
    return mean.astype(x.dtype)


@answers.right
def mends_the_result(x, lengths):
    mean = total(x, lengths) / lengths[:, None]
    return jnp.where(lengths[:, None] > 0, mean, 0).astype(x.dtype)


@answers.right
def by_sum_where(x, lengths):
    mask = jnp.broadcast_to(real(x, lengths), x.shape)
    sums = jnp.sum(x, axis=1, where=mask, dtype=jnp.float32)
    return (sums / jnp.maximum(lengths, 1)[:, None]).astype(x.dtype)


@answers.right
def by_mean_where(x, lengths):  # `jnp.mean` adds up and divides in float32 by itself
    mean = jnp.mean(x, axis=1, where=real(x, lengths))
    return jnp.where(lengths[:, None] > 0, mean, 0)


@answers.right
def by_vmap(x, lengths):
    def one(steps, length):
        kept = jnp.where((jnp.arange(len(steps)) < length)[:, None], steps.astype(jnp.float32), 0)
        return kept.sum(axis=0) / jnp.maximum(length, 1)

    return jax.vmap(one)(x, lengths).astype(x.dtype)


@answers.right
def by_einsum(x, lengths):
    mask = real(x, lengths)
    weights = mask[..., 0] / jnp.maximum(lengths, 1)[:, None]
    mean = jnp.einsum("nsc,ns->nc", jnp.where(mask, x, 0), weights, preferred_element_type=jnp.float32)
    return mean.astype(x.dtype)


@answers.right
def by_segments(x, lengths):
    mask = jnp.arange(x.shape[1]) < lengths[:, None]
    owner = jnp.where(mask, jnp.arange(len(x))[:, None], len(x)).reshape(-1)
    steps = jnp.where(mask[..., None], x, 0).astype(jnp.float32).reshape(-1, x.shape[-1])
    sums = jax.ops.segment_sum(steps, owner, len(x) + 1)[:-1]
    return (sums / jnp.maximum(lengths, 1)[:, None]).astype(x.dtype)


@answers.right
@jax.jit
def jitted(x, lengths):
    return (total(x, lengths) / jnp.where(lengths == 0, 1, lengths)[:, None]).astype(x.dtype)


@answers.wrong("a fault in the data goes unnoticed")
def leaves_out_what_is_not_finite(x, lengths):
    kept = jnp.isfinite(x) & real(x, lengths)
    return (jnp.where(kept, x, 0).sum(1, dtype=jnp.float32) / jnp.maximum(lengths, 1)[:, None]).astype(
        x.dtype
    )
