"""Shuffled epochs without repetition."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.describe import describe
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.randomness._keys import over_keys, uses_keys_once


def solution(key, examples, count):
    def order(key):
        return jax.random.permutation(key, examples)

    return jax.vmap(order)(jax.random.split(key, count))


def check(epochs):
    key = jax.random.key(0)
    got = epochs(key, 10, 4)
    checks.returns(epochs, key, 10, 4, shape=(4, 10))
    if not jnp.issubdtype(got.dtype, jnp.integer):
        raise Failed(f"The numbers of examples are integers, but the dtype is {got.dtype}.", got=got)
    rows = np.asarray(got)
    if not (np.sort(rows, axis=1) == np.arange(10)).all():
        row = next(row for row in rows if sorted(row) != list(range(10)))
        low, high = row.min(), row.max()
        if low < 0 or high > 9:
            raise Failed(
                f"Examples are numbered from 0 to 9, but there is a {low if low < 0 else high}.", got=got
            )
        raise Failed(
            "In one epoch some examples come twice, and others not at all: draw a permutation, without repetition.",
            shown=[("one epoch", describe(row))],
        )
    if (rows == rows[0]).all():
        reason = (
            "in the order of their numbers: nothing is shuffled"
            if (rows[0] == np.arange(10)).all()
            else "alike"
        )
        raise Failed(f"All epochs are {reason}.", got=got)
    if (rows == np.arange(10)).all(axis=1).any():
        raise Failed("One of the epochs is not shuffled.", got=got)
    uses_keys_once(epochs, 10, 4)
    with under("`jax.jit`"):
        checks.same(jax.jit(lambda key: epochs(key, 10, 4))(key), got, where="under `jax.jit`")
    number = 3600
    many = np.asarray(over_keys(epochs, number, 3, 4))
    codes = many @ np.array([9, 3, 1])  # one number for each order of three
    orders = np.unique(codes)
    is_order = codes[:, :, None] == orders  # (keys, epochs, orders)
    expected = number / 36
    each = [("3,600 keys", "3 examples, 4 epochs")]
    turns = ("first", "second", "third", "fourth")
    for turn, counts in zip(turns, is_order.sum(axis=0), strict=True):
        if len(orders) < 6 or np.abs(counts - 6 * expected).max() > 6 * np.sqrt(6 * expected):
            raise Failed(
                f"In the {turn} epoch not all orders are equally likely.",
                shown=[*each, ("orders come", f"{counts.min()} to {counts.max()} times; expected about 600")],
            )
    for one, other in itertools.combinations(range(4), 2):
        table = is_order[:, one].astype(int).T @ is_order[:, other].astype(int)
        if np.abs(table - expected).max() > 6.5 * np.sqrt(expected):
            raise Failed(
                f"Each epoch by itself is shuffled well, but the {turns[other]} has to do with the {turns[one]}: draw "
                "each from a key of its own.",
                shown=[
                    *each,
                    ("pairs of orders come", f"{table.min()} to {table.max()} times; expected about 100"),
                ],
            )


exercise = Exercise(
    title="Shuffled epochs without repetition",
    stars=2,
    minutes=10,
    why="All orders of all epochs come from one key: a run that is resumed knows at once where it was.",
    hints=(
        "One epoch is `jax.random.permutation(key, examples)`.",
        "Write the function for one key, and map it over `jax.random.split(key, count)`.",
    ),
    solution=solution,
    check=check,
)
