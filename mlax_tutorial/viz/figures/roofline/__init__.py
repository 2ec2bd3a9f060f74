"""``viz.roofline``: what bounds each of some kernels, arithmetic or memory, and how near it comes to what the machine can do.

`roofline` takes the numbers, `Roofline` shows them: in a notebook as a diagram to step through, in a terminal as a listing. The markup is
made in `page`.
"""

import math
from collections.abc import Mapping

from mlax_tutorial.viz.figures.roofline import page

MOST_KERNELS = 24


class Roofline:
    """What `roofline` was given; a notebook shows a figure, a terminal a listing.

    Attributes:
      kernels: names, and ``(flops, bytes, seconds)``.
      rate: the flat part of the roof, in FLOPs a second.
      bandwidth: its slope, in bytes a second.
    """

    def __init__(self, kernels: Mapping[str, tuple[float, float, float]], rate: float, bandwidth: float):
        self.kernels, self.rate, self.bandwidth = dict(kernels), rate, bandwidth

    @property
    def ridge(self) -> float:
        """FLOPs a byte where the roof bends: below it memory is the bound, from it on arithmetic."""
        return self.rate / self.bandwidth

    def intensity(self, name: str) -> float:
        """FLOPs a byte of a kernel."""
        flops, size, _ = self.kernels[name]
        return flops / size

    def bound(self, name: str) -> str:
        """What bounds a kernel: ``"memory"`` or ``"arithmetic"``."""
        return "arithmetic" if self.intensity(name) >= self.ridge else "memory"

    def share(self, name: str) -> float:
        """How much of the roof above it a kernel reaches: 1 is all. Above 1 the roof was measured too low."""
        flops, size, seconds = self.kernels[name]
        return max(flops / self.rate, size / self.bandwidth) / seconds

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def roofline(
    kernels: Mapping[str, tuple[float, float, float]],
    *,
    rate: float | None = None,
    bandwidth: float | None = None,
) -> Roofline:
    """Show kernels under the roof of what a machine can do.

    Args:
      kernels: for each name its floating-point operations, the bytes that it has to read and write, and the seconds that it took.
      rate: FLOPs a second that the machine can do. If it is not given, the most that one of the kernels reached.
      bandwidth: bytes a second that it can move. If it is not given, the most that one of the kernels reached.

    Returns:
      A `Roofline`: as the last expression of a cell it is a figure with a button for each kernel. It has ``ridge``, ``bound(name)`` and
      ``share(name)``, too.

    Raises:
      ValueError: if there are no kernels or too many, or if a number is not above 0.

    Example:
      >>> from mlax_tutorial import viz
      >>> viz.roofline({"product": (2e9, 12e6, 0.01), "add": (1e6, 12e6, 0.001)})
      roof: 200 GFLOP/s from 16.7 FLOPs a byte on, below it 12 GB/s
        product  167 FLOPs a byte, 200 GFLOP/s, 100 % of the roof, bound by arithmetic
        add  0.0833 FLOPs a byte, 1 GFLOP/s, 100 % of the roof, bound by memory
    """
    if not 0 < len(kernels) <= MOST_KERNELS:
        raise ValueError(f"viz.roofline: shows 1 to {MOST_KERNELS} kernels, got {len(kernels)}")
    for name, numbers in kernels.items():
        if len(numbers) != 3 or not all(math.isfinite(number) and number > 0 for number in numbers):
            raise ValueError(
                f"viz.roofline: {name} needs (flops, bytes, seconds), each above 0, got {numbers}"
            )
    if rate is None:
        rate = max(flops / seconds for flops, _, seconds in kernels.values())
    if bandwidth is None:
        bandwidth = max(size / seconds for _, size, seconds in kernels.values())
    if not (rate > 0 and bandwidth > 0):
        raise ValueError(f"viz.roofline: rate and bandwidth must be above 0, got {rate} and {bandwidth}")
    return Roofline(kernels, rate, bandwidth)
