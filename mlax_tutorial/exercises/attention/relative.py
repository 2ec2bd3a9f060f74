"""A learned bias for each distance."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.checking.describe import is_array
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.attention._compare import array, close, same


def solution(table, queries, keys):
    span = table.shape[1] // 2
    distance = jnp.arange(keys) - jnp.arange(queries)[:, None]
    return table[:, jnp.clip(distance, -span, span) + span]


def answer(relative_bias, table, queries, keys):
    """The bias, and the gradient of its sum."""
    bias, backward = jax.vjp(lambda table: relative_bias(table, queries, keys), table)
    return bias, backward(jnp.ones_like(bias))[0] if is_array(bias) else None


def check(relative_bias):
    table = np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [10.0, -20.0, 30.0, -40.0, 50.0]], np.float32)
    queries, keys, span = 4, 6, 2
    distance = np.arange(keys) - np.arange(queries)[:, None]
    clipped = np.clip(distance, -span, span)
    expected = table[:, clipped + span]
    recognise = [
        (table[:, -clipped + span], "The sign of the distance is wrong: it is the key's place minus the query's."),
        (table[:, clipped], "Index 0 of the table belongs to the distance -span, so `span` must be added. Negative indices count from the end."),
        (table[:, np.clip(distance + span, None, 2 * span)], "Only one end is clipped. A distance below -span becomes a negative index, which counts from the end."),
        (table[:, np.abs(clipped) + span], "Before and after are the same here: the distance has a sign."),
        (np.where(np.abs(distance) <= span, expected, 0), "Beyond the span the ends of the table are used, not zeros."),
    ]  # fmt: skip
    with under("`jax.jit`"):  # one program, where one operation after the other would be thirty
        got, gradient = jax.jit(lambda table: answer(relative_bias, table, queries, keys))(table)
    if getattr(got, "shape", None) == (queries, keys, 2):
        raise Failed(
            "The heads should be the first axis, got them as the last one: `table[:, indices]`.", got=got
        )
    array(got, (2, queries, keys), np.float32, "bias", queries=queries, keys=keys)
    same(got, expected, recognise, "bias", table=table, queries=queries, keys=keys)
    counts = np.array([(clipped == d).sum() for d in range(-span, span + 1)])
    same(gradient, np.stack([counts, counts]), name="gradient of the sum by the table")
    _other_sizes(relative_bias)


def _other_sizes(relative_bias):
    """Above there are as many heads as the span is long."""
    table, queries, keys = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], np.float32), 5, 3
    expected = table[:, np.clip(np.arange(keys) - np.arange(queries)[:, None], -1, 1) + 1]
    with under("`jax.jit`, for 3 heads and a span of 1"):
        got = jax.jit(lambda table: relative_bias(table, queries, keys))(table)
    given = {"table": table, "queries": queries, "keys": keys}
    array(got, expected.shape, np.float32, "bias for 3 heads and a span of 1", **given)
    if not close(got, expected):
        raise Failed(
            "For 3 heads and a span of 1 the bias is wrong: take the span from the number of columns, `table.shape[1] // 2`.",
            input=given,
            expected=expected,
            got=got,
        )


exercise = Exercise(
    title="A bias for each distance",
    stars=2,
    minutes=10,
    why="A table over distances has the same weights for every length, so a model may read texts longer than it was trained on.",
    hints=(
        "First a matrix of distances: `jnp.arange(keys) - jnp.arange(queries)[:, None]`. Then clip it at both ends.",
        "`span` is `table.shape[1] // 2`. Clip to -span and span, add span, and index the second axis: `table[:, indices]`.",
    ),
    solution=solution,
    check=check,
)
