"""Meshes with Explicit axes, as ``jax.make_mesh`` makes them in JAX 0.12 unless told otherwise.

JAX divides the work over a mesh in one of two ways. Over axes of the type Auto, XLA decides where each result lives. Over Explicit
axes the type of each array says so, and each operation must tell it of its result: a product over a dimension that is shared out,
for instance, needs an ``out_sharding``. Layers do not say that, so the library works over Auto axes. An Explicit mesh has a *twin*, of
the same devices and names with Auto axes; an array moves from one to the other without being copied. JAX refuses to compute
with arrays of both in one program, so the doors of the library move what comes in.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding


def auto(mesh: Mesh | AbstractMesh) -> Mesh | AbstractMesh:
    """The mesh with Auto axes: itself, or its twin."""
    if AxisType.Explicit not in mesh.axis_types:
        return mesh
    types = tuple(AxisType.Auto if kind == AxisType.Explicit else kind for kind in mesh.axis_types)
    if isinstance(mesh, Mesh):
        return Mesh(mesh.devices, mesh.axis_names, axis_types=types)
    return mesh.update_axis_types(dict(zip(mesh.axis_names, types)))


def accept(tree: Any) -> Any:
    """The tree, with its arrays and shardings on an Explicit mesh moved to the twin."""
    return jax.tree.map(_move, tree)


def is_explicit(leaf: Any) -> bool:
    """Whether an array, or one in a tree of arrays, lives on an Explicit mesh. At each step, so it takes a third of a microsecond."""
    if isinstance(leaf, (dict, list, tuple)):
        return any(map(is_explicit, jax.tree.leaves(leaf)))
    mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
    return mesh is not None and AxisType.Explicit in mesh.axis_types


def in_context() -> bool:
    """Whether ``jax.set_mesh`` has set an Explicit mesh. Then arrays that are made anew live on it, too."""
    return AxisType.Explicit in jax.sharding.get_abstract_mesh().axis_types


@contextlib.contextmanager
def over_auto():
    """In the block, or the function that it decorates, the mesh that ``jax.set_mesh`` has set has Auto axes."""
    if in_context():
        with jax.set_mesh(auto(jnp.zeros(()).sharding.mesh)):  # jax.sharding.get_mesh, which JAX 0.7.2 lacks
            yield
    else:
        yield


def door(function: Callable) -> Callable:
    """The function, which over an Explicit mesh works on the twin. Traced, it is part of what somebody else brings there."""

    @functools.wraps(function)
    def enter(*trees):
        leaves = jax.tree.leaves(trees)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return function(*trees)
        if in_context() or any(map(is_explicit, leaves)):
            with over_auto():
                return function(*accept(trees))
        return function(*trees)

    return enter


def _move(leaf):
    if isinstance(leaf, NamedSharding):
        return NamedSharding(auto(leaf.mesh), leaf.spec)
    if isinstance(leaf, jax.core.Tracer) or not is_explicit(leaf):
        return leaf
    return jax.device_put(leaf, _move(leaf.sharding))
