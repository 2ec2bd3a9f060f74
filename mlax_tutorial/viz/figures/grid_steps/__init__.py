"""``viz.grid_steps``: which block of each array a Pallas kernel sees at each step, and what is copied for it.

`grid_steps` traces a function and reads the grid, the blocks and the index maps of its kernel; `GridSteps` shows them: in a notebook as
arrays cut into blocks, to step through, in a terminal as a listing. The markup is made in `page`.
"""

import dataclasses
import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.inspection.lowering import kernel_name
from mlax_tutorial.viz.figures.grid_steps import page

MOST_STEPS, MOST_BLOCKS = 512, 512


@dataclasses.dataclass(frozen=True)
class Operand:
    """An array that goes through a kernel block by block.

    Attributes:
      name: the kernel's name for it.
      shape, dtype: of the whole array.
      block: the shape of a block, as long as ``shape``; an axis that is dropped counts as 1.
      output: whether the kernel writes it.
      seen: for each step the number of the block along each axis.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    block: tuple[int, ...]
    output: bool
    seen: tuple[tuple[int, ...], ...]

    @property
    def blocks(self) -> tuple[int, ...]:
        """How many blocks there are along each axis; the last ones may hang over the edge."""
        return tuple(-(-size // part) for size, part in zip(self.shape, self.block, strict=True))

    @property
    def copied(self) -> tuple[bool, ...]:
        """For each step, whether a block is copied: of an input before it, of an output after it."""
        changes = [one != other for one, other in itertools.pairwise(self.seen)]
        return tuple([*changes, True] if self.output else [True, *changes])

    def size(self, step: int) -> int:
        """Bytes of the block that a step sees, without what hangs over the edge."""
        sizes = (
            max(0, min(part, size - number * part))
            for size, part, number in zip(self.shape, self.block, self.seen[step], strict=True)
        )
        return math.prod(sizes) * jnp.dtype(self.dtype).itemsize

    @property
    def moved(self) -> int:
        """Bytes that are copied in all steps together."""
        return sum(self.size(step) for step, copied in enumerate(self.copied) if copied)


class GridSteps:
    """What `grid_steps` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      kernel: the name of the kernel.
      grid: how many steps along each axis; the last one runs fastest.
      operands: its inputs and outputs, each an `Operand`.
      steps: the place of each step in the grid, in order.
    """

    def __init__(self, kernel: str, grid: tuple[int, ...], operands: list[Operand]):
        self.kernel, self.grid, self.operands = kernel, grid, operands
        self.steps = list(itertools.product(*map(range, grid)))

    @property
    def moved(self) -> int:
        """Bytes between the main memory and VMEM, in all steps together."""
        return sum(operand.moved for operand in self.operands)

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def grid_steps(fun: Any, *args: Any, **kwargs: Any) -> GridSteps:
    """Show which block of each array a Pallas kernel sees, step by step, and which blocks are copied.

    The function is traced, not run. A block of an input is copied into VMEM if it is not the one of the step before, a block of an
    output is copied back if it is not the one of the step after.

    Args:
      fun: a function that calls one kernel.
      *args: its arguments: arrays or ``jax.ShapeDtypeStruct``.
      **kwargs: what it takes besides, as it is: ``interpret=True``, say.

    Returns:
      A `GridSteps`: as the last expression of a cell it is a figure to step through. It has ``grid``, ``operands`` and ``moved``, too.

    Raises:
      ValueError: if there is not exactly one kernel, or if it has more steps or blocks than a figure can show.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from jax.experimental import pallas as pl
      >>> from mlax_tutorial import viz
      >>> def double(x_ref, y_ref):
      ...     y_ref[...] = 2 * x_ref[...]
      >>> block = pl.BlockSpec((8, 128), lambda i: (i, 0))
      >>> def doubled(x):
      ...     return pl.pallas_call(double, out_shape=x, grid=(2,), in_specs=[block], out_specs=block)(x)
      >>> viz.grid_steps(doubled, jax.ShapeDtypeStruct((16, 128), jnp.float32))
      double: grid (2,), 2 steps, 16.4 kB moved
        x_ref   in   float32[16,128] in blocks of (8, 128): 2 copies, 8.19 kB
        y_ref   out  float32[16,128] in blocks of (8, 128): 2 copies, 8.19 kB
    """
    program = jax.make_jaxpr(functools.partial(fun, **kwargs))(*args)
    found = [equation for _, equation in jaxprs.walk(program) if equation.primitive.name == "pallas_call"]
    if len(found) != 1:
        raise ValueError(f"viz.grid_steps: shows one kernel, and this function calls {len(found)}")
    (call,) = found
    mapping = call.params["grid_mapping"]
    grid = tuple(mapping.grid)
    if not all(isinstance(size, int) for size in grid) or mapping.num_index_operands:
        raise ValueError(
            "viz.grid_steps: the grid or the blocks depend on numbers that are known only when it runs"
        )
    if math.prod(grid) > MOST_STEPS:
        raise ValueError(
            f"viz.grid_steps: shows up to {MOST_STEPS} steps, got {math.prod(grid)}: take smaller arrays"
        )
    steps = list(itertools.product(*map(range, grid)))
    mappings = list(mapping.block_mappings)
    outputs = len(mappings) - len(list(mapping.block_mappings_output))
    names = _names(call.params["jaxpr"].debug_info, len(mappings))
    operands = [
        _operand(name, each, number >= outputs, steps)
        for number, (name, each) in enumerate(zip(names, mappings, strict=True))
    ]
    most = max(math.prod(operand.blocks) for operand in operands)
    if most > MOST_BLOCKS:
        raise ValueError(
            f"viz.grid_steps: shows up to {MOST_BLOCKS} blocks of an array, got {most}: take larger blocks"
        )
    return GridSteps(kernel_name(call), grid, operands)


def _names(kernel, count):
    names = [str(name) for name in (kernel.arg_names or ())[:count]]
    return names if len(names) == count and all(names) else [f"array {number}" for number in range(count)]


def _operand(name, mapping, output, steps):
    array = getattr(mapping, "array_aval", None) or mapping.array_shape_dtype
    block = tuple(_size(each) for each in mapping.block_shape)
    index_map = mapping.index_map_jaxpr
    if steps and steps[0]:
        columns = [jnp.asarray(column, jnp.int32) for column in zip(*steps, strict=True)]
        numbers = jax.jit(
            jax.vmap(functools.partial(jax.core.eval_jaxpr, index_map.jaxpr, index_map.consts))
        )(*columns)
        seen = list(zip(*(jnp.broadcast_to(number, len(steps)).tolist() for number in numbers), strict=True))
    else:
        seen = [(0,) * len(block)]
    return Operand(
        name, tuple(array.shape), jnp.dtype(array.dtype).name, block, output, tuple(map(tuple, seen))
    )


def _size(part):
    """Of a block along an axis: a number, or an object that says how it is indexed; one that is dropped is 1."""
    if isinstance(part, int):
        return part
    return getattr(part, "block_size", 1) or 1
