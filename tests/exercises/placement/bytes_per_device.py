"""Answers to the exercise placement.bytes_per_device."""

import math

from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.exercises.placement.bytes_per_device import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def named(entry):
    return () if entry is None else (entry,) if isinstance(entry, str) else entry


def counted(shape, itemsize, sizes, spec, even=True, once=True):
    names = [name for entry in spec for name in named(entry)]
    if once and len(names) != len(set(names)):
        raise ValueError("twice")
    total = itemsize
    for axis, length in enumerate(shape):
        parts = math.prod(sizes[name] for name in named(spec[axis] if axis < len(spec) else None))
        if even and length % parts:
            raise ValueError("uneven")
        total *= -(-length // parts)
    return total


@answers.wrong("nothing is divided, so each device has all of it")
def over_all_devices(shape, itemsize, sizes, spec):
    return counted(shape, itemsize, sizes, spec) // math.prod(sizes.values()) or 1


@answers.wrong("divides one axis over both axes of the mesh")
def first_name_only(shape, itemsize, sizes, spec):
    spec = tuple(entry[0] if isinstance(entry, tuple) else entry for entry in spec)
    return counted(shape, itemsize, sizes, spec)


@answers.wrong("6 rows cannot be divided evenly by 4")
def rounds_up(shape, itemsize, sizes, spec):
    return counted(shape, itemsize, sizes, spec, even=False)


@answers.wrong("a mesh axis can divide only one axis of the array")
def twice(shape, itemsize, sizes, spec):
    return counted(shape, itemsize, sizes, spec, once=False)


@answers.wrong("copied along the other")
def float32_always(shape, itemsize, sizes, spec):
    got = counted(shape, 4, sizes, spec)
    return got if not spec else got // 2


@answers.wrong("an entry that is None divides nothing")
def without_the_dtype(shape, itemsize, sizes, spec):
    return counted(shape, 4, sizes, spec)


@answers.wrong("raised")
def needs_a_full_spec(shape, itemsize, sizes, spec):
    total = itemsize
    for axis, length in enumerate(shape):
        total *= length // math.prod(sizes[name] for name in named(spec[axis]))
    return total


@answers.wrong("even an axis of size 1")
def divides_first(shape, itemsize, sizes, spec):
    spec = tuple(tuple(name for name in named(entry) if sizes[name] > 1) for entry in spec)
    return counted(shape, itemsize, sizes, spec)


@answers.wrong("raised")
def fewer_than_parts(shape, itemsize, sizes, spec):
    for length, entry in zip(shape, spec):
        if entry is not None and not length:
            raise ValueError("nothing to divide")
    return counted(shape, itemsize, sizes, spec)


# Right ones of unusual style

answers.right(counted)


@answers.right
def by_jax(shape, itemsize, sizes, spec):
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    try:
        return itemsize * math.prod(NamedSharding(mesh, P(*spec)).shard_shape(tuple(shape)))
    except Exception as error:
        raise ValueError(str(error)) from error
