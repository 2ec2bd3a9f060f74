"""Answers to the exercise pallas.two_cores."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.exercises.pallas.two_cores import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def summed(
    x,
    interpret,
    semantics,
    *,
    grid=None,
    x_map=None,
    o_map=lambda c, i: (c, 0),
    parts=2,
    start=lambda c, i: i == 0,
):
    steps = x.shape[0] // 16

    def kernel(x_ref, sums_ref):
        @pl.when(start(pl.program_id(0), pl.program_id(1)))
        def _():
            sums_ref[...] = jnp.zeros_like(sums_ref)

        sums_ref[...] += x_ref[...]

    result = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((8 * parts, x.shape[1]), x.dtype),
        grid=grid or (2, steps),
        in_specs=[pl.BlockSpec((8, x.shape[1]), x_map or (lambda c, i: (c * steps + i, 0)))],
        out_specs=pl.BlockSpec((8, x.shape[1]), o_map),
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
        interpret=interpret,
    )(x)
    return result.sum(axis=0, keepdims=True)


BOTH = "parallel", "arbitrary"


@answers.wrong("steps (0, 0) and (1, 0) may run at once")
def one_block(x, interpret=True):
    return summed(
        x, interpret, BOTH, o_map=lambda c, i: (0, 0), parts=1, start=lambda c, i: (c == 0) & (i == 0)
    )


@answers.wrong("steps (0, 0) and (0, 1) may run at once")
def all_parallel(x, interpret=True):
    return summed(x, interpret, ("parallel", "parallel"))


@answers.wrong("no axis of the grid is declared parallel")
def in_order(x, interpret=True):
    return summed(x, interpret, ("arbitrary", "arbitrary"))


@answers.wrong("each core has to set its own block")
def zeros_once(x, interpret=True):
    return summed(x, interpret, BOTH, start=lambda c, i: (c == 0) & (i == 0))


@answers.wrong("there is none")
def rows_too_far(x, interpret=True):
    return summed(x, interpret, BOTH, x_map=lambda c, i: (c * (x.shape[0] // 16) + i + 1, 0))


@answers.wrong("the same half of the rows")
def same_half(x, interpret=True):
    return summed(x, interpret, BOTH, x_map=lambda c, i: (i, 0))


@answers.wrong("The shape of the result is wrong")
def not_added_up(x, interpret=True):
    steps = x.shape[0] // 16
    return jnp.concatenate([summed(part, interpret, BOTH) for part in (x[: 8 * steps], x[8 * steps :])])


@answers.wrong("There is no Pallas kernel")
def by_xla(x, interpret=True):
    return x.sum(axis=0, keepdims=True)


@answers.wrong("hand the argument on")
def always_interpreted(x, interpret=True):
    return summed(x, True, BOTH)


@answers.wrong("with blocks of 8 rows there are 30")
def half_of_the_rows_at_once(x, interpret=True):
    def kernel(x_ref, sums_ref):
        sums_ref[...] = jnp.broadcast_to(x_ref[...].sum(axis=0, keepdims=True), (8, 128))

    sums = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
        grid=(2,),
        in_specs=[pl.BlockSpec((x.shape[0] // 2, 128), lambda core: (core, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda core: (core, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )(x)
    return sums[::8].sum(axis=0, keepdims=True)


@answers.wrong("Put the axes last")
def cores_take_turns(x, interpret=True):
    """On one core, the blocks of the two are left and come back."""
    steps = x.shape[0] // 16
    return summed(
        x,
        interpret,
        ("arbitrary", "parallel"),
        grid=(steps, 2),
        x_map=lambda i, c: (c * steps + i, 0),
        o_map=lambda i, c: (c, 0),
        start=lambda i, c: i == 0,
    )


@answers.right
def every_other_block(x, interpret=True):
    return summed(x, interpret, BOTH, x_map=lambda c, i: (2 * i + c, 0))


@answers.right
def by_sums_of_rows(x, interpret=True):
    """A core's block has a single row that counts."""
    steps = x.shape[0] // 16

    def kernel(x_ref, sums_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            sums_ref[...] = jnp.zeros_like(sums_ref)

        sums_ref[0] += x_ref[...].sum(axis=0, keepdims=True)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((2, 1, x.shape[1]), x.dtype),
        grid=(2, steps),
        in_specs=[pl.BlockSpec((8, x.shape[1]), lambda core, i: (core * steps + i, 0))],
        out_specs=pl.BlockSpec((1, 1, x.shape[1]), lambda core, i: (core, 0, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=BOTH),
        interpret=interpret,
    )(x).sum(axis=0)


answers.equivalent(
    "x.shape[1] -> 128",
    "x.shape[1] -> 128 (2)",
    "x.shape[1] -> 128 (3)",
    because="the task says that x has 128 columns",
)
