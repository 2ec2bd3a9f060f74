"""Answers to the exercise many_hosts.targets."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.exercises.many_hosts.targets import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def placed(leaf, mesh, *spec, **other):
    return jax.ShapeDtypeStruct(
        leaf.shape, other.get("dtype", leaf.dtype), sharding=NamedSharding(mesh, P(*spec))
    )


@answers.wrong("lies whole on each of them")
def everywhere(outline, mesh):
    return jax.tree.map(lambda leaf: placed(leaf, mesh), outline)


@answers.wrong("lies whole on each of them")
def two_axes_only(outline, mesh):
    def place(leaf):
        fits = [axis for axis, size in enumerate(leaf.shape[:2]) if size % mesh.size == 0]
        return placed(leaf, mesh, *[None] * fits[0], "data") if fits else placed(leaf, mesh)

    return jax.tree.map(place, outline)


@answers.wrong("cannot be divided evenly")
def always_the_first(outline, mesh):
    return jax.tree.map(lambda leaf: placed(leaf, mesh, *["data"][: len(leaf.shape)]), outline)


@answers.wrong("says nothing of where it is to live")
def no_sharding(outline, mesh):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), outline)


@answers.wrong()  # what it is told depends on the version of JAX
def specs_alone(outline, mesh):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=P()), outline)


@answers.wrong("that can be divided is axis 0")
def the_largest_axis(outline, mesh):
    def place(leaf):
        fits = [axis for axis, size in enumerate(leaf.shape) if size % mesh.size == 0]
        largest = max(fits, key=lambda axis: leaf.shape[axis], default=None)
        return placed(leaf, mesh) if largest is None else placed(leaf, mesh, *[None] * largest, "data")

    return jax.tree.map(place, outline)


@answers.wrong("would convert the numbers")
def in_float32(outline, mesh):
    return jax.tree.map(lambda leaf: placed(leaf, mesh, *first(leaf, mesh.size), dtype=jnp.float32), outline)


@answers.wrong("must stay that of the whole array")
def parts(outline, mesh):
    def place(leaf):
        shape = tuple(size // mesh.size if size % mesh.size == 0 else size for size in leaf.shape)
        return jax.ShapeDtypeStruct(shape, leaf.dtype, sharding=NamedSharding(mesh, P()))

    return jax.tree.map(place, outline)


@answers.wrong("Your code raised")
def all_axes(outline, mesh):
    return jax.tree.map(
        lambda leaf: placed(leaf, mesh, *["data" if size % mesh.size == 0 else None for size in leaf.shape]),
        outline,
    )


@answers.wrong()
def four_devices(outline, mesh):
    return jax.tree.map(lambda leaf: placed(leaf, mesh, *first(leaf, 4)), outline)


@answers.wrong()
def shardings_only(outline, mesh):
    return jax.tree.map(lambda leaf: NamedSharding(mesh, P(*first(leaf, mesh.size))), outline)


def first(leaf, count):
    spec = [None] * len(leaf.shape)
    for axis, size in enumerate(leaf.shape):
        if size % count == 0:
            spec[axis] = "data"
            break
    return spec


@answers.wrong("Your code raised")
def a_dict_only(outline, mesh):
    return {name: placed(leaf, mesh, *first(leaf, mesh.size)) for name, leaf in outline.items()}


@answers.right
def tuples_of_names(outline, mesh):
    def place(leaf):
        return placed(leaf, mesh, *[("data",) if part else None for part in first(leaf, mesh.size)])

    return jax.tree.map(place, outline)


@answers.right
def by_index(outline, mesh):
    def place(leaf):
        fits = [axis for axis, size in enumerate(leaf.shape) if size % mesh.shape["data"] == 0]
        return placed(leaf, mesh, *([None] * fits[0] + ["data"] if fits else []))

    return jax.tree.map(place, outline)
