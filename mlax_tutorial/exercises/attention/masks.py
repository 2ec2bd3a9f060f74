"""Padding and causality in one mask."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.attention._compare import array, same


def solution(lengths, size):
    place = jnp.arange(size)
    real = place < lengths[:, None]  # (batch, size)
    causal = place[:, None] >= place
    return causal & real[:, :, None] & real[:, None, :]


def check(batch_mask):
    lengths, size = np.array([3, 5, 0, 1]), 5
    place = np.arange(size)
    real, causal = place < lengths[:, None], place[:, None] >= place
    keys, queries = np.broadcast_to(real[:, None, :], (4, 5, 5)), np.broadcast_to(real[:, :, None], (4, 5, 5))
    expected = causal & keys & queries
    recognise = [
        (causal & keys, "A padded query sees real keys: padding has two axes, and queries of padding see nothing."),
        (keys & queries, "Queries see later keys: the causal mask is missing."),
        (causal.T & keys & queries, "Queries see *later* keys: the causal mask is transposed. Rows are queries."),
        ((place[:, None] > place) & keys & queries, "A query should see itself, too: `>=`."),
        (~expected, "This is the opposite: `True` means that a query may look."),
        (expected | np.eye(size, dtype=bool), "A padded query sees itself here, and should see nothing."),
        (causal & (place >= size - lengths[:, None])[:, None, :], "This is padding in front: here the first tokens are real, and padding is at the end."),
        (np.broadcast_to(expected[0], (4, 5, 5)), "All sentences get the mask of the first one: each has a length of its own."),
        (causal & (place < np.maximum(lengths, 1)[:, None])[:, :, None], "A sentence may have no real token at all: then no query sees anything."),
        (np.broadcast_to(causal, (4, 5, 5)), "The lengths make no difference: padding is missing."),
        (causal & (place <= lengths[:, None])[:, None, :] & (place <= lengths[:, None])[:, :, None], "One token of padding counts as real: places begin at 0, so a token is real where its place is below the length."),
    ]  # fmt: skip
    with under("`jax.jit`"):
        got = jax.jit(lambda lengths: batch_mask(lengths, size))(jnp.asarray(lengths))
    array(got, (4, size, size), name="mask", lengths=lengths, size=size)
    if got.dtype != jnp.bool_:
        raise Failed(f"The mask should be Boolean, got {got.dtype}: compare instead of multiplying.", got=got)
    same(got, expected, recognise, "mask", lengths=lengths, size=size)
    outline = jax.eval_shape(lambda lengths: batch_mask(lengths, 4), jax.ShapeDtypeStruct((7,), jnp.int32))
    if outline.shape != (7, 4, 4):
        raise Failed(f"For seven sentences of size 4 the shape should be (7, 4, 4), got {outline.shape}.")


exercise = Exercise(
    title="Padding and causality in one mask",
    stars=1,
    minutes=8,
    why="Masks are made of comparisons of places, so a program for one size serves sentences of any length.",
    hints=(
        "Which tokens are real? `jnp.arange(size) < lengths[:, None]` has the shape (batch, size). A pair may look if query "
        "and key are both real, and the key is not later.",
        "With `real` as above: `jnp.tri(size, dtype=bool) & real[:, :, None] & real[:, None, :]`.",
    ),
    solution=solution,
    check=check,
)
