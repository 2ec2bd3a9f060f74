"""A NumPy table and a traced index."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.checking.guarding import original
from mlax_tutorial.checking.programs import forget, under


def solution(table, i):
    return jnp.asarray(table).at[i].get(mode="fill", fill_value=jnp.nan)


def _by_numpy(table, i):
    i = np.asarray(i)
    known = (i >= -len(table)) & (i < len(table))
    found = table[np.where(known, i, 0)]
    known = known.reshape(known.shape + (1,) * (table.ndim - 1))
    return np.asarray(np.where(known, found, np.float32(np.nan)))


def _of_rows(pick):
    """A table of two axes, whose elements are rows."""
    table = np.array([[0.5, 1.5], [4.0, 9.0], [16.0, 25.0]], np.float32)

    def compare(i):
        with under("`jax.jit(lambda i: pick(table, i))`"):
            got = jitted(i)
        checks.same(got, _by_numpy(table, i), input={"table": table, "i": i})

    forget(original(pick))
    jitted = jax.jit(lambda i: pick(table, i))
    for i in (jnp.int32(-1), jnp.array([1, -3, 5]), jnp.array([[2], [9]])):
        with checks.says(
            "This is right for a table with one axis. With two axes an element is a row, and a missing row is NaN throughout."
        ):
            compare(i)


def check(pick):
    tables = np.array([0.5, 1.5, 4.0, 9.0, 16.0], np.float32), np.array([3.0, -1.0], np.float32)
    places = (
        jnp.int32(1),
        jnp.array([0, 1, 1]),
        jnp.array([[1], [0]]),
        jnp.int32(-1),
        jnp.array([-2, -1, -1]),
        jnp.int32(7),
        jnp.array([0, 5, 100]),
        jnp.array([-1, -6, -100]),
    )
    advice = {
        3: "Inside the table this is right, but not for all negative indices: they count from the end, down to -n.",
        5: "Inside the table this is right, but not beyond its end: a missing element is NaN.",
        7: "This is right up to the end, but not before the beginning: a missing element is NaN there, too.",
    }
    for table in tables:
        forget(original(pick))
        jitted = jax.jit(lambda i, table=table: pick(table, i))
        for number, i in enumerate(places):
            where = next(
                (text for first, text in sorted(advice.items(), reverse=True) if number >= first), ""
            )
            shown = {"table": table, "i": i}
            with under("`jax.jit(lambda i: pick(table, i))`"):
                got = jitted(i)
            with checks.says(where):
                checks.same(got, _by_numpy(table, i), input=shown)
    table, i = tables[0], jnp.array([0, -1, 7])
    checks.same(pick(table, i), _by_numpy(table, i), where="without `jit`", input={"table": table, "i": i})
    with checks.says("A callback goes back to Python for each lookup: the table fits into the program."):
        checks.jaxpr(lambda i: pick(table, i), i, forbids=("pure_callback", "io_callback"))
    _of_rows(pick)


exercise = Exercise(
    title="A NumPy table and a traced index",
    stars=1,
    minutes=10,
    why="Tables of NumPy become constants of the program, and an index that does not exist shows itself as NaN.",
    hints=(
        "The error names NumPy's `__array__()`: it is the table that has to change sides.",
        "Square brackets of a JAX array never complain; `x.at[i].get(...)` takes a `mode`.",
        "`mode='fill'` with `fill_value=jnp.nan`.",
    ),
    solution=solution,
    check=check,
)
