"""Sums over rows, a block at a time, where the last block hangs over the end."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.pallas import _twice


def solution(x, interpret=True):
    rows, columns = x.shape

    def kernel(x_ref, sums_ref):
        step = pl.program_id(0)

        @pl.when(step == 0)
        def _():
            sums_ref[...] = jnp.zeros_like(sums_ref)

        row = 8 * step + jax.lax.broadcasted_iota(jnp.int32, (8, columns), 0)
        block = jnp.where(row < rows, x_ref[...], 0.0)
        sums_ref[...] += block.sum(axis=0, keepdims=True)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((1, columns), x.dtype),
        grid=(pl.cdiv(rows, 8),),
        in_specs=[pl.BlockSpec((8, columns), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, columns), lambda i: (0, 0)),
        interpret=interpret,
    )(x)


# Without this, XLA turns a product with a mask into a choice, as a TPU's kernel does not, and NaN times zero is zero.
NAN_STAYS = {"xla_disable_hlo_passes": "algsimp"}


def check(column_sums):
    for rows, columns in ((16, 128), (20, 256)):
        x = _twice.normal(0, rows, columns)
        got = _twice.interpreted(column_sums, x, compiler_options=NAN_STAYS)
        given = {"x": x}
        _twice.array(got, (1, columns), jnp.float32, **given)
        numbers = np.float64(x)
        wanted = numbers.sum(axis=0, keepdims=True)
        if _twice.close(got, wanted):
            continue
        if _twice.nans(got) and rows == 16:
            raise Failed(
                "The sums are NaN, though 16 rows are two full blocks: something is added to before it is set. Begin with zeros at the "
                "first step.",
                input=given,
            )
        if _twice.nans(got):
            raise Failed(
                "For 20 rows the sums are NaN: in the third block, the last four rows are not of x, and hold anything. Choose zeros in "
                "their place by `jnp.where`: NaN times zero is NaN. Row 0 of a block is row `8 * pl.program_id(0)` of x.",
                input=given,
            )
        blocks = [numbers[i : i + 8].sum(axis=0, keepdims=True) for i in range(0, rows, 8)]
        if _twice.close(got, numbers[: rows // 8 * 8].sum(axis=0, keepdims=True)):
            raise Failed(
                "For 20 rows only 16 are summed: with `rows // 8` steps the last ones are never read.",
                input=given,
            )
        if _twice.close(got, blocks[-1]):
            raise Failed(
                "Only the last block is summed: zeros are set at the first step, and at no other.",
                input=given,
            )
        raise Failed("The sums are wrong.", input=given, expected=wanted, got=got)
    x = _twice.normal(0, 5, 128)
    x[2, 7] = np.nan
    got, wanted = _twice.interpreted(column_sums, x, compiler_options=NAN_STAYS), x.sum(axis=0, keepdims=True)
    if not np.isnan(got[0, 7]):
        raise Failed("A NaN that is in x is left out of the sums. What is beyond the edge may be any number: choose by the row, not by the value.")  # fmt: skip
    if not np.allclose(got, wanted, atol=1e-4, equal_nan=True):
        raise Failed("For 5 rows the sums are wrong.", expected=wanted, got=got)
    _twice.legal(column_sums, jax.ShapeDtypeStruct((20, 128), jnp.float32))
    _twice.at_work(column_sums, jax.ShapeDtypeStruct((100, 256), jnp.float32))
    (call, *_) = _twice.calls(column_sums, jax.ShapeDtypeStruct((100, 256), jnp.float32))
    steps = _twice.grid(call)
    if np.prod(steps, dtype=int) < 13:
        raise Failed(
            f"Right, but 100 rows take {int(np.prod(steps, dtype=int))} step{'s' * (steps != (1,))}, so more than 8 rows are held in VMEM at once. Take blocks of 8 "
            "rows: 13 steps."
        )
    for each in (call, *_twice.calls(column_sums, jax.ShapeDtypeStruct((16, 128), jnp.float32))):
        _twice.inside(each)
        _twice.no_race(each)
        _twice.stays(each)


exercise = Exercise(
    title="Sum rows that do not fill the last block",
    stars=2,
    minutes=12,
    why="What hangs over the end of an array is not zero: it is whatever is there, and has to be masked where it is used.",
    hints=(
        "Before `x_ref[...]` is summed, put zeros where a row is not of x. The row's number is `8 * pl.program_id(0)` plus "
        "`jax.lax.broadcasted_iota(jnp.int32, (8, columns), 0)`.",
        "The grid has `pl.cdiv(rows, 8)` steps. The output's index map is `lambda i: (0, 0)`, and at step 0 a function under "
        "`@pl.when(pl.program_id(0) == 0)` writes zeros there.",
    ),
    solution=solution,
    check=check,
)
