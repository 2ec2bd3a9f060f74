"""Answers to the exercise gpt.prefill."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.gpt.prefill import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("each new length is compiled again")
def unpadded(read, ids, sizes):
    return read(np.array(ids, np.int32), len(ids))


@answers.wrong("where 4 are enough")
def always_the_largest(read, ids, sizes):
    return solution(read, ids, (max(sizes),))


@answers.wrong("the padding goes to the end")
def padded_in_front(read, ids, sizes):
    size = min(size for size in sizes if size >= len(ids))
    return read(np.pad(np.array(ids, np.int32), (size - len(ids), 0)), len(ids))


@answers.wrong("was told that")
def counts_the_padding(read, ids, sizes):
    size = min(size for size in sizes if size >= len(ids))
    return read(np.pad(np.array(ids, np.int32), (0, size - len(ids))), size)


@answers.wrong("ValueError")
def cuts(read, ids, sizes):
    return solution(read, ids[: max(sizes)], sizes)


@answers.wrong("may stand in any order")
def first_that_fits(read, ids, sizes):
    if len(ids) > max(sizes):
        raise ValueError("too long")
    return solution(read, ids, [next(size for size in sizes if size >= len(ids))])


@answers.wrong("was traced")
def dtype_of_its_own(read, ids, sizes):
    dtype = np.int16 if len(ids) % 2 else np.int32
    size = min(size for size in sizes if size >= len(ids))
    return read(np.pad(np.array(ids, dtype), (0, size - len(ids))), len(ids))


@answers.wrong("gets an int32 array")
def dtype_of_numpy(read, ids, sizes):
    size = min(size for size in sizes if size >= len(ids))
    return read(np.array(ids + [0] * (size - len(ids))), len(ids))


@answers.wrong("one row of ids")
def in_a_batch(read, ids, sizes):
    return solution(lambda padded, length: read(padded[None], length), ids, sizes)


@answers.wrong("one row of ids")
def length_first(read, ids, sizes):
    return solution(lambda padded, length: read(length, padded), ids, sizes)


@answers.wrong("should be zeros")
def pads_with_the_last(read, ids, sizes):
    size = min(size for size in sizes if size >= len(ids))
    return read(np.pad(np.array(ids, np.int32), (0, size - len(ids)), mode="edge"), len(ids))


@answers.wrong("was told that")
def counts_what_is_not_zero(read, ids, sizes):
    return solution(lambda padded, _: read(padded, int(np.count_nonzero(padded))), ids, sizes)


@answers.wrong("return what `read` returns.")
def nothing(read, ids, sizes):
    solution(read, ids, sizes)


@answers.wrong("Pad a copy")
def extends_the_list(read, ids, sizes):
    length = len(ids)
    size = min(size for size in sizes if size >= length)
    ids.extend([0] * (size - length))
    return read(np.array(ids, np.int32), length)


@answers.right
def by_searchsorted(read, ids, sizes):
    sizes = np.sort(sizes)
    place = np.searchsorted(sizes, len(ids))
    if place == len(sizes):
        raise ValueError("too long")
    return read(np.pad(np.array(ids, np.int32), (0, int(sizes[place]) - len(ids))), np.int32(len(ids)))


@answers.right
def in_jax(read, ids, sizes):
    size = min(size for size in sizes if size >= len(ids))
    return read(jnp.zeros(size, jnp.int32).at[: len(ids)].set(jnp.array(ids)), jnp.int32(len(ids)))
