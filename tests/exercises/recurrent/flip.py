"""Answers to the exercise recurrent.flip."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.recurrent.flip import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("turns the padding around, too, which now comes first")
def all_of_it(x, lengths):
    return x[:, ::-1]


@answers.wrong("Nothing is turned around")
def nothing_turned(x, lengths):
    return x


@answers.wrong("turns the features around")
def features(x, lengths):
    return jnp.flip(x, axis=-1)


@answers.wrong("turns the batch around")
def batch(x, lengths):
    return jnp.flip(x, axis=0)


@answers.wrong("filled with the first step")
def clips(x, lengths):
    t = jnp.arange(x.shape[1])
    index = jnp.maximum(lengths[:, None] - 1 - t, 0)
    return jnp.take_along_axis(x, index[:, :, None], axis=1)


@answers.wrong("negative indices count from the end")
def wraps(x, lengths):
    t = jnp.arange(x.shape[1])
    return jnp.take_along_axis(x, (lengths[:, None] - 1 - t)[:, :, None], axis=1)


@answers.wrong("one too large")
def off_by_one(x, lengths):
    t = jnp.arange(x.shape[1])
    index = jnp.where(t < lengths[:, None], jnp.minimum(lengths[:, None] - t, x.shape[1] - 1), t)
    return jnp.take_along_axis(x, index[:, :, None], axis=1)


@answers.wrong("here it is zero")
def zeros(x, lengths):
    t = jnp.arange(x.shape[1])
    real = t < lengths[:, None]
    index = jnp.where(real, lengths[:, None] - 1 - t, t)
    return jnp.where(real[:, :, None], jnp.take_along_axis(x, index[:, :, None], axis=1), 0)


@answers.wrong("`return` missing")
def nothing(x, lengths):
    x[:, ::-1]


@answers.wrong("Under `jax.jit`")
def loops(x, lengths):
    return jnp.stack([jnp.concatenate([row[: int(n)][::-1], row[int(n) :]]) for row, n in zip(x, lengths)])


@answers.wrong()
def multiplies(x, lengths):
    t = jnp.arange(x.shape[1])
    index = jnp.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)
    return jnp.einsum("bts,bsf->btf", jax.nn.one_hot(index, x.shape[1]), x)


@answers.wrong("do not add or multiply")
def mixes_with_the_padding(x, lengths):
    turned = jax.vmap(lambda row, n: jnp.roll(row[::-1], n, axis=0))(x, lengths)
    real = (jnp.arange(x.shape[1]) < lengths[:, None])[:, :, None]
    return turned * real + x * ~real


@answers.wrong("should be float16")
def always_float32(x, lengths):
    return by_vmap(x.astype(jnp.float32), lengths)


@answers.wrong("gradient is lost")
def no_gradient(x, lengths):
    return jax.lax.stop_gradient(by_vmap(x, lengths))


@answers.wrong()
def five_steps(x, lengths):
    t = jnp.arange(5)
    index = jnp.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)
    return jnp.take_along_axis(x, index[:, :, None], axis=1)


# Right ones of unusual style


@answers.right
def by_vmap(x, lengths):
    def one(row, n):
        t = jnp.arange(len(row))
        return row[jnp.where(t < n, n - 1 - t, t)]

    return jax.vmap(one)(x, lengths)


@answers.right
def by_roll(x, lengths):
    turned = jax.vmap(lambda row, n: jnp.roll(row[::-1], n, axis=0))(x, lengths)
    real = jnp.arange(x.shape[1]) < lengths[:, None]
    return jnp.where(real[:, :, None], turned, x)


@answers.right
def by_sorting(x, lengths):
    t = jnp.arange(x.shape[1])
    order = jnp.argsort(jnp.where(t < lengths[:, None], -t, t), axis=1)
    return x[jnp.arange(len(x))[:, None], order]


@answers.right
def by_scatter(x, lengths):
    t = jnp.arange(x.shape[1])
    index = jnp.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)
    return jnp.zeros_like(x).at[jnp.arange(len(x))[:, None], index].set(x)


@answers.right
def row_by_row(x, lengths):
    def one(each):
        row, n = each
        t = jnp.arange(len(row))
        return row[jnp.where(t < n, n - 1 - t, t)]

    return jax.lax.map(one, (x, lengths))
