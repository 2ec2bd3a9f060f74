"""Sums over rows on two cores at once, without a race."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.pallas import _twice


def solution(x, interpret=True):
    steps = x.shape[0] // 16  # of each core

    def kernel(x_ref, sums_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            sums_ref[...] = jnp.zeros_like(sums_ref)

        sums_ref[...] += x_ref[...]

    partial = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((16, x.shape[1]), x.dtype),
        grid=(2, steps),
        in_specs=[pl.BlockSpec((8, x.shape[1]), lambda core, i: (core * steps + i, 0))],
        out_specs=pl.BlockSpec((8, x.shape[1]), lambda core, i: (core, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
        interpret=interpret,
    )(x)
    return partial.sum(axis=0, keepdims=True)


def check(two_cores):
    x = _twice.normal(0, 240, 128)  # 15 blocks for each core, and 16 if one divides by 15
    given = {"x": x}
    call, *_ = _twice.calls(two_cores, x) or [None]
    if call is None:
        raise Failed("There is no Pallas kernel in it: `pl.pallas_call` is not called.")
    _twice.no_race(call)
    for each in [call, *_twice.calls(two_cores, x[:64])]:
        _twice.inside(each)
    got = _twice.interpreted(two_cores, x)
    wanted = np.float64(x).sum(axis=0, keepdims=True)
    _twice.array(got, (1, 128), jnp.float32, **given)
    if _twice.nans(got):
        raise Failed("The sums are NaN: each core has to set its own block to zeros, at the first of its steps.", input=given)  # fmt: skip
    if not _twice.close(got, wanted):
        numbers = np.float64(x)
        if any(
            _twice.close(got, 2 * part.sum(axis=0, keepdims=True)) for part in (numbers[:120], numbers[120:])
        ):
            raise Failed("Both cores sum the same half of the rows.", input=given)
        raise Failed("The sums are wrong.", input=given, expected=wanted, got=got)
    steps = int(np.prod(_twice.grid(call), dtype=int))
    if steps < 30:
        raise Failed(f"Right, but 240 rows take {steps} steps: with blocks of 8 rows there are 30.")
    sizes = [
        size
        for size, how in zip(_twice.grid(call), _twice.semantics_of(call), strict=True)
        if how == "parallel"
    ]
    if np.prod(sizes, dtype=int) < 2:
        raise Failed(
            "Right, but on one core: no axis of the grid is declared parallel. Add an axis of two cores, and "
            '`compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary"))`.',
            shown=[("grid", str(_twice.grid(call))), ("dimension_semantics", str(_twice.semantics_of(call)))],
        )
    _twice.legal(two_cores, x)
    _twice.at_work(two_cores, x)
    _twice.stays(call)


exercise = Exercise(
    title="A sum on two cores, without a race",
    stars=2,
    minutes=12,
    why="Steps that run in any order must not meet in one block: give each core a block, and add up what is left outside of the kernel.",
    hints=(
        "The grid is (2, steps): the first axis is the core, and parallel; the second goes through the core's half of the rows, and is "
        "arbitrary.",
        "The output has a block for each core, (16, 128) in all: its index map is `lambda core, i: (core, 0)`. The rows come from "
        "`lambda core, i: (core * steps + i, 0)`. Zeros are set where `pl.program_id(1) == 0`.",
    ),
    solution=solution,
    check=check,
)
