"""Find the out-of-bounds bug."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.checking.programs import fresh, under


def solution(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return jnp.where(known[:, None], table[ids], 0)


def check(lookup):
    numbers = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    table, everything = jax.device_put((numbers, np.arange(-5, 6, dtype=np.int32)))
    recognise = [
        (
            lambda table, ids: table[ids],
            "Ids out of bounds get the rows of others: too large an id is clamped to the last row, and a negative "
            "one counts from the end.",
        ),
        (
            lambda table, ids: table.at[ids].get(mode="fill", fill_value=0),
            "Negative ids still get a row: an index from -len to -1 is not out of bounds, it counts from the end, "
            "and `mode` never sees it unless you add `wrap_negative_indices=False`.",
        ),
        (
            take,
            'Ids that are too large give NaN, which is how `jnp.take` and `mode="fill"` mark them.',
        ),
        (
            upper,
            "Negative ids still get a row: they are smaller than `len(table)`, and count from the end.",
        ),
        (lower, "Ids that are too large still get a row: they are clamped to the last one."),
        (off_by_one, "The id `len(table)` is out of bounds, as the last row is `len(table) - 1`."),
        (
            lambda table, ids: jnp.take(table, ids, axis=0, mode="clip"),
            "Ids out of bounds still get a row: `clip` takes the nearest, the first or the last.",
        ),
        (
            lambda table, ids: jnp.where(solution(jnp.ones_like(table), ids) > 0, table[ids], jnp.nan),
            "You found the ids out of bounds, but their rows should be zeros, not NaN.",
        ),
        (no_zero, "The id 0 is a row like any other: the first."),
        (no_last, "The id `len(table) - 1` is a row like any other: the last."),
        (
            lambda table, ids: table[ids % len(table)],
            "`%` brings every id into the table, so those out of bounds get the rows of others.",
        ),
        (
            lambda table, ids: jnp.where((ids == -1)[:, None], 0, fill(table, ids)),
            "Of the negative ids only -1 gets zeros: the others still count from the end.",
        ),
    ]
    drawn = inputs.together(
        lambda draw: (
            draw(inputs.arrays(n := draw(inputs.one_of(1, 3)), 2)),
            draw(inputs.arrays({1: 4, 3: 1}[n], dtype="int32", low=-5, high=5)),
        )
    )
    checks.values(lookup, solution, examples=[(table, everything)], recognise=recognise)
    gap = jax.device_put(np.where(numbers == 1, np.float32(np.nan), numbers))
    got = lookup(gap, everything)
    if not np.isnan(np.asarray(got)[5, 0]):
        raise Failed(
            "You replace NaN after reading, so a NaN that stands in the table is lost, too; and `nan_to_num` changes "
            "infinite numbers as well. Decide by the ids which rows are zeros.",
            input={"table": gap, "ids": everything},
            got=got,
        )
    endless = jax.device_put(np.where(numbers > 4, np.float32(np.inf), numbers))
    got, expected = lookup(endless, everything), solution(endless, everything)
    if got.shape == expected.shape and np.isnan(np.asarray(got)).any():
        raise Failed(
            "You multiply the rows by 0 or 1. Where the table holds an infinite number, 0 times it is NaN: choose "
            "between two values instead.",
            input={"table": endless, "ids": everything},
            expected=expected,
            got=got,
        )
    checks.same(got, expected, input={"table": endless, "ids": everything})
    _check_other_tables(lookup, table, everything)
    jitted = checks.works_under_jit(lookup, table, everything)
    checks.values(jitted, jax.jit(solution), drawn, recognise=recognise)


def _check_other_tables(lookup, table, everything):
    dtypes = {
        jnp.bfloat16: "an array that is made without a dtype is float32.",
        jnp.int32: "`0.0` is a weak float, and turns whole numbers into floating ones; 0 does not.",
    }
    expected = np.asarray(solution(table, everything))
    for dtype, why in dtypes.items():
        other = jax.device_put(np.asarray(table).astype(dtype))
        got = lookup(other, everything)
        if isinstance(got, jax.Array) and got.dtype != other.dtype:
            raise Failed(
                f"A table of {other.dtype} gives rows of {got.dtype}; they should have the table's dtype. A usual "
                f"cause: {why}",
                input={"table": other, "ids": everything},
                got=got,
            )
        checks.same(
            got,
            expected.astype(dtype),
            input={"table": other, "ids": everything},
        )
    large = np.ones((20_003, 2), np.float32)
    with under("`jax.jit`"):
        got = jax.jit(fresh(lookup))(large, np.array([-1, 20_002, 20_003], np.int32))
    if (np.asarray(got)[0] != 0).any():
        raise Failed(
            f"In a table of {len(large):,} rows the id -1 gets a row. Do you send negative ids to a place that you "
            "took to be beyond the end? Ask the table for its length.",
            input="table = ones of shape (20003, 2), ids = [-1, 20002, 20003]",
            got=got,
        )
    checks.same(got, np.array([[0, 0], [1, 1], [0, 0]], np.float32), where="for a table of 20,003 rows")


def fill(table, ids):
    return table.at[ids].get(mode="fill", fill_value=0)


def take(table, ids):
    return jnp.take(table, ids, axis=0)


def upper(table, ids):
    return jnp.where((ids < len(table))[:, None], table[ids], 0)


def lower(table, ids):
    return jnp.where((ids >= 0)[:, None], table[ids], 0)


def off_by_one(table, ids):
    known = (ids >= 0) & (ids <= len(table))
    return jnp.where(known[:, None], table[ids], 0)


def no_zero(table, ids):
    known = (ids > 0) & (ids < len(table))
    return jnp.where(known[:, None], table[ids], 0)


def no_last(table, ids):
    known = (ids >= 0) & (ids < len(table) - 1)
    return jnp.where(known[:, None], table[ids], 0)


exercise = Exercise(
    title="Find the out-of-bounds bug",
    stars=2,
    minutes=10,
    why="JAX cannot raise an IndexError from inside a compiled program, so what an index out of bounds does is for "
    "you to say.",
    hints=(
        "Print `lookup(table, jnp.arange(-5, 6))` for a table of three rows, and see which ids get a row.",
        "Two things go wrong: large ids get the nearest row, and negative ones count from the end. `mode` is for the first, "
        "`wrap_negative_indices` for the second.",
        "Or work out which ids are known, `(ids >= 0) & (ids < len(table))`, and let `jnp.where` choose. Mind the shape "
        "of the mask: it needs an axis more to meet the rows.",
    ),
    solution=solution,
    check=check,
)
