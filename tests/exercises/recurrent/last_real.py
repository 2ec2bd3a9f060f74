"""Answers to the exercise recurrent.last_real."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.recurrent.last_real import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("the last step of the batch, padding or not")
def last_column(ys, lengths):
    return ys[:, -1]


@answers.wrong("one step too far")
def off_by_one(ys, lengths):
    return ys[jnp.arange(len(ys)), lengths]


@answers.wrong("counts from the end")
def wraps(ys, lengths):
    return ys[jnp.arange(len(ys)), lengths - 1]


@answers.wrong("this gives the first step, which is padding")
def clips(ys, lengths):
    return ys[jnp.arange(len(ys)), jnp.maximum(lengths - 1, 0)]


@answers.wrong("zero times NaN is NaN")
def multiplies(ys, lengths):
    mask = jnp.arange(ys.shape[1]) == lengths[:, None] - 1
    return (ys * mask[..., None]).sum(axis=1)


@answers.wrong("This adds up all real outputs")
def adds(ys, lengths):
    mask = jnp.arange(ys.shape[1]) < lengths[:, None]
    return jnp.where(mask[..., None], ys, 0).sum(axis=1)


@answers.wrong("The axis of time is still there")
def keeps_the_axis(ys, lengths):
    return jnp.take_along_axis(ys, jnp.maximum(lengths - 1, 0)[:, None, None], axis=1)


@answers.wrong("`return` missing")
def nothing(ys, lengths):
    ys[jnp.arange(len(ys)), lengths - 1]


@answers.wrong()
def python_loop(ys, lengths):
    return jnp.stack([y[int(n) - 1] if n else 0 * y[0] for y, n in zip(ys, lengths)])


@answers.wrong()
def no_gradient(ys, lengths):
    picked = ys[jnp.arange(len(ys)), lengths - 1]
    return jax.lax.stop_gradient(jnp.where(lengths[:, None] > 0, picked, 0))


@answers.wrong("should be float16")
def always_float32(ys, lengths):
    picked = ys[jnp.arange(len(ys)), lengths - 1]
    return jnp.where(lengths[:, None] > 0, picked, jnp.zeros(picked.shape))


@answers.wrong("A NaN in a real step is lost")
def hides_every_nan(ys, lengths):
    picked = jnp.nan_to_num(ys)[jnp.arange(len(ys)), lengths - 1]
    return jnp.where(lengths[:, None] > 0, picked, 0)


@answers.wrong()
def by_maximum(ys, lengths):
    """Right only where all outputs are positive."""
    mask = jnp.arange(ys.shape[1]) == lengths[:, None] - 1
    return jnp.where(mask[..., None], ys, 0).max(axis=1)


@answers.wrong()
def three_rows(ys, lengths):
    picked = ys[jnp.arange(3), lengths - 1]
    return jnp.where(lengths[:, None] > 0, picked, 0)


@answers.wrong("wrong for two sequences of 5 steps")
def four_steps(ys, lengths):
    picked = ys[jnp.arange(len(ys)), jnp.clip(lengths - 1, 0, 3)]
    return jnp.where(lengths[:, None] > 0, picked, 0)


# Right ones of unusual style


@answers.right
def by_vmap(ys, lengths):
    def one(y, n):
        return jnp.where(n > 0, jax.lax.dynamic_index_in_dim(y, n - 1, keepdims=False), 0.0)

    return jax.vmap(one)(ys, lengths)


@answers.right
def by_mask(ys, lengths):
    mask = jnp.arange(ys.shape[1]) == lengths[:, None] - 1
    return jnp.where(mask[..., None], ys, 0).sum(axis=1)


@answers.right
def by_padding(ys, lengths):
    padded = jnp.concatenate([jnp.zeros_like(ys[:, :1]), ys], axis=1)
    return padded[jnp.arange(len(ys)), lengths]


@answers.right
def filled(ys, lengths):
    outside = jnp.where(lengths > 0, lengths - 1, ys.shape[1])
    return ys.at[jnp.arange(len(ys)), outside].get(mode="fill", fill_value=0)


answers.equivalent(
    "(:, 0) -> (:, -1)",
    "(:, 0) -> (:, 1)",
    because="one step was taken, and JAX moves an index past the end to the last one",
)
