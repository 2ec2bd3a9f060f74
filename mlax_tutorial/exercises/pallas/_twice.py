"""What these exercises share: each kernel runs interpreted, for its numbers, and is lowered for a TPU, for its legality."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed, checks
from mlax_tutorial.checking.describe import describe, is_array
from mlax_tutorial.inspection import jaxprs, lowers_for_tpu


def normal(seed, *shape, dtype=jnp.float32):
    """The same random numbers everywhere, in NumPy: making them compiles nothing."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def interpreted(function, *args, **options):
    return jax.jit(functools.partial(function, interpret=True), **options)(*args)


def array(got, shape, dtype, **given):
    """``got`` is an array of that shape and dtype."""
    if not is_array(got):
        raise Failed(f"The result should be one array, got {describe(got)}.", input=given)
    if got.shape != shape:
        raise Failed(f"The shape of the result is wrong: expected {shape}, got {got.shape}.", input=given)
    if got.dtype != dtype:
        raise Failed(f"The dtype of the result is wrong: expected {np.dtype(dtype).name}, got {got.dtype}.", input=given)  # fmt: skip


def close(got, wanted, tolerance=1e-4):
    return checks.agrees(got, np.asarray(wanted, np.float64), tolerance, tolerance)


def nans(got):
    return bool(np.isnan(np.asarray(got, np.float32)).any())


def legal(
    function,
    *args,
    kernels=1,
    what="This",
    fewer="There is no Pallas kernel in it: `pl.pallas_call` is not called.",
):
    """The function lowers for a TPU, with so many kernels."""
    found = lowers_for_tpu(function, *args, interpret=False)
    if found.interpreted:
        raise Failed(
            "The numbers are right, but called with `interpret=False` it is interpreted all the same: hand the argument on, "
            "`pl.pallas_call(…, interpret=interpret)`."
        )
    if len(found.kernels) < kernels:
        raise Failed(f"The numbers are right. {fewer}")
    if not found:
        raise Failed(
            f"Interpreted, the numbers are right. {what} does not lower for a TPU.",
            shown=[("JAX says", found.error)],
        )


def calls(function, *args):
    """The equations of the Pallas kernels of a function."""
    program = jax.make_jaxpr(functools.partial(function, interpret=True))(*args)
    return [equation for _, equation in jaxprs.walk(program) if equation.primitive.name == "pallas_call"]


def grid(call):
    return tuple(call.params["grid_mapping"].grid)


def inside(call):
    """All blocks of the first and last steps, along each axis of the grid, lie in their arrays, at least in part."""
    steps = [*itertools.product(*({0, size - 1} for size in grid(call)))]
    for mapping in call.params["grid_mapping"].block_mappings:
        whole = getattr(mapping, "array_aval", None) or mapping.array_shape_dtype  # the latter in JAX 0.7
        block = [getattr(size, "block_size", size) for size in mapping.block_shape]
        if not all(isinstance(size, int) for size in block):
            continue
        for step in steps:
            place = _index(mapping, step)
            if any(
                i < 0 or i * size >= length for i, size, length in zip(place, block, whole.shape, strict=True)
            ):
                raise Failed(
                    f"At the step {step} of the grid {grid(call)} an index map gives the block {place} of an array of shape {whole.shape}, in blocks of "
                    f"{tuple(block)}: there is none. Interpreted, JAX takes another in its place; on a TPU it is memory of something else."
                )


def _index(mapping, step):
    """The block that an index map gives for a step of the grid."""
    program = mapping.index_map_jaxpr
    return tuple(map(int, jax.core.eval_jaxpr(program.jaxpr, program.consts, *map(np.int32, step))))


def collisions(call):
    """Two steps that may run at once and write the same block of an output: their places in the grid, and the block; or None."""
    semantics = semantics_of(call)
    written = {}
    for mapping in call.params["grid_mapping"].block_mappings_output:
        for step in np.ndindex(*grid(call)):
            block = _index(mapping, step)
            core = tuple(i for i, how in zip(step, semantics, strict=True) if how == "parallel")
            first = written.setdefault((id(mapping), block), (core, step))
            if first[0] != core:
                return first[1], step, block
    return None


def no_race(call):
    if clash := collisions(call):
        one, other, block = clash
        raise Failed(
            f"A race: steps {one} and {other} may run at once, and both write block {block} of the output. What is parallel needs a "
            "block of its own for each core.",
            shown=[("dimension_semantics", str(semantics_of(call)))],
        )


def stays(call):
    """A block of an output is left for good: no later step comes back to it."""
    for mapping in call.params["grid_mapping"].block_mappings_output:
        seen, last = {}, None
        for step in np.ndindex(*grid(call)):
            block = _index(mapping, step)
            if block != last and block in seen:
                raise Failed(
                    f"Interpreted, the numbers are right. But in the grid {grid(call)} steps {seen[block]} and {step} both write block {block} of "
                    f"an output, and those between them write others. A TPU copies a block out when the next step writes another, and never in: "
                    "what was added up is lost. (`interpret=pltpu.InterpretParams()` shows it.) Put the axes last that the output's index map leaves out."
                )
            seen[block], last = step, block


_WORK = "dot_general", "reduce_sum", "reduce_max", "cumsum", "exp"


def at_work(function, *args, size=None):
    """The kernels do the work: no sum, product or exponential of an array as large as the first argument stands outside of them."""
    size = size or args[0].size
    program = jax.make_jaxpr(functools.partial(function, interpret=True))(*args)
    for path, equation in jaxprs.walk(program):
        if equation.primitive.name not in _WORK or any("pallas_call" in step for step in path):
            continue
        if (shape := max((each.aval.shape for each in equation.invars), key=math.prod)) and math.prod(
            shape
        ) >= size:
            raise Failed(
                f"Right, but XLA does the work: `{equation.primitive.name}` of an array of shape {shape} stands outside of the kernel."
            )


def semantics_of(call):
    """For each axis of the grid, "parallel" or "arbitrary"."""
    params = call.params["compiler_params"]
    if hasattr(params, "get"):  # in JAX 0.7, one for each kind of device
        params = params.get("mosaic_tpu")
    found = getattr(params, "dimension_semantics", None) or ("arbitrary",) * len(grid(call))
    return tuple(str(getattr(each, "value", each)).lower() for each in found)
