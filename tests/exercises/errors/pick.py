"""Answers to the exercise errors.pick."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.errors.pick import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("TracerArrayConversionError")
def broken(table, i):
    return table[i]


@answers.wrong("TracerIntegerConversionError")
def from_a_list(table, i):
    return jnp.float32(list(table)[i])


@answers.wrong("not beyond its end")
def clamps(table, i):
    return jnp.asarray(table)[i]


@answers.wrong("not beyond its end")
def wraps(table, i):
    return jnp.asarray(table)[i % len(table)]


@answers.wrong("not beyond its end")
def fills_with_zero(table, i):
    return jnp.asarray(table).at[i].get(mode="fill", fill_value=0.0)


@answers.wrong("not for all negative indices")
def never_negative(table, i):
    inside = (i >= 0) & (i < len(table))
    return jnp.where(inside, jnp.asarray(table)[i], jnp.nan)


@answers.wrong("not for all negative indices")
def one_short(table, i):
    inside = (i > -len(table)) & (i < len(table))
    return jnp.where(inside, jnp.asarray(table)[i], jnp.nan)


@answers.wrong("not before the beginning")
def clamps_below(table, i):
    return jnp.where(i < len(table), jnp.asarray(table)[i], jnp.nan)


@answers.wrong("A callback goes back to Python")
def callback(table, i):
    def look(i):
        i = np.asarray(i)
        inside = (i >= -len(table)) & (i < len(table))
        return np.where(inside, table[np.where(inside, i, 0)], np.nan).astype(np.float32)

    return jax.pure_callback(look, jax.ShapeDtypeStruct(i.shape, jnp.float32), i)


@answers.wrong("TracerBoolConversionError")
def raises(table, i):
    if i >= len(table):
        raise IndexError("no such element")
    return jnp.asarray(table)[i]


# Right ones of unusual style, and wrong ones that look right


@answers.wrong("With two axes an element is a row")
def padded(table, i):
    n = len(table)
    longer = jnp.concatenate([jnp.asarray(table), jnp.array([jnp.nan])])
    i = jnp.where(i < 0, i + n, i)
    return longer[jnp.where((i < 0) | (i >= n), n, i)]


@answers.right
def chosen_by_mask(table, i):
    inside = (-len(table) <= i) & (i < len(table))
    return jnp.where(inside.reshape(inside.shape + (1,) * (table.ndim - 1)), jnp.array(table)[i], jnp.nan)


@answers.right
def compared(table, i):
    n = len(table)
    i = jnp.asarray(i)[..., None]
    hit = (i == jnp.arange(n)) | (i == jnp.arange(-n, 0))
    found = jnp.tensordot(hit.astype(table.dtype), table, 1)
    missing = ~hit.any(axis=-1)
    return jnp.where(missing.reshape(missing.shape + (1,) * (table.ndim - 1)), jnp.nan, found)


@answers.wrong("With two axes an element is a row")
def flattened(table, i):
    return jnp.asarray(table).ravel().at[i].get(mode="fill", fill_value=jnp.nan)


answers.right(lambda table, i: jnp.take(table, i, axis=0, mode="fill", fill_value=jnp.nan))
answers.wrong("With two axes an element is a row")(
    lambda table, i: jnp.take(table, i, mode="fill", fill_value=jnp.nan)
)


@answers.wrong()
def takes_by_default_of_brackets(table, i):
    return jnp.where(i > len(table), jnp.nan, jnp.asarray(table)[i])


@answers.wrong()
def one_too_many_below(table, i):
    n = len(table)
    return jnp.where((i >= -n - 1) & (i < n), jnp.asarray(table)[i], jnp.nan)


answers.equivalent(
    "jnp.asarray(table).at[i].get(mode='fill', fill_value=jnp.nan) -> jnp.asarray(table).at[i].get(mode='fill')",
    because="for floats NaN is the default",
)
