"""``viz.ranges``: the sizes of the numbers in a tree, and which of them each floating-point format can hold.

`measure` counts, and `Ranges` shows the counts: in a notebook as a histogram over the ranges of the formats, with a slider that multiplies
all numbers by a power of two, as a loss scale does; in a terminal as a table. The markup is made in `_ranges_page`.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.viz import _ranges_page

FORMATS = ("float32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3fn")
MOST = 32  # the largest power of two to multiply by


@dataclasses.dataclass(frozen=True)
class Share:
    """What becomes of numbers in a format: how many become zero, subnormal (fewer digits), or too large."""

    zero: int
    subnormal: int
    too_large: int


@dataclasses.dataclass(frozen=True)
class Measured:
    """The numbers of a tree, counted.

    Attributes:
      bins: how many numbers there are from 2^e up to 2^(e+1), by e.
      numbers: how many are finite and not zero.
      zeros, infinite, nan: how many are these.
      shares: for each format, what becomes of the numbers when they are multiplied by 2^0, 2^1, … before.
    """

    bins: dict[int, int]
    numbers: int
    zeros: int
    infinite: int
    nan: int
    shares: dict[str, list[Share]]


class Ranges:
    """The sizes of the numbers of a tree; a notebook shows a figure, a terminal a table."""

    def __init__(self, measured: Measured, name: str):
        self.measured, self.name = measured, name

    def _repr_html_(self):
        return _ranges_page.page(self.measured, self.name)

    def __repr__(self):
        return _ranges_page.listing(self.measured, self.name)


def ranges(tree: Any, name: str = "numbers") -> Ranges:
    """Show which floating-point formats can hold the numbers of a tree, and how far a loss scale would move them.

    Weights, activations or gradients: any pytree of arrays. Integers, booleans and random keys are left out.

    Args:
      tree: any pytree; its floating-point numbers are put together.
      name: what to call them.

    Returns:
      A `Ranges`: as the last expression of a cell it is a histogram over the ranges of five formats. The slider
      multiplies all numbers by a power of two. A number counts as lost where rounding to nearest makes it zero.

    Raises:
      TypeError: if a leaf has no values, as a ``jax.ShapeDtypeStruct`` has none.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> viz.ranges({"gradient": jnp.array([0.0, 1e-9, 1e-6, 0.5])})
      numbers: 3 from 2^-30 to 2^-1, and 1 zero
                       becomes 0  loses digits  too large
      float32               none          none       none
      bfloat16              none          none       none
      float16              33.3%         33.3%       none
      float8_e5m2          66.7%          none       none
      float8_e4m3fn        66.7%          none       none
    """
    return Ranges(measure(tree), name)


def measure(tree: Any) -> Measured:
    """Counts the floating-point numbers of a tree; see `Measured`."""
    parts = [part for path, leaf in jax.tree_util.tree_leaves_with_path(tree) for part in _parts(path, leaf)]
    values = np.abs(np.concatenate([np.zeros(0), *parts]))
    nan, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    values = values[np.isfinite(values)]
    sizes = np.sort(values[values > 0])
    exponents, counts = np.unique(np.frexp(sizes)[1] - 1, return_counts=True)
    return Measured(
        bins={int(e): int(n) for e, n in zip(exponents, counts, strict=True)},
        numbers=len(sizes),
        zeros=len(values) - len(sizes),
        infinite=infinite,
        nan=nan,
        shares={name: [_share(sizes, name, 2.0**-k) for k in range(MOST + 1)] for name in FORMATS},
    )


def _parts(path, leaf):
    """The floating-point numbers of a leaf, as flat float64 arrays: one, two for complex numbers, none."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        raise TypeError(
            f"ranges: the leaf {jax.tree_util.keystr(path) or 'tree'} is a jax.ShapeDtypeStruct, which has no values: give it arrays."
        )
    if (
        isinstance(leaf, (bool, int, str, bytes))
        or not hasattr(leaf, "dtype")
        and not isinstance(leaf, float)
    ):
        return []
    dtype = getattr(leaf, "dtype", np.dtype("float64"))
    if jnp.issubdtype(dtype, jnp.complexfloating):
        array = np.asarray(leaf)
        return [array.real.astype(np.float64).ravel(), array.imag.astype(np.float64).ravel()]
    if not jnp.issubdtype(dtype, jnp.floating):
        return []
    return [np.asarray(leaf).astype(np.float64).ravel()]


def _share(sizes, name, unit):
    """What becomes of sorted sizes in a format, in which ``unit`` stands for 1. (Halfway, the even neighbor wins.)"""
    info = jnp.finfo(name)
    largest, smallest = float(info.max), float(info.smallest_subnormal)
    normal = float(info.smallest_normal)
    gap = 2.0 ** (np.floor(np.log2(largest)) - info.nmant)
    is_even = (largest / gap) % 2 == 0
    zero = np.searchsorted(sizes, smallest / 2 * unit, side="right")
    low = np.searchsorted(sizes, (normal - smallest / 2) * unit, side="left")
    high = np.searchsorted(sizes, (largest + gap / 2) * unit, side="right" if is_even else "left")
    return Share(int(zero), int(low - zero), int(len(sizes) - high))
