"""Answers to the exercise pallas.column_sums."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.exercises.pallas.column_sums import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def summed(
    x, interpret, mask, *, begin=True, each=False, rows=8, steps=None, out=None, length=None, forget=False
):
    columns = x.shape[1]
    steps, length = steps or pl.cdiv(len(x), rows), length or len(x)

    def kernel(x_ref, sums_ref):
        step = pl.program_id(0)

        @pl.when((step == 0) | each) if begin else (lambda _: None)
        def _():
            sums_ref[...] = jnp.zeros_like(sums_ref)

        row = rows * step + jax.lax.broadcasted_iota(jnp.int32, (rows, columns), 0)
        sums_ref[...] += mask(x_ref[...], row < length).sum(axis=0, keepdims=True)

    return pl.pallas_call(
        kernel,
        out_shape=out or jax.ShapeDtypeStruct((1, columns), x.dtype),
        grid=(steps,),
        in_specs=[pl.BlockSpec((rows, columns), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, columns), lambda i: (0, 0)),
        interpret=interpret or forget,
    )(x)


def where(block, inside):
    return jnp.where(inside, block, 0)


@answers.wrong("NaN times zero is NaN")
def unmasked(x, interpret=True):
    return summed(x, interpret, lambda block, inside: block)


@answers.wrong("NaN times zero is NaN")
def multiplied(x, interpret=True):
    return summed(x, interpret, lambda block, inside: block * inside)


@answers.wrong("something is added to before it is set")
def never_zero(x, interpret=True):
    return summed(x, interpret, where, begin=False)


@answers.wrong("there is none")
def a_step_more(x, interpret=True):
    return summed(x, interpret, where, steps=pl.cdiv(x.shape[0], 8) + 1)


@answers.wrong("there is none")
def one_more_than_full(x, interpret=True):
    return summed(x, interpret, where, steps=x.shape[0] // 8 + 1)


@answers.wrong("A NaN that is in x")
def without_nans(x, interpret=True):
    return summed(x, interpret, lambda block, inside: jnp.nan_to_num(block))


@answers.wrong("For 5 rows")
def rows_of_the_example(x, interpret=True):
    return summed(x, interpret, where, length=20)


@answers.wrong("the last ones are never read")
def whole_blocks(x, interpret=True):
    return summed(x, interpret, where, steps=x.shape[0] // 8)


@answers.wrong("and at no other")
def anew(x, interpret=True):
    return summed(x, interpret, where, each=True)


@answers.wrong("does not lower for a TPU")
def blocks_of_four(x, interpret=True):
    return summed(x, interpret, where, rows=4)


@answers.wrong("hand the argument on")
def always_interpreted(x, interpret=True):
    return summed(x, interpret, where, forget=True)


@answers.wrong("There is no Pallas kernel in it")
def without_a_kernel(x, interpret=True):
    return x.sum(axis=0, keepdims=True)


@answers.wrong("more than 8 rows are held")
def in_one_step(x, interpret=True):
    def kernel(x_ref, sums_ref):
        sums_ref[...] = x_ref[...].sum(axis=0, keepdims=True)

    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype), interpret=interpret
    )(x)


def in_columns(x, interpret, rows_last, semantics=None):
    """Blocks of 8 rows and 128 columns."""
    length, columns = x.shape
    order = (lambda j, i: (i, j)) if rows_last else lambda i, j: (i, j)
    grid = (columns // 128, pl.cdiv(length, 8)) if rows_last else (pl.cdiv(length, 8), columns // 128)

    def kernel(x_ref, sums_ref):
        step = pl.program_id(1 if rows_last else 0)

        @pl.when(step == 0)
        def _():
            sums_ref[...] = jnp.zeros_like(sums_ref)

        row = 8 * step + jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0)
        sums_ref[...] += jnp.where(row < length, x_ref[...], 0).sum(axis=0, keepdims=True)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((1, columns), x.dtype),
        grid=grid,
        in_specs=[pl.BlockSpec((8, 128), order)],
        out_specs=pl.BlockSpec((1, 128), lambda *step: (0, order(*step)[1])),
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
        interpret=interpret,
    )(x)


@answers.wrong("Put the axes last")
def columns_run_fastest(x, interpret=True):
    return in_columns(x, interpret, rows_last=False)


@answers.wrong("A race")
def rows_at_once(x, interpret=True):
    return in_columns(x, interpret, rows_last=True, semantics=("parallel", "parallel"))


@answers.right
def rows_run_fastest(x, interpret=True):
    return in_columns(x, interpret, rows_last=True, semantics=("parallel", "arbitrary"))


@answers.wrong("XLA does the work")
def summed_outside(x, interpret=True):
    """The kernel copies."""

    def kernel(x_ref, y_ref):
        y_ref[...] = x_ref[...]

    rows = pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))
    copied = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(len(x), 8),),
        in_specs=[rows],
        out_specs=rows,
        interpret=interpret,
    )(x)
    return copied.sum(axis=0, keepdims=True)


@answers.right
def a_sum_for_each_block(x, interpret=True):
    """Added up outside: an eighth of the numbers is left."""
    length, columns = x.shape
    steps = pl.cdiv(length, 8)

    def kernel(x_ref, sums_ref):
        row = 8 * pl.program_id(0) + jax.lax.broadcasted_iota(jnp.int32, (8, columns), 0)
        sums_ref[0] = jnp.where(row < length, x_ref[...], 0).sum(axis=0, keepdims=True)

    sums = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((steps, 1, columns), x.dtype),
        grid=(steps,),
        in_specs=[pl.BlockSpec((8, columns), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, 1, columns), lambda i: (i, 0, 0)),
        interpret=interpret,
    )(x)
    return sums.sum(axis=0)


@answers.wrong()
def a_mean(x, interpret=True):
    return summed(x, interpret, where) / x.shape[0]


@answers.right
def padded_outside(x, interpret=True):
    x = jnp.pad(x, ((0, -x.shape[0] % 8), (0, 0)))
    return summed(x, interpret, lambda block, inside: block)


@answers.right
def by_tens(x, interpret=True):
    """Sums of its own for the eight sublanes, added at the end."""
    length, columns = x.shape

    def kernel(x_ref, sums_ref, total):
        @pl.when(pl.program_id(0) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        row = pl.program_id(0) * 8 + jax.lax.broadcasted_iota(jnp.int32, (8, 1), 0)
        total[...] += jax.lax.select(
            jnp.broadcast_to(row < length, (8, columns)), x_ref[...], jnp.zeros((8, columns))
        )

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            sums_ref[...] = total[...].sum(axis=0, keepdims=True)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((1, columns), x.dtype),
        grid=(-(-length // 8),),
        in_specs=[pl.BlockSpec((8, columns), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, columns), lambda i: (0, 0)),
        scratch_shapes=[pltpu.VMEM((8, columns), jnp.float32)],
        interpret=interpret,
    )(x)


CALL = (
    "pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((1, columns), x.dtype), grid=(pl.cdiv(rows, 8),), "
    "in_specs=[pl.BlockSpec((8, columns), lambda i: (i, 0))], out_specs=pl.BlockSpec((1, columns), lambda i: (0, 0)), interpret=interpret)"
)
answers.equivalent(
    "block.sum(axis=0, keepdims=True) -> block.sum(axis=0)", because="a row is added to an array of one row"
)
answers.equivalent(
    CALL + " -> " + CALL.replace("out_specs=pl.BlockSpec((1, columns), lambda i: (0, 0)), ", ""),
    because="where nothing is said a block is the whole array, and the sums are one block",
)
