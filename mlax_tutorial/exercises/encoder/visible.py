"""The mask of sequences that are packed into one row."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(segments):
    query, key = segments[..., :, None], segments[..., None, :]
    return (query == key) & (query > 0)


SEGMENTS = np.array([[1, 1, 2, 2, 2, 0], [1, 2, 2, 3, 0, 0]], np.int32)


def check(visible):
    query, key = SEGMENTS[:, :, None], SEGMENTS[:, None, :]
    same, real = query == key, (query > 0) & (key > 0)
    expected = same & real
    got = visible(jnp.asarray(SEGMENTS))
    shape = np.shape(got)
    shown = {"input": {"segments": SEGMENTS}, "expected": expected, "got": got}
    if shape in {(2, 1, 6, 6), (2, 6, 1, 6)}:
        raise Failed("There is an axis too many: the layer adds the one for the heads itself.", **shown)
    if shape == (2, 6):
        raise Failed(
            "This says of each token whether it is real. A mask says it of each pair: queries and keys.",
            **shown,
        )
    if shape == expected.shape and np.asarray(got).dtype != bool:
        raise Failed(f"The mask should be Boolean, got {np.asarray(got).dtype}.", **shown)
    wrong = [
        (same, "Padding looks at padding: 0 is no sequence. Ask that the number is above 0, too."),
        (real, "Sequences of the same row look at each other: their numbers must be equal."),
        (~expected, "This is the opposite: `True` means that a query may look at a key."),
        (expected | np.eye(6, dtype=bool), "Padding sees itself here, and should see nothing."),
        (expected & np.tri(6, dtype=bool), "This mask is causal. An encoder looks at both sides."),
        (same[:1] & real[:1] | np.zeros((2, 1, 1), bool), "All rows get the mask of the first."),
    ]
    checks.same(got, jnp.asarray(expected), input={"segments": SEGMENTS}, recognise=wrong)
    jitted = checks.works_under_jit(visible, jnp.asarray(SEGMENTS[0]))
    one = np.asarray(jitted(jnp.asarray(SEGMENTS[0])))
    if one.shape != (6, 6) or not np.array_equal(one, expected[0]):
        raise Failed(
            "A single row, without an axis for the batch, should give a mask of shape (length, length): index from the end, with `...`.",
            input={"segments": SEGMENTS[0]},
            expected=expected[0],
            got=one,
        )


exercise = Exercise(
    title="A mask for packed sequences",
    stars=1,
    minutes=8,
    why="One array of integers says all: padding, packing, and who may look at whom.",
    hints=(
        "Compare the numbers of all queries with those of all keys: `segments[..., :, None]` and `segments[..., None, :]` broadcast against each other.",
        "Two tokens of padding have equal numbers, too. So ask in addition that the number is above 0.",
    ),
    solution=solution,
    check=check,
)
