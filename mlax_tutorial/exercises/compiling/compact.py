"""The positive elements first."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under


def solution(x, size):
    count = jnp.sum(x > 0)
    places = jnp.flatnonzero(x > 0, size=size)
    return jnp.where(jnp.arange(size) < count, x[places], 0), count


def _expected(x, size):
    """By NumPy: the first part and the second."""
    found = np.asarray(x)[np.asarray(x) > 0]
    first = np.zeros(size, x.dtype)
    first[: min(size, len(found))] = found[:size]
    return first, len(found)


def check(compact):
    x = jax.device_put(np.float32([3, -1, 5, -2, 0, 1]))
    asked = "Return a pair: the positive elements, and how many there are."
    got = checks.returned(compact(x, 4), "positive elements", "number", asked=asked)
    first = jax.device_put(np.float32([np.inf, -np.inf, 5, np.nan, 0, 1]))
    eagerly = "without `jax.jit`"  # of the first case's size: what ran there is not compiled again
    cases = [
        ("", x, 4),
        ("one place for each", x, 3),
        ("more positive elements than places", x, 2),
        ("more places than elements", x, 8),
        ("no positive element", jax.device_put(-np.abs(x)), 3),
        ("only positive elements", jax.device_put(np.float32([2, 1, 3, 6, 5, 4])), 8),
        ("infinity first", first, 8),
        ("infinity last", jax.device_put(np.float32([3, -np.inf, 5, np.nan, 0, np.inf])), 8),
        (f"{eagerly}, infinity first", first, 4),
        (f"{eagerly}, more than places", jax.device_put(np.float32([2, 1, 3, 6, 5, 4])), 4),
        ("whole numbers", jax.device_put(np.int32([-1, 7, 2])), 3),
        ("half precision", jax.device_put(np.array([2, -1, 1.5], jnp.bfloat16)), 3),
    ]
    jitted = jax.jit(fresh(compact), static_argnums=1)
    for text, x, size in cases:
        if eagerly in text:
            values, count = compact(x, size)
        else:
            with under("`jax.jit`"):
                values, count = got if not text else jitted(x, size)
        expected, number = _expected(x, size)
        shown = {"x": x, "size": size}
        if jnp.shape(values) == expected.shape and values.dtype == x.dtype:
            _recognise(values, expected, x, shown)
        checks.same(values, expected, input=shown, where="in the first part")
        if not isinstance(count, jax.Array) or not jnp.issubdtype(count.dtype, jnp.integer) or count.shape:
            raise Failed(
                "The second part should be an integer array of shape (), such as `jnp.sum` gives of Booleans.",
                got=count,
            )
        if int(count) != number:
            clipped = int(count) == min(number, size)
            why = (
                "Count *all* positive elements, those that are dropped, too."
                if clipped
                else "The count is wrong."
            )
            raise Failed(
                f"{why} ({text or 'six elements, four places'})", input=shown, expected=number, got=count
            )
    checks.works_under_jit(compact, cases[0][1], 4, static_argnums=1)
    checks.traces(compact, (cases[0][1], 3), (cases[4][1], 3), exactly=1, static_argnums=1)


def _recognise(values, expected, x, shown):
    """What the left-over places hold, if not zeros; and another order."""
    got, count = np.asarray(values, np.float32), int(np.sum(np.asarray(expected) > 0))

    def holds(chosen):
        return np.array_equal(got, np.pad(chosen, (0, len(got)))[: len(got)], equal_nan=True)

    numbers = np.asarray(x, np.float32)
    if np.isnan(got).any():
        raise Failed(
            "NaN is no positive number: ask for `x > 0`, which is False there."
            if holds(numbers[~(numbers <= 0)])
            else "Infinity times 0 is NaN: do not multiply by a mask, choose with `jnp.where`.",
            input=shown,
            expected=expected,
            got=values,
        )
    if np.isinf(numbers).any() and holds(numbers[(numbers > 0) & np.isfinite(numbers)]):
        raise Failed("Infinity is positive, too.", input=shown, expected=expected, got=values)
    right = np.array_equal(got[:count], np.asarray(expected, np.float32)[:count])
    if right and got[count:].any():
        raise Failed(
            "The places that are left over should be 0. An index of -1, or one beyond the end, gives the last element, and 0 the "
            "first: put zeros there afterwards, with a mask.",
            input=shown,
            expected=expected,
            got=values,
        )
    if not right and holds(numbers[numbers >= 0]):
        raise Failed(
            "An element that is 0 is taken for positive: ask for `x > 0`.",
            input=shown,
            expected=expected,
            got=values,
        )
    if not right and np.array_equal(np.sort(got), np.sort(np.asarray(expected, np.float32))):
        raise Failed(
            "These are the right elements in another order: they keep the one that they have in `x`, and the zeros come last.",
            input=shown,
            expected=expected,
            got=values,
        )


exercise = Exercise(
    title="The positive elements first",
    stars=1,
    minutes=10,
    why="A fixed size and a true count replace every array whose length depends on values.",
    hints=(
        "`jnp.flatnonzero(x > 0, size=size)` gives places, in order, and fills up with 0. Which of them are real?",
        "The first `jnp.sum(x > 0)` are real: `jnp.arange(size) < count` is their mask.",
        "`jnp.where(mask, x[places], 0)` keeps the dtype of `x`.",
    ),
    solution=solution,
    check=check,
)
