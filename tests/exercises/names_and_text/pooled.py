"""Answers to the exercise names_and_text.pooled."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.names_and_text.pooled import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("Incompatible shapes")
def four_steps(y, lengths):
    return solution(jnp.where((jnp.arange(4) < lengths[:, None])[..., None], y, 0), lengths)


def mask(y, lengths):
    return (jnp.arange(y.shape[1]) < lengths[:, None])[..., None]


@answers.wrong("The padding is a part of both")
def plain(y, lengths):
    return jnp.concatenate([y.mean(axis=1), y.max(axis=1)], axis=-1)


@answers.wrong("The mean is divided by the time of the batch, not")
def by_time(y, lengths):
    real = mask(y, lengths)
    return jnp.concatenate(
        [jnp.where(real, y, 0).mean(axis=1), jnp.max(y, axis=1, where=real, initial=-jnp.inf)], axis=-1
    )


@answers.wrong("the zeros in the padding win")
def zeros_win(y, lengths):
    kept = jnp.where(mask(y, lengths), y, 0)
    return jnp.concatenate([kept.sum(axis=1) / jnp.maximum(lengths, 1)[:, None], kept.max(axis=1)], axis=-1)


@answers.wrong("zeros are asked for")
def minus_infinity(y, lengths):
    real = mask(y, lengths)
    mean = jnp.where(real, y, 0).sum(axis=1) / jnp.maximum(lengths, 1)[:, None]
    return jnp.concatenate([mean, jnp.where(real, y, -jnp.inf).max(axis=1)], axis=-1)


@answers.wrong("A NaN in the padding reaches the result")
def multiplies(y, lengths):
    real = mask(y, lengths)
    mean = (y * real).sum(axis=1) / jnp.maximum(lengths, 1)[:, None]
    highest = jnp.where(lengths[:, None] > 0, jnp.where(real, y, -jnp.inf).max(axis=1), 0)
    return jnp.concatenate([mean, highest], axis=-1)


@answers.wrong("The mean comes first")
def the_other_order(y, lengths):
    both = solution(y, lengths)
    half = y.shape[-1]
    return jnp.concatenate([both[:, half:], both[:, :half]], axis=-1)


@answers.wrong("come back to the dtype of `y`")
def widens(y, lengths):
    return solution(y.astype(jnp.float32), lengths)


@answers.wrong("This is the mean alone")
def mean_alone(y, lengths):
    return solution(y, lengths)[:, : y.shape[-1]]


@answers.wrong()
def no_gradient(y, lengths):
    return jax.lax.stop_gradient(solution(y, lengths))


@answers.wrong("`return` missing")
def nothing(y, lengths):
    solution(y, lengths)


# Right ones of unusual style


@answers.right
def by_vmap(y, lengths):
    def one(y, n):
        real = (jnp.arange(len(y)) < n)[:, None]
        mean = jnp.sum(y, axis=0, where=real) / jnp.maximum(n, 1).astype(y.dtype)
        return jnp.append(mean, jnp.where(n > 0, jnp.max(y, axis=0, where=real, initial=-jnp.inf), 0))

    return jax.vmap(one)(y, lengths)


@answers.right
def by_where(y, lengths):
    real = mask(y, lengths)
    safe = jnp.maximum(lengths, 1)[:, None].astype(y.dtype)
    mean = jnp.sum(y, axis=1, where=real) / safe
    highest = jnp.max(y, axis=1, where=real, initial=jnp.finfo(y.dtype).min)
    return jnp.hstack([mean, jnp.where(lengths[:, None] > 0, highest, jnp.zeros_like(highest))])


@answers.wrong("low enough for the padding")
def low_enough(y, lengths):
    real = mask(y, lengths)
    low = jnp.where(real, y, -100).max(axis=1)
    mean = jnp.where(real, y, 0).sum(axis=1) / jnp.maximum(lengths, 1)[:, None]
    return jnp.concatenate([mean, jnp.where(lengths[:, None] > 0, low, 0)], axis=-1).astype(y.dtype)


@answers.wrong("A NaN in a real step")
def makes_numbers_of_nans(y, lengths):
    y, real = jnp.nan_to_num(y), mask(y, lengths)
    mean = (y * real).sum(axis=1) / jnp.maximum(lengths, 1)[:, None].astype(y.dtype)
    highest = jnp.max(y, axis=1, where=real, initial=-jnp.inf)
    return jnp.concatenate([mean, jnp.where(lengths[:, None] > 0, highest, 0)], axis=-1)


@answers.wrong("A NaN in a real step")
def skips_nans(y, lengths):
    y = jnp.where(mask(y, lengths), y, jnp.nan)
    some = lengths[:, None] > 0
    y = jnp.where(some[:, None], y, 0)
    return jnp.where(some, jnp.concatenate([jnp.nanmean(y, axis=1), jnp.nanmax(y, axis=1)], axis=-1), 0)


@answers.wrong("Infinity in the padding changes")
def without_nans(y, lengths):
    y, real = jnp.where(jnp.isnan(y), 0, y), mask(y, lengths)
    mean = (y * real).sum(axis=1) / jnp.maximum(lengths, 1)[:, None].astype(y.dtype)
    highest = jnp.max(y, axis=1, where=real, initial=-jnp.inf)
    return jnp.concatenate([mean, jnp.where(lengths[:, None] > 0, highest, 0)], axis=-1)


answers.equivalent("-1 -> 1", because="mean and maximum have two axes each, and the last one is axis 1")
