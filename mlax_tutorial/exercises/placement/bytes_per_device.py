"""The bytes of a sharded array on one device, by arithmetic."""

import math

from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed


def solution(shape, itemsize, sizes, spec):
    shard, used = list(shape), []
    for axis, names in enumerate(spec):
        names = () if names is None else (names,) if isinstance(names, str) else tuple(names)
        used += names
        parts = math.prod(sizes[name] for name in names)
        if shard[axis] % parts:
            raise ValueError(f"axis {axis} of {shape} cannot be divided by {parts}")
        shard[axis] //= parts
    if len(set(used)) < len(used):
        raise ValueError(f"a mesh axis is used twice in {spec}")
    return itemsize * math.prod(shard)


CASES = [
    ((8, 12), 4, (), "nothing is divided, so each device has all of it"),
    ((8, 12), 4, ("data",), "the rows are divided over one axis of the mesh, and copied along the other"),
    ((8, 12), 2, (None, "model"), "an entry that is None divides nothing"),
    ((8, 12), 4, ("data", "model"), "each axis is divided over one axis of the mesh"),
    (
        (16, 3),
        4,
        (("data", "model"),),
        "an entry that is a tuple divides one axis over both axes of the mesh",
    ),
    ((24,), 1, (("model",),), "a tuple may have one name"),
    ((), 4, (), "a scalar has one number"),
    ((0, 8), 4, ("data",), "no rows can be divided evenly, too"),
    ((6, 4), 4, (("expert", "data"), "model"), "a mesh may have three axes, with any names"),
]
REFUSED = [
    ((6, 12), 4, ("model",), "6 rows cannot be divided evenly by 4"),
    ((4, 4), 4, (("data", "model"), None), "4 rows cannot be divided evenly by 2 times 4"),
    ((8, 8), 4, ("data", "data"), "a mesh axis can divide only one axis of the array"),
    ((16,), 4, (("model", "model"),), "a mesh axis can be used only once"),
    ((8, 8), 4, ("expert", "expert"), "even an axis of size 1 can be used only once"),
]


def check(bytes_per_device):
    sizes = {"data": 2, "model": 4, "expert": 1}
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    for shape, itemsize, spec, why in CASES:
        shard = NamedSharding(mesh, P(*spec)).shard_shape(shape)
        expected = itemsize * math.prod(shard)
        got = bytes_per_device(shape, itemsize, dict(sizes), spec)
        if got != expected or isinstance(got, bool):
            where = {"shape": shape, "itemsize": itemsize, "sizes": sizes, "spec": spec}
            raise Failed(
                f"The bytes are wrong: {why}. Each device holds {shard}.",
                input=where,
                expected=expected,
                got=got,
            )
    for shape, itemsize, spec, why in REFUSED:
        where = {"shape": shape, "itemsize": itemsize, "sizes": sizes, "spec": spec}
        try:
            got = bytes_per_device(shape, itemsize, dict(sizes), spec)
        except Exception as error:
            if isinstance(getattr(error, "error", error), ValueError):
                continue
            raise
        raise Failed(f"This has to be a ValueError: {why}.", input=where, got=got)


exercise = Exercise(
    title="Bytes on a device, by arithmetic",
    stars=2,
    minutes=12,
    why="Whether a model fits is decided on paper: divide each axis by the mesh axes that its entry names, and copy along the rest.",
    hints=(
        "Make a tuple of names of each entry first: `()` for None, `(entry,)` for a string.",
        "`math.prod` of the named axes' sizes is the number of parts; `%` says whether they are even.",
        "Collect all names that were used: if a set of them is shorter, one was used twice.",
    ),
    solution=solution,
    check=check,
)
