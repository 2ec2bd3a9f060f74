"""Block sizes for a matrix product: legal, within VMEM, and with few bytes moved."""

import itertools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.inspection import lowers_for_tpu


def solution(m, k, n, vmem):
    def sizes(length):
        return [size for size in range(128, length + 1, 128) if length % size == 0]

    def held(bm, bk, bn):
        return 2 * 2 * (bm * bk + bk * bn + bm * bn) + 4 * bm * bn

    def moved(bm, bk, bn):
        x_reads = 1 if bk == k else n // bn
        y_reads = 1 if bk == k and bn == n else m // bm
        return 2 * (m * k * x_reads + k * n * y_reads + m * n)

    fitting = [blocks for blocks in itertools.product(sizes(m), sizes(k), sizes(n)) if held(*blocks) <= vmem]
    return min(fitting, key=lambda blocks: moved(*blocks))


def held(bm, bk, bn):
    """Bytes in VMEM: two copies of each block of bfloat16, and a float32 accumulator."""
    return 2 * 2 * (bm * bk + bk * bn + bm * bn) + 4 * bm * bn


def moved(m, k, n, bm, bk, bn):
    """Bytes between HBM and VMEM: a block is copied when its index changes from one step to the next."""
    x_reads = 1 if bk == k else n // bn
    y_reads = 1 if bk == k and bn == n else m // bm
    return 2 * (m * k * x_reads + k * n * y_reads + m * n)


def lowers(m, k, n, bm, bk, bn):
    def kernel(x_ref, y_ref, o_ref, total):
        total[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
        o_ref[...] = total[...].astype(o_ref.dtype)

    def product(x, y):
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
            grid=(m // bm, n // bn, k // bk),
            in_specs=[
                pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
                pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        )(x, y)

    shapes = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in ((m, k), (k, n))]
    return lowers_for_tpu(product, *shapes)


# m, k, n, bytes of VMEM
CASES = [
    (2048, 2048, 2048, 2**23),
    (4096, 1024, 512, 2**22),
    (1024, 4096, 1024, 2**20),
    (256, 256, 256, 2**24),
    (512, 256, 512, 393216),  # the best blocks, (128, 256, 128), fill it to the last byte
    (384, 1536, 2048, 2**21),
    (512, 2048, 512, 2**22),  # with bk == k more would be moved
]


def check(block_sizes):
    for m, k, n, vmem in CASES:
        given = {"m": m, "k": k, "n": n, "vmem": vmem}
        blocks = block_sizes(m, k, n, vmem)
        if (
            not isinstance(blocks, (tuple, list))
            or len(blocks) != 3
            or not all(hasattr(b, "__index__") for b in blocks)
        ):
            raise Failed("The result should be three whole numbers, `(bm, bk, bn)`.", input=given, got=blocks)
        blocks = tuple(int(block) for block in blocks)
        if min(blocks) < 1 or m % blocks[0] or k % blocks[1] or n % blocks[2]:
            raise Failed("Each block size should divide its length: `bm` that of m, `bk` that of k, `bn` that of n.", input=given, got=blocks)  # fmt: skip
        found = lowers(m, k, n, *blocks)
        if not found:
            raise Failed("With these blocks the product does not lower for a TPU.", input=given, got=blocks, shown=[("JAX says", found.error)])  # fmt: skip
        if any(block % 128 for block in blocks):
            raise Failed("Each block size should be a multiple of 128, as the task says. (A TPU would take other sizes for `bm` alone.)", input=given, got=blocks)  # fmt: skip
        if held(*blocks) > vmem:
            raise Failed(
                f"These blocks need {held(*blocks):,} bytes of VMEM, and there are {vmem:,}. While one block is used, the next is copied, so "
                "there are two of each input and of the output; the accumulator takes 4 bytes an element besides.",
                input=given,
                got=blocks,
            )
        least = moved(m, k, n, *solution(m, k, n, vmem))
        if moved(m, k, n, *blocks) > 1.1 * least:
            raise Failed(
                f"These blocks fit, but {moved(m, k, n, *blocks) / 1e6:.1f} MB are moved, and {least / 1e6:.1f} MB would do. Which of "
                "the three sizes says how often x is read, and which how often y?",
                input=given,
                got=blocks,
            )


exercise = Exercise(
    title="Block sizes within VMEM",
    stars=2,
    minutes=12,
    why="Large bm and bn save traffic: that is how a product too large for VMEM becomes bound by arithmetic, not by memory.",
    hints=(
        "In VMEM stand two copies of the three blocks, 2 bytes an element, and the accumulator, 4 bytes an element. x is read n / bn "
        "times, or once if bk is k; y is read m / bm times, or once if bk is k and bn is n. The result is written once.",
        "There are few candidates: multiples of 128 that divide the length. Try all with `itertools.product`, keep those that fit, "
        "and take the `min` of the bytes moved.",
    ),
    solution=solution,
    check=check,
)
