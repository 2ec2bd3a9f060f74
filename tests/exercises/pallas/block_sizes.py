"""Answers to the exercise pallas.block_sizes."""

import itertools

from mlax_tutorial.exercises.pallas.block_sizes import exercise, moved
from tests.exercises.answers import Answers

answers = Answers(exercise)


def sizes(length, step=128):
    return [size for size in range(step, length + 1, step) if length % size == 0]


def best(m, k, n, vmem, held, moved=moved, step=128):
    tried = itertools.product(sizes(m, step), sizes(k, step), sizes(n, step))
    return min(
        (blocks for blocks in tried if held(*blocks) <= vmem), key=lambda blocks: moved(m, k, n, *blocks)
    )


@answers.wrong("two of each input")
def one_copy(m, k, n, vmem):
    return best(m, k, n, vmem, lambda a, b, c: 2 * (a * b + b * c + a * c) + 4 * a * c)


@answers.wrong("two of each input")
def no_accumulator(m, k, n, vmem):
    return best(m, k, n, vmem, lambda a, b, c: 4 * (a * b + b * c + a * c))


@answers.wrong("two of each input")
def everything(m, k, n, vmem):
    return m, k, n


@answers.wrong("would do")
def always_128(m, k, n, vmem):
    return 128, 128, 128


@answers.wrong("would do")
def long_in_k(m, k, n, vmem):
    return 128, 128 * max(1, min(k, vmem // 2048) // 128 // 2), 128


@answers.wrong("does not lower for a TPU")
def blocks_of_64(m, k, n, vmem):
    return 64, 64, 64


@answers.wrong("should be a multiple of 128")
def rows_of_eight(m, k, n, vmem):
    tried = itertools.product(sizes(m, 8), sizes(k), sizes(n))
    return min((b for b in tried if held(*b) <= vmem), key=lambda b: moved(m, k, n, *b))


@answers.wrong("should divide its length")
def square_root(m, k, n, vmem):
    return (int((vmem / 16) ** 0.5),) * 3


@answers.wrong("three whole numbers")
def one_number(m, k, n, vmem):
    return 128


@answers.wrong("would do")
def powers_of_two(m, k, n, vmem):
    tried = itertools.product(
        *([size for size in sizes(length) if size & (size - 1) == 0] for length in (m, k, n))
    )
    return min((b for b in tried if held(*b) <= vmem), key=lambda b: moved(m, k, n, *b))


@answers.wrong("would do")
def fewest_reads(m, k, n, vmem):
    def reads(m, k, n, bm, bk, bn):
        return (1 if bk == k else n // bn) + (1 if bk == k and bn == n else m // bm)

    return best(m, k, n, vmem, held, reads)


@answers.wrong("would do")
def written_at_each_step(m, k, n, vmem):
    def all_moved(m, k, n, bm, bk, bn):
        return moved(m, k, n, bm, bk, bn) + 2 * m * n * (k // bk - 1)

    return best(m, k, n, vmem, held, all_moved)


@answers.wrong()
def too_many_bytes(m, k, n, vmem):
    return m, 128, n


def held(a, b, c):
    return 4 * (a * b + b * c + a * c) + 4 * a * c


@answers.right
def finer(m, k, n, vmem):
    """bfloat16 blocks may have any multiple of 8 rows, but more choice gains little."""
    return list(best(m, k, n, vmem, held))


@answers.right
def by_intensity(m, k, n, vmem):
    """Sorted by the bytes for each operation."""
    tried = [b for b in itertools.product(sizes(m), sizes(k), sizes(n)) if held(*b) <= vmem]
    return sorted(tried, key=lambda b: (moved(m, k, n, *b), b[1]))[0]


MOVED = "2 * (m * k * x_reads + k * n * y_reads + m * n)"
answers.equivalent(
    f"{MOVED} -> {MOVED.replace('2', '1', 1)}",
    f"{MOVED} -> {MOVED.replace('2', '3', 1)}",
    "m * k * x_reads + k * n * y_reads + m * n -> m * k * x_reads + k * n * y_reads - m * n",
    "m * n -> m / n",
    because="what all blocks have in common does not change which are the best",
)
Y_READS = "1 if bk == k and bn == n else m // bm"
answers.equivalent(
    f"{Y_READS} -> 0{Y_READS[1:]}",
    f"{Y_READS} -> 2{Y_READS[1:]}",
    because="blocks that hold all of y move the least there is, and wherever they fit the search finds ones that move as little",
)
answers.equivalent(
    "length + 1 -> length + 2", because="lengths are multiples of 128, and the next one is far beyond"
)
