"""Answers to the exercise pallas.matmul."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.exercises.pallas.matmul import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def product(x, y, interpret, *, semantics=None, zeros=lambda k: k == 0, write=None, dtype=jnp.float32, y_map=lambda i, j, k: (k, j), block=128, sort=False, bk=None):  # fmt: skip
    (m, length), n = x.shape, y.shape[1]
    bk = bk or block

    def kernel(x_ref, y_ref, o_ref, total):
        k = pl.program_id(2)

        @pl.when(zeros(k))
        def _():
            total[...] = jnp.zeros_like(total)

        part = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
        total[...] += part.astype(dtype)

        @pl.when(write(k) if write else k == pl.num_programs(2) - 1)
        def _():
            result = total[...].astype(o_ref.dtype)
            o_ref[...] = jnp.sort(jnp.sort(result)) if sort else result

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // block, n // block, length // bk),
        in_specs=[pl.BlockSpec((block, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, block), y_map)],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((block, block), dtype)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
        interpret=interpret,
    )(x, y)


@answers.wrong("The product is NaN")
def never_zero(x, y, interpret=True):
    return product(x, y, interpret, zeros=lambda k: k < 0)


@answers.wrong("set anew at each step of k")
def always_zero(x, y, interpret=True):
    return product(x, y, interpret, zeros=lambda k: k >= 0)


@answers.wrong("the first block's product alone")
def written_too_early(x, y, interpret=True):
    return product(x, y, interpret, write=lambda k: k == 0)


@answers.wrong("Right with four steps of k, and wrong with one")
def last_step_is_three(x, y, interpret=True):
    return product(x, y, interpret, write=lambda k: k == 3)


@answers.wrong("Right with four steps of k, and wrong with one")
def from_the_third_step_on(x, y, interpret=True):
    return product(x, y, interpret, write=lambda k: k >= 3)


@answers.right
def written_at_each_step(x, y, interpret=True):
    return product(x, y, interpret, write=lambda k: k >= 0)


@answers.wrong("rounded to bfloat16 at each step")
def sums_in_bfloat16(x, y, interpret=True):
    return product(x, y, interpret, dtype=jnp.bfloat16)


@answers.wrong("does not lower for a TPU")
def narrow_blocks(x, y, interpret=True):
    return product(x, y, interpret, block=64)


@answers.wrong("The dtype of the result is wrong")
def in_float32(x, y, interpret=True):
    return product(x.astype(jnp.float32), y, interpret)


@answers.wrong("with blocks of 128 x 128 there are")
def all_of_k(x, y, interpret=True):
    return product(x, y, interpret, bk=x.shape[1])


@answers.wrong("The product is wrong")
def only_one_row_of_blocks(x, y, interpret=True):
    return product(x, y, interpret, y_map=lambda i, j, k: (j, j))


@answers.wrong("A race")
def all_parallel(x, y, interpret=True):
    return product(x, y, interpret, semantics=("parallel", "parallel", "parallel"))


@answers.wrong("There is no Pallas kernel")
def by_xla(x, y, interpret=True):
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


@answers.right
def only_k_in_order(x, y, interpret=True):
    return product(x, y, interpret, semantics=("parallel", "parallel", "arbitrary"))


@answers.right
def first_step_without_zeros(x, y, interpret=True):
    """The first product is written, not added."""

    def kernel(x_ref, y_ref, o_ref, total):
        part = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
        k = pl.program_id(2)
        total[...] = jnp.where(k == 0, part, total[...] + part)
        o_ref[...] = total[...].astype(o_ref.dtype)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype),
        grid=(x.shape[0] // 128, y.shape[1] // 128, x.shape[1] // 128),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        interpret=interpret,
    )(x, y)


@answers.right
def into_a_float32_output(x, y, interpret=True):
    """The output itself is the accumulator, in float32; rounded outside."""

    def kernel(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += jax.lax.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    result = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), jnp.float32),
        grid=(x.shape[0] // 128, y.shape[1] // 128, x.shape[1] // 128),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        interpret=interpret,
    )(x, y)
    return result.astype(x.dtype)


@answers.wrong("Put the axes last")
def k_is_not_last(x, y, interpret=True):
    """Interpreted it adds up; a TPU loses each block of the result when the next one comes."""

    def kernel(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    result = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), jnp.float32),
        grid=(x.shape[1] // 128, x.shape[0] // 128, y.shape[1] // 128),
        in_specs=[
            pl.BlockSpec((128, 128), lambda k, i, j: (i, k)),
            pl.BlockSpec((128, 128), lambda k, i, j: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda k, i, j: (i, j)),
        interpret=interpret,
    )(x, y)
    return result.astype(x.dtype)


answers.equivalent(
    "m // 128 -> m // 127",
    "n // 128 -> n // 127",
    "k // 128 -> k // 127",
    because="up to 126 times 128 both give the same, and larger matrices take too long",
)
