"""Answers to the exercise arrays.lookup."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.arrays.lookup import (
    exercise,
    fill,
    lower,
    no_last,
    no_zero,
    off_by_one,
    take,
    upper,
)
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("too large an id is clamped")
def trusts(table, ids):
    return table[ids]


answers.wrong("never sees it")(fill)
answers.wrong("give NaN")(take)
answers.wrong("they are smaller than `len(table)`")(upper)
answers.wrong("Ids that are too large still get a row")(lower)
answers.wrong("the last row is `len(table) - 1`")(off_by_one)
answers.wrong("a row like any other: the first")(no_zero)


@answers.wrong("You multiply the rows")
def multiplies(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return known[:, None] * table[ids]


@answers.wrong("rows of float32")
def mask(table, ids):
    rows = jnp.zeros((len(ids), table.shape[1]))
    known = (ids >= 0) & (ids < len(table))
    return rows.at[known].set(table[ids[known]])


@answers.wrong("rows of float32")
def single(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return jnp.where(known[:, None], table[ids], jnp.zeros(table.shape[1]))


@answers.wrong("rows of float32")
def float_zeros(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return jnp.where(known[:, None], table[ids], 0.0)


@answers.wrong("a mask as an index")
def sets_mask(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return table[ids].at[~known].set(0)


answers.wrong("a row like any other: the last")(no_last)


@answers.wrong("Ask the table for its length")
def thousand(table, ids):
    return table.at[jnp.where(ids < 0, 1000, ids)].get(mode="fill", fill_value=0)


@answers.wrong("brings every id into the table")
def wraps(table, ids):
    return table[ids % len(table)]


@answers.wrong("only -1 gets zeros")
def minus_one(table, ids):
    return jnp.where((ids == -1)[:, None], 0, table.at[ids].get(mode="fill", fill_value=0))


@answers.wrong("`clip` takes the nearest")
def clips(table, ids):
    return jnp.take(table, ids, axis=0, mode="clip")


@answers.wrong("You replace NaN after reading")
def nan_to_num(table, ids):
    return jnp.nan_to_num(jnp.take(table, jnp.where(ids < 0, len(table), ids), axis=0))


@answers.wrong("You replace NaN after reading")
def no_nan(table, ids):
    rows = jnp.take(table, jnp.where(ids < 0, len(table), ids), axis=0)
    return jnp.where(jnp.isnan(rows), 0, rows)


@answers.wrong("You multiply the rows")
def one_hot(table, ids):
    return jax.nn.one_hot(ids, len(table), dtype=table.dtype) @ table


@answers.wrong("Incompatible shapes for broadcasting")
def one_mask(table, ids):
    return jnp.where((ids >= 0) & (ids < len(table)), table[ids], 0)


# Right ones of unusual style, and wrong ones that look right


def known(table, ids):
    return (ids >= 0) & (ids < len(table))


@answers.right
def sent_beyond(table, ids):
    return table.at[jnp.where(ids < 0, len(table), ids)].get(mode="fill", fill_value=0)


@answers.right
def with_a_row_of_zeros(table, ids):
    padded = jnp.concatenate([table, jnp.zeros_like(table[:1])])
    return padded[jnp.where(known(table, ids), ids, len(table))]


@answers.right
def one_by_one(table, ids):
    rows = [jnp.where((0 <= i) & (i < len(table)), table[i], jnp.zeros_like(table[0])) for i in ids]
    return jnp.stack(rows)


@answers.right
def unsigned(table, ids):
    return table.at[ids.astype(jnp.uint32)].get(mode="fill", fill_value=0)


@answers.right
def without_wrapping(table, ids):
    return table.at[ids].get(mode="fill", fill_value=0, wrap_negative_indices=False)


@answers.wrong()
def without_wrapping_or_a_value(table, ids):
    return table.at[ids].get(mode="fill", wrap_negative_indices=False)


@answers.wrong()
def without_wrapping_clipped(table, ids):
    return table.at[ids].get(mode="clip", wrap_negative_indices=False)
