"""``viz.placement``: which part of an array lives on which device, and how many bytes that takes.

`placement` reads the sharding of an array, or takes a shape, a mesh and a spec; `Placement` shows it, and what other specs would
do: in a notebook as a drawing with a list to choose from for each axis, in a terminal as a listing. The markup is made in `page`.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

from mlax_tutorial.viz.figures.placement import page

MOST_DEVICES = 64


class Placement:
    """Which part of an array each device holds; a notebook shows a figure, a terminal a listing.

    Attributes:
      shape, dtype: of the array.
      sizes: a dict from the names of the mesh's axes to their sizes.
      spec: for each axis of the array a tuple of names of the mesh, over which it is divided.
      devices: the numbers of the devices, in the mesh's order.
    """

    def __init__(self, shape, dtype, sizes, spec, devices):
        self.shape, self.dtype, self.sizes = shape, dtype, sizes
        self.spec, self.devices = spec, devices

    @property
    def parts(self) -> tuple[int, ...]:
        """Into how many parts each axis is divided."""
        return tuple(math.prod(self.sizes[name] for name in names) for names in self.spec)

    @property
    def shard(self) -> tuple[int, ...]:
        """The shape of the part that a device holds."""
        return tuple(length // parts for length, parts in zip(self.shape, self.parts))

    @property
    def bytes_per_device(self) -> int:
        return self.dtype.itemsize * math.prod(self.shard)

    def held(self) -> dict[tuple[int, ...], list[int]]:
        """For each part, counted along each axis, the devices that hold it."""
        found = {part: [] for part in itertools.product(*map(range, self.parts))}
        for number, place in zip(self.devices, itertools.product(*map(range, self.sizes.values()))):
            place = dict(zip(self.sizes, place))
            part = []
            for names in self.spec:
                index = 0
                for name in names:
                    index = index * self.sizes[name] + place[name]
                part.append(index)
            found[tuple(part)].append(number)
        return found

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def placement(array: Any, sizes: Mapping[str, int] | None = None, spec: Any = None, *, dtype=jnp.float32):
    """Show which part of an array lives on which device.

    Args:
      array: an array on one device or with a ``NamedSharding``; or the shape of one that need not exist.
      sizes: for a shape, the mesh: a dict from the names of its axes to their sizes. No devices are needed for it.
      spec: for a shape, a ``PartitionSpec``, or a tuple like one; without it nothing is divided.
      dtype: for a shape, that of the array.

    Returns:
      A `Placement`: as the last expression of a cell it is a drawing in which the reader drags axes of the mesh onto those of
      the array, or chooses them from lists.

    Raises:
      ValueError: if an axis cannot be divided evenly, a name is unknown or used twice, or there are more than 64 devices.
      TypeError: if ``array`` is neither, or has another kind of sharding.

    Example:
      >>> from mlax_tutorial import viz
      >>> viz.placement((8, 6), {"data": 2, "model": 2}, ("data",))
      float32 (8, 6) over 4 devices, P('data', None): each holds (4, 6), 96 B
      part (0, 0): devices 0, 1
      part (1, 0): devices 2, 3
    """
    if isinstance(array, jax.Array):
        if sizes is not None or spec is not None:
            raise TypeError(
                "viz.placement: an array has a mesh and a spec of its own: give a shape to try others"
            )
        return _of_array(array)
    if not isinstance(array, (tuple, list)) or not all(isinstance(n, int) and n > 0 for n in array):
        raise TypeError(f"viz.placement: needs a JAX array, or a shape of positive integers, got {array!r}")
    sizes = {"devices": 1} if sizes is None else dict(sizes)
    devices = list(range(math.prod(sizes.values())))
    return _checked(tuple(array), jnp.dtype(dtype), sizes, () if spec is None else tuple(spec), devices)


def _of_array(array):
    sharding = array.sharding
    if isinstance(sharding, SingleDeviceSharding):
        (device,) = array.devices()
        return _checked(array.shape, array.dtype, {"devices": 1}, (), [device.id])
    if not isinstance(sharding, NamedSharding):
        kind = type(sharding).__name__
        raise TypeError(f"viz.placement: knows arrays on one device or with a NamedSharding, got a {kind}")
    devices = [device.id for device in sharding.mesh.devices.flat]
    return _checked(array.shape, array.dtype, dict(sharding.mesh.shape), tuple(sharding.spec), devices)


def _checked(shape, dtype, sizes, entries, devices):
    if len(devices) > MOST_DEVICES:
        raise ValueError(f"viz.placement: draws at most {MOST_DEVICES} devices, got {len(devices)}")
    if len(entries) > len(shape):
        raise ValueError(f"viz.placement: a spec of {len(entries)} entries for an array of {len(shape)} axes")
    entries += (None,) * (len(shape) - len(entries))
    spec = tuple(
        () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry) for entry in entries
    )
    names = list(itertools.chain(*spec))
    for name in names:
        if name not in sizes:
            raise ValueError(f"viz.placement: the mesh has no axis {name!r}; it has {', '.join(sizes)}")
        if names.count(name) > 1:
            raise ValueError(f"viz.placement: the mesh axis {name!r} is used more than once")
    made = Placement(shape, dtype, sizes, spec, devices)
    for axis, (length, parts) in enumerate(zip(shape, made.parts)):
        if length % parts:
            raise ValueError(
                f"viz.placement: axis {axis}, of length {length}, cannot be divided evenly into {parts} parts"
            )
    return made


def written(spec) -> str:
    """
    >>> written((("data",), (), ("data", "model")))
    "P('data', None, ('data', 'model'))"
    """
    entries = [None if not names else names[0] if len(names) == 1 else tuple(names) for names in spec]
    return (
        f"P({', '.join(map(repr, entries))})"
        if entries
        else repr(PartitionSpec()).replace("PartitionSpec", "P")
    )
