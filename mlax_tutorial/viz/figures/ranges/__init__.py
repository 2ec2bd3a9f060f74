"""``viz.ranges``: the sizes of the numbers in a tree, and which of them each floating-point format can hold.

`measure` counts, and `Ranges` shows the counts: in a notebook as a histogram over the ranges of the formats, with a slider that multiplies
all numbers by a power of two, as a loss scale does; in a terminal as a table. Of a format of the reader's own, `Tuned`, the page
rounds the numbers itself. The markup is made in `page`.
"""

import dataclasses
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.viz.figures.ranges import page

FORMATS = ("float32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3fn")
MOST = 32  # the largest power of two to multiply by
KEPT = 16_000  # bytes of numbers that a page keeps, to round them itself


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


@dataclasses.dataclass(frozen=True)
class Format:
    """A binary format by its numbers.

    Attributes:
      largest, normal, smallest: the largest number, the smallest normal one, and the smallest above zero.
      fraction: how many bits of the fraction are stored.
    """

    largest: float
    normal: float
    smallest: float
    fraction: int

    @classmethod
    def named(cls, name: str) -> "Format":
        """One of JAX's."""
        info = jnp.finfo(name)
        ends = (float(end) for end in (info.max, info.smallest_normal, info.smallest_subnormal))
        return cls(*ends, info.nmant)

    @classmethod
    def of_bits(cls, exponent: int, fraction: int) -> "Format":
        """As IEEE 754 makes one of a sign, some exponent bits and some fraction bits: the highest exponent is for infinity and NaN.

        >>> Format.of_bits(5, 10) == Format.named("float16"), Format.of_bits(8, 7) == Format.named("bfloat16")
        (True, True)
        """
        bias = 2 ** (exponent - 1) - 1
        return cls(
            2.0**bias * (2 - 2.0**-fraction), 2.0 ** (1 - bias), 2.0 ** (1 - bias - fraction), fraction
        )


@dataclasses.dataclass(frozen=True)
class Tuned:
    """A format that the reader sets by its bits, and what the page rounds to it.

    Attributes:
      exponent, fraction: the bits with which the figure begins.
      kept: sizes in order, all of the tree's or some that are spread evenly over them. (K,) of float32, or float64 where float32 would not do.
      share: what becomes of all numbers of the tree.
      kept_share: what becomes of those kept.
    """

    exponent: int
    fraction: int
    kept: np.ndarray
    share: Share
    kept_share: Share


class Ranges:
    """The sizes of the numbers of a tree; a notebook shows a figure, a terminal a table."""

    def __init__(self, measured: Measured, name: str, tuned: Tuned | None = None):
        self.measured, self.name, self.tuned = measured, name, tuned

    def _repr_html_(self):
        return page.write(self.measured, self.name, self.tuned)

    def __repr__(self):
        return page.listing(self.measured, self.name, self.tuned)


def ranges(tree: Any, name: str = "numbers", *, tune: tuple[int, int] | None = None) -> Ranges:
    """Show which floating-point formats can hold the numbers of a tree, and how far a loss scale would move them.

    Weights, activations or gradients: any pytree of arrays. Integers, booleans and random keys are left out.

    Args:
      tree: any pytree; its floating-point numbers are put together.
      name: what to call them.
      tune: exponent bits, 2 to 8, and fraction bits, 1 to 23, of a further format, `yours`. The figure's controls set them, and
        the page itself rounds the numbers, without a kernel; of very many it keeps some thousands, spread evenly over the sizes.

    Returns:
      A `Ranges`: as the last expression of a cell it is a histogram over the ranges of five formats. The slider
      multiplies all numbers by a power of two. A number counts as lost where rounding to nearest makes it zero.

    Raises:
      TypeError: if a leaf has no values, as a ``jax.ShapeDtypeStruct`` has none.
      ValueError: if ``tune`` is not two whole numbers in their ranges.

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
      >>> print(str(viz.ranges(jnp.array([1e-6, 0.5]), tune=(6, 9))).splitlines()[-1])
      yours, 6 + 9          none          none       none
    """
    values = _values(tree)
    return Ranges(_measured(values), name, None if tune is None else _tuned(values, tune))


def measure(tree: Any) -> Measured:
    """Counts the floating-point numbers of a tree; see `Measured`."""
    return _measured(_values(tree))


def _values(tree):
    """The absolute values of all floating-point numbers of a tree, in float64. (N,)"""
    parts = [part for path, leaf in jax.tree_util.tree_leaves_with_path(tree) for part in _parts(path, leaf)]
    return np.abs(np.concatenate([np.zeros(0), *parts]))


def _sorted(values):
    """Those that are finite and not zero, from the smallest to the largest. (n,)"""
    return np.sort(values[np.isfinite(values) & (values > 0)])


def _measured(values):
    nan, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    sizes = _sorted(values)
    exponents, counts = np.unique(np.frexp(sizes)[1] - 1, return_counts=True)
    return Measured(
        bins={int(e): int(n) for e, n in zip(exponents, counts, strict=True)},
        numbers=len(sizes),
        zeros=len(values) - len(sizes) - infinite - nan,
        infinite=infinite,
        nan=nan,
        shares={
            name: [_share(sizes, Format.named(name), 2.0**-k) for k in range(MOST + 1)] for name in FORMATS
        },
    )


def _tuned(values, tune) -> Tuned:
    try:
        exponent, fraction = (operator.index(number) for number in tune)
    except (TypeError, ValueError):
        exponent, fraction = 0, 0
    if not (2 <= exponent <= 8 and 1 <= fraction <= 23):
        raise ValueError(
            f"viz.ranges: tune must be exponent bits from 2 to 8 and fraction bits from 1 to 23, such as (5, 10) for float16; got {tune!r}"
        )
    sizes, form = _sorted(values), Format.of_bits(exponent, fraction)
    with np.errstate(over="ignore"):
        exact = np.array_equal(sizes.astype(np.float32).astype(np.float64), sizes)
    dtype = np.dtype(np.float32 if exact else np.float64)
    most = KEPT // dtype.itemsize
    if len(sizes) <= most:
        kept = sizes
    else:
        kept = sizes[((np.arange(most) + 0.5) * len(sizes) / most).astype(int)]
    return Tuned(exponent, fraction, kept.astype(dtype), _share(sizes, form), _share(kept, form))


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


def _share(sizes, form, unit=1.0):
    """What becomes of sorted sizes in a format, in which ``unit`` stands for 1. (Halfway, the even neighbor wins.)"""
    largest, normal, smallest = form.largest, form.normal, form.smallest
    gap = 2.0 ** (np.floor(np.log2(largest)) - form.fraction)
    is_even = (largest / gap) % 2 == 0
    zero = np.searchsorted(sizes, smallest / 2 * unit, side="right")
    low = np.searchsorted(sizes, (normal - smallest / 2) * unit, side="left")
    high = np.searchsorted(sizes, (largest + gap / 2) * unit, side="right" if is_even else "left")
    return Share(int(zero), int(low - zero), int(len(sizes) - high))
