"""Where the arrays of a checkpoint are to live after a restart with other devices."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.many_hosts import _two


def solution(outline, mesh):
    def place(leaf):
        spec = [None] * len(leaf.shape)
        for axis, size in enumerate(leaf.shape):
            if size % mesh.size == 0:
                spec[axis] = "data"
                break
        sharding = NamedSharding(mesh, P(*spec))
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    return jax.tree.map(place, outline)


def _outline():
    return {
        "kernel": jax.ShapeDtypeStruct((12, 8), jnp.float32),
        "half": jax.ShapeDtypeStruct((5, 8), jnp.bfloat16),
        "bias": jax.ShapeDtypeStruct((7,), jnp.float32),
        "count": jax.ShapeDtypeStruct((), jnp.int32),
        "filters": jax.ShapeDtypeStruct((3, 5, 16), jnp.float32),
        "wide": jax.ShapeDtypeStruct((8, 24), jnp.float32),
    }


_WANTED = {  # the axis that is divided, by the number of devices
    4: {"kernel": 0, "half": 1, "bias": None, "count": None, "filters": 2, "wide": 0},
    2: {"kernel": 0, "half": 1, "bias": None, "count": None, "filters": 2, "wide": 0},
    8: {"kernel": 1, "half": 1, "bias": None, "count": None, "filters": 2, "wide": 0},
    3: {"kernel": 0, "half": None, "bias": None, "count": None, "filters": 0, "wide": 1},
}


def check(targets):
    for size, wanted in _WANTED.items():
        mesh, outline = AbstractMesh((size,), ("data",), axis_types=(AxisType.Auto,)), _outline()
        found = targets(outline, mesh)
        if jax.tree.structure(found) != jax.tree.structure(outline):
            raise Failed("The targets must be a tree built like the outline.", got=found)
        for name, leaf in found.items():
            asked = outline[name]
            if not isinstance(leaf, jax.ShapeDtypeStruct):
                raise Failed(f"For {name!r} a `jax.ShapeDtypeStruct` with a sharding is asked for.", got=leaf)
            if leaf.shape != asked.shape:
                raise Failed(
                    f"The shape of {name!r} must stay that of the whole array, {asked.shape}.", got=leaf.shape
                )
            if leaf.dtype != asked.dtype:
                raise Failed(
                    f"{name!r} is {asked.dtype}, and the target says {leaf.dtype}: Orbax would convert the numbers without a word."
                )
            try:
                sharding = leaf.sharding
            except TypeError as error:  # a PartitionSpec, and no mesh is set
                raise Failed(
                    f"The target of {name!r} has no mesh: give it `sharding=NamedSharding(mesh, …)`."
                ) from error
            if not isinstance(sharding, NamedSharding):
                raise Failed(
                    f"The target of {name!r} says nothing of where it is to live: give it `sharding=NamedSharding(mesh, …)`."
                )
            if leaf.sharding.mesh != mesh:
                raise Failed(f"{name!r} is placed on another mesh than `mesh`.", got=leaf.sharding.mesh)
            divided = [axis for axis, part in enumerate(leaf.sharding.spec) if part is not None]
            right = [] if wanted[name] is None else [wanted[name]]
            if divided and asked.shape[divided[0]] % size:
                raise Failed(
                    f"On {size} devices axis {divided[0]} of {name!r}, of size {asked.shape[divided[0]]}, cannot be divided evenly.",
                    got=leaf.sharding.spec,
                )  # fmt: skip
            if right and not divided:
                raise Failed(
                    f"On {size} devices {name!r} of shape {asked.shape} lies whole on each of them, and it could be divided."
                )
            if divided != right:
                raise Failed(f"On {size} devices the first axis of {name!r}, {asked.shape}, that can be divided is axis {right[0]}.", got=leaf.sharding.spec)  # fmt: skip
    _nested(targets)
    _restart(targets)


def _nested(targets):
    """A tree of another kind."""
    mesh, leaf = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,)), _outline()["half"]
    outline = [leaf, ({"deep": leaf}, leaf)]
    with checks.says(
        "Right for a dict of leaves, but not for a list of a leaf and a tuple: `jax.tree.map` goes through any tree."
    ):
        found = targets(outline, mesh)
        if jax.tree.structure(found) != jax.tree.structure(outline):
            raise Failed("The targets must be a tree built like the outline.", got=found)
        for each in jax.tree.leaves(found):
            spec = getattr(getattr(each, "sharding", None), "spec", ())
            if [axis for axis, part in enumerate(spec) if part is not None] != [1]:
                raise Failed("A leaf of this tree has another target than in a dict.", got=each)


def _placed(whole, sharding):
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def _start(targets):
    """On four devices: values where the targets say. Each process gives what it holds, as a checkpoint's files do."""
    mesh = _two.mesh()
    found = {}
    for name, leaf in targets(_outline(), mesh).items():
        whole = np.arange(np.prod(leaf.shape), dtype="float32").reshape(leaf.shape).astype(leaf.dtype)
        array = _placed(whole, leaf.sharding)
        found[name] = [(shard.index, np.asarray(shard.data, "float32")) for shard in array.addressable_shards]
    return found


def _go_on(targets, saved):
    """On two devices: read the parts that are wanted now, and go on computing."""
    mesh = _two.mesh()
    found = {}
    for name, leaf in targets(_outline(), mesh).items():
        whole = np.zeros(leaf.shape, "float32")
        for index, part in saved[name]:
            whole[index] = part
        array = _placed(whole.astype(leaf.dtype), leaf.sharding)
        total = jax.jit(lambda x: x.astype("float32").sum())(array)
        found[name] = float(total), [shard.data.shape for shard in array.addressable_shards]
    return found


def _restart(targets):
    four = _two.run(_start, targets, devices=2)
    saved = {name: four[0][name] + four[1][name] for name in four[0]}
    for process, found in enumerate(_two.run(_go_on, targets, saved, devices=1)):
        for name, (total, shapes) in found.items():
            count = int(np.prod(_outline()[name].shape))
            if abs(total - count * (count - 1) / 2) > 1e-3 * count**2:
                raise Failed(
                    f"Saved by four devices and read by two, {name!r} has other numbers in process {process}.",
                    got=total,
                )
            if name == "kernel" and shapes != [(6, 8)]:
                raise Failed(f"After the restart on two devices each must hold half of {name!r}.", got=shapes)


exercise = Exercise(
    title="Saved on four devices, continued on two",
    stars=2,
    minutes=15,
    seconds=_two.SECONDS,
    why="A checkpoint holds whole arrays, so the target alone decides where they live: the machine may change, the numbers do not.",
    hints=(
        "`mesh.size` is the number of devices. Go through `leaf.shape`, and take the first axis that it divides.",
        '`spec = [None] * len(leaf.shape)`, then `spec[axis] = "data"`, and `NamedSharding(mesh, P(*spec))`. If no axis fits, the spec stays empty.',
    ),
    solution=solution,
    check=check,
)
