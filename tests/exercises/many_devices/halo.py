"""Answers to the exercise many_devices.halo."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.many_devices.halo import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


AHEAD, BACK = [(i, i + 1) for i in range(7)], [(i + 1, i) for i in range(7)]


def ring(x, axis_name):
    """The rows beside, and those of the other end of the image at its ends."""
    above = jax.lax.ppermute(x[-1:], axis_name, [(i, (i + 1) % 8) for i in range(8)])
    return above, jax.lax.ppermute(x[:1], axis_name, [(i, (i - 1) % 8) for i in range(8)])


@answers.wrong("does not go round")
def around(x, axis_name):
    above = jax.lax.ppermute(x[-1:], axis_name, [(i, (i + 1) % 8) for i in range(8)])
    below = jax.lax.ppermute(x[:1], axis_name, [((i + 1) % 8, i) for i in range(8)])
    return jnp.concatenate([above, x, below])


@answers.wrong("beyond it are to be zeros")
def edges_repeated(x, axis_name):
    me, n = jax.lax.axis_index(axis_name), jax.lax.axis_size(axis_name)
    above = jax.lax.ppermute(x[-1:], axis_name, [(i, i + 1) for i in range(n - 1)])
    below = jax.lax.ppermute(x[:1], axis_name, [(i + 1, i) for i in range(n - 1)])
    above, below = jnp.where(me == 0, x[:1], above), jnp.where(me == n - 1, x[-1:], below)
    return jnp.concatenate([above, x, below])


@answers.wrong("zeros have the dtype of `x`")
def zeros_of_floats(x, axis_name):
    me, n = jax.lax.axis_index(axis_name), jax.lax.axis_size(axis_name)
    above = jax.lax.ppermute(x[-1:], axis_name, [(i, (i + 1) % n) for i in range(n)])
    below = jax.lax.ppermute(x[:1], axis_name, [(i, (i - 1) % n) for i in range(n)])
    zeros = jnp.zeros(above.shape)
    above, below = jnp.where(me == 0, zeros, above), jnp.where(me == n - 1, zeros, below)
    return jnp.concatenate([above, x, below])


@answers.wrong("they are exchanged")
def exchanged(x, axis_name):
    above = jax.lax.ppermute(x[-1:], axis_name, AHEAD)
    below = jax.lax.ppermute(x[:1], axis_name, BACK)
    return jnp.concatenate([below, x, above])


@answers.wrong("nearest rows")
def the_far_rows(x, axis_name):
    above = jax.lax.ppermute(x[:1], axis_name, AHEAD)
    below = jax.lax.ppermute(x[-1:], axis_name, BACK)
    return jnp.concatenate([above, x, below])


@answers.wrong("are enough. Send the edges only")
def everything(x, axis_name):
    whole = jnp.pad(jax.lax.all_gather(x, axis_name, tiled=True), ((1, 1), (0, 0)))
    return jax.lax.dynamic_slice_in_dim(whole, 4 * jax.lax.axis_index(axis_name), 6)


@answers.wrong("one row more at each end")
def above_only(x, axis_name):
    return jnp.concatenate([jax.lax.ppermute(x[-1:], axis_name, AHEAD), x])


@answers.wrong("must be the device's own")
def reversed_rows(x, axis_name):
    above = jax.lax.ppermute(x[-1:], axis_name, AHEAD)
    below = jax.lax.ppermute(x[:1], axis_name, BACK)
    return jnp.concatenate([above, x[::-1], below])


@answers.wrong("raised IndexError")
def too_far(x, axis_name):
    return x[jnp.arange(3)].at[[0][1]].get()


@answers.wrong("no axis of the name")
def another_name(x, axis_name):
    above = jax.lax.ppermute(x[-1:], "data", AHEAD)
    below = jax.lax.ppermute(x[:1], "data", BACK)
    return jnp.concatenate([above, x, below])


@answers.wrong("no axis of the name")
def size_of_another_axis(x, axis_name):
    n = jax.lax.axis_size("devices")
    above = jax.lax.ppermute(x[-1:], axis_name, [(i, i + 1) for i in range(n - 1)])
    below = jax.lax.ppermute(x[:1], axis_name, [(i + 1, i) for i in range(n - 1)])
    return jnp.concatenate([above, x, below])


@answers.wrong("zeros have the dtype of `x`")
def zeros_of_integers(x, axis_name):
    above, below = ring(x, axis_name)
    zeros, me = jnp.zeros(above.shape, int), jax.lax.axis_index(axis_name)
    return jnp.concatenate([jnp.where(me == 0, zeros, above), x, jnp.where(me == 7, zeros, below)])


@answers.wrong("zeros have the dtype of `x`")
def mask_of_integers(x, axis_name):
    above, below = ring(x, axis_name)
    me = jax.lax.axis_index(axis_name)
    return jnp.concatenate([above * jnp.minimum(me, 1), x, below * jnp.minimum(7 - me, 1)])


@answers.wrong("with channels")
def rows_without_their_axis(x, axis_name):
    above = jax.lax.ppermute(x[-1], axis_name, AHEAD)
    below = jax.lax.ppermute(x[0], axis_name, BACK)
    return jnp.vstack([above, x, below])


@answers.wrong("with channels")
def padded_two_axes(x, axis_name):
    x = jnp.pad(x, ((1, 1), (0, 0)))
    x = x.at[0].set(jax.lax.ppermute(x[-2], axis_name, AHEAD))
    return x.at[-1].set(jax.lax.ppermute(x[1], axis_name, BACK))


@answers.wrong("with channels")
def rows_by_reshape(x, axis_name):
    above = jax.lax.ppermute(x[-1].reshape(1, -1), axis_name, AHEAD)
    below = jax.lax.ppermute(x[0].reshape(1, -1), axis_name, BACK)
    return jnp.concatenate([above, x, below])


@answers.wrong("with channels")
def two_names_for_the_shape(x, axis_name):
    rows, width = x.shape
    result = jnp.zeros((rows + 2, width), x.dtype).at[1:-1].set(x)
    result = result.at[0].set(jax.lax.ppermute(x[-1], axis_name, AHEAD))
    return result.at[-1].set(jax.lax.ppermute(x[0], axis_name, BACK))


@answers.wrong("with channels")
def all_in_rows_of_numbers(x, axis_name):
    x = x.reshape(len(x), -1)
    above, below = jax.lax.ppermute(x[-1:], axis_name, AHEAD), jax.lax.ppermute(x[:1], axis_name, BACK)
    return jnp.concatenate([above, x, below])


@answers.wrong("with channels")
def always_four_rows(x, axis_name):
    above, below = jax.lax.ppermute(x[3:4], axis_name, AHEAD), jax.lax.ppermute(x[:1], axis_name, BACK)
    return jnp.concatenate([above, x, below])


@answers.wrong("infinity times 0")
def product_with_a_mask(x, axis_name):
    above, below = ring(x, axis_name)
    me = jax.lax.axis_index(axis_name)
    return jnp.concatenate([above * (me > 0), x, below * (me < 7)])


@answers.wrong("infinity times 0")
def product_with_a_mask_of_the_same_dtype(x, axis_name):
    above, below = ring(x, axis_name)
    me = jax.lax.axis_index(axis_name)
    first, last = (me == 0).astype(x.dtype), (me == 7).astype(x.dtype)
    return jnp.concatenate([(1 - first) * above, x, (1 - last) * below])


@answers.wrong("infinity times 0")
def zeros_by_a_product(x, axis_name):
    above, below = ring(x, axis_name)
    me = jax.lax.axis_index(axis_name)
    return jnp.concatenate([jnp.where(me == 0, 0 * x[:1], above), x, jnp.where(me == 7, 0 * x[-1:], below)])


@answers.wrong("infinity times 0")
def zeros_by_a_difference(x, axis_name):
    above, below = ring(x, axis_name)
    me = jax.lax.axis_index(axis_name)
    return jnp.concatenate(
        [jnp.where(me == 0, above - above, above), x, jnp.where(me == 7, x[:1] - x[:1], below)]
    )


@answers.right
def masked(x, axis_name):
    me = jax.lax.axis_index(axis_name)
    above = jax.lax.ppermute(x[-1:], axis_name, [(i, (i + 1) % 8) for i in range(8)])
    below = jax.lax.ppermute(x[:1], axis_name, [(i, (i - 1) % 8) for i in range(8)])
    return jnp.concatenate([jnp.where(me > 0, above, 0), x, jnp.where(me < 7, below, 0)])


@answers.right
def padded(x, axis_name):
    x = jnp.pad(x, ((1, 1), *((0, 0),) * (x.ndim - 1)))
    x = x.at[0].set(jax.lax.ppermute(x[-2], axis_name, AHEAD))
    return x.at[-1].set(jax.lax.ppermute(x[1], axis_name, BACK))


@answers.right
def stacked(x, axis_name):
    above, below = jax.lax.ppermute(x[-1:], axis_name, AHEAD), jax.lax.ppermute(x[:1], axis_name, BACK)
    return jnp.vstack([above, x, below])


@answers.right
def zeros_where_there_is_nobody(x, axis_name):
    above, below = ring(x, axis_name)
    me = jax.lax.axis_index(axis_name)
    above = jax.lax.cond(me == 0, jnp.zeros_like, lambda row: row, above)
    below = jax.lax.cond(me == 7, jnp.zeros_like, lambda row: row, below)
    return jnp.concatenate([above, x, below])


@answers.right
def into_zeros(x, axis_name):
    result = jnp.zeros((len(x) + 2, *x.shape[1:]), x.dtype)
    result = result.at[0].set(jax.lax.ppermute(x[-1], axis_name, AHEAD)).at[1:-1].set(x)
    return result.at[-1].set(jax.lax.ppermute(x[0], axis_name, BACK))
