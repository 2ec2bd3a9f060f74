"""A matrix product in blocks, with an accumulator in VMEM."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.pallas import _twice


def solution(x, y, interpret=True):
    (m, k), n = x.shape, y.shape[1]

    def kernel(x_ref, y_ref, o_ref, total):
        @pl.when(pl.program_id(2) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = total[...].astype(o_ref.dtype)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // 128, n // 128, k // 128),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        interpret=interpret,
    )(x, y)


def check(matmul):
    x, y = _twice.normal(0, 128, 512, dtype=jnp.bfloat16), _twice.normal(1, 512, 256, dtype=jnp.bfloat16)
    x, y = (x + x.dtype.type(0.5)) * x.dtype.type(1024), y + y.dtype.type(0.5)  # beyond float16
    got = _twice.interpreted(matmul, x, y)
    given = {"x": x, "y": y}
    _twice.array(got, (128, 256), jnp.bfloat16, **given)
    numbers = np.float64(x), np.float64(y)
    wanted = numbers[0] @ numbers[1]
    if _twice.nans(got):
        raise Failed("The product is NaN: something is added to before it is set, or a block of the result is never written. Zeros go into the accumulator at the first step of k.", input=given)  # fmt: skip
    scale = np.abs(wanted).max()

    def error(other):
        return np.abs(np.float64(got) - other).max() / scale

    parts = [numbers[0][:, i : i + 128] @ numbers[1][i : i + 128] for i in range(0, 512, 128)]
    if error(parts[-1]) < 1e-2:
        raise Failed("This is the last block's product alone: the accumulator is set anew at each step of k.", input=given)  # fmt: skip
    if error(parts[0]) < 1e-2:
        raise Failed("This is the first block's product alone.", input=given)
    if error(wanted) > 1e-2:
        raise Failed("The product is wrong.", input=given, expected=wanted.astype(np.float32), got=got)
    a, b = (
        np.concatenate([x[:, :128], x[:, 128:256]]),
        y[:128],
    )  # other sizes: two blocks of rows, one step of k
    other = _twice.interpreted(matmul, a, b)
    _twice.array(other, (256, 256), jnp.bfloat16, x=a, y=b)
    wanted_other = np.float64(a) @ np.float64(b)
    if not np.abs(np.float64(other) - wanted_other).max() < 1e-2 * np.abs(wanted_other).max():
        raise Failed(
            "Right with four steps of k, and wrong with one: is a number of steps, or of blocks, written down as a constant? The last step is "
            "`pl.num_programs(2) - 1`.",
            input={"x": a, "y": b},
            expected=wanted_other.astype(np.float32),
            got=other,
        )
    narrow = jax.eval_shape(functools.partial(matmul, interpret=True), x, y[:, :128])
    if narrow.shape != (128, 128):
        raise Failed(f"For a y of 128 columns the result has the shape {narrow.shape}, and not (128, 128).")
    _twice.legal(matmul, x, y)
    _twice.at_work(matmul, x, y)
    call, *_ = _twice.calls(matmul, x, y)
    _twice.inside(call)
    _twice.no_race(call)
    _twice.stays(call)
    if np.prod(_twice.grid(call), dtype=int) < 8:
        raise Failed(
            f"Right, but the grid is {_twice.grid(call)}: with blocks of 128 x 128 there are 1 x 2 blocks of the result, and 4 steps of k "
            "for each."
        )
    if np.abs(np.float64(got) - wanted.astype(jnp.bfloat16).astype(np.float64)).max() > 0.006 * scale:
        raise Failed(
            "Nearly right, but the sum is rounded to bfloat16 at each step of k. Add up in a scratch array of float32, and round once, "
            "at the end.",
            input=given,
            expected=wanted.astype(np.float32),
            got=got,
        )


exercise = Exercise(
    title="A matrix product with an accumulator",
    stars=2,
    minutes=15,
    why="The inputs travel in bfloat16, the sum stays in float32 in VMEM, and each block of the result is written once.",
    hints=(
        "The grid is (m // 128, n // 128, k // 128): the last axis runs fastest, so all steps of one block of the result come "
        "one after the other. x needs block (i, k), y block (k, j), the result block (i, j).",
        "`scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)]` gives the kernel one more reference, after the output's. Set it to "
        "zeros under `@pl.when(pl.program_id(2) == 0)`, and write the result at the last step.",
        "`jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)` multiplies bfloat16 and adds up in float32.",
    ),
    solution=solution,
    check=check,
)
