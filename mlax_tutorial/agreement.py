"""Whether all processes hold the same numbers, where they should.

JAX takes an array that claims to be the same on all devices at its word: of the constructors only ``jax.device_put`` compares. If a process loads
another checkpoint, or draws with another key, training goes on and each process has a model of its own. :func:`check_agreement` compares them, for the
price of 8 bytes a weight's part.
"""

import hashlib
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from mlax_tutorial.nn.arrays import key_bits


def check_agreement(tree: Any, name: str = "tree") -> None:
    """Compare what all processes hold of a tree, bit for bit, and name the first leaf that differs.

    Parts of an array that several devices hold must be equal on all of them. Arrays that live in a process alone, NumPy's too, must be equal
    in all processes. All processes must call this, and all raise or none does. In a single process, its devices are compared.

    Args:
      tree: a pytree of arrays: weights, the optimizer's state, typed keys, a stream's position.
      name: what to call it in the error.

    Raises:
      ValueError: if something differs: the path of the first leaf that does, and the processes, as one against another.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import sharding
      >>> sharding.check_agreement({"kernel": jnp.ones(3)})
    """
    flat = [
        (jax.tree_util.keystr(path), _plain(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]
    outline = _digest(repr([(path, leaf.shape, str(leaf.dtype)) for path, leaf in flat]).encode())
    devices = jax.devices()
    mine = [device for device in devices if device.process_index == jax.process_index()]
    owners = [device.process_index for device in devices]
    # Their structures first, since a table of another width could not be gathered.
    outlines = _gathered([[outline] for _ in mine])
    if other := _first_other(range(len(devices)), outlines[:, 0]):
        one, another = (owners[place] for place in other)
        raise ValueError(
            f"check_agreement: {name} has other paths, shapes or dtypes in process {another} than in process {one}: "
            "build it in the same way in all processes."
        )
    if not flat:
        return
    found = _gathered([[_digest(_part(leaf, device)) for _, leaf in flat] for device in mine])
    for column, (path, leaf) in enumerate(flat):
        for places in _sharers(leaf, devices):
            if other := _first_other(places, found[:, column]):
                one, another = (f"process {owners[place]} (device {devices[place].id})" for place in other)
                raise ValueError(
                    f"check_agreement: {name}{path} differs: {another} holds other numbers than {one}. Were they drawn with "
                    "another key, or read from another file?"
                )


def _plain(leaf):
    leaf = key_bits(leaf)
    return leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)


def _part(leaf, device):
    """What a device of this process holds of a leaf, as bytes; of one that lives in the process, all of it."""
    if isinstance(leaf, jax.Array):
        for shard in leaf.addressable_shards:
            if shard.device == device:
                return np.asarray(shard.data).tobytes()
        if not leaf.is_fully_addressable:
            return b""  # it lives on other devices only
    return np.asarray(leaf).tobytes()


def _sharers(leaf, devices):
    """Which devices, as positions, must hold the same."""
    if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable and jax.process_count() > 1:
        return [range(len(devices))]
    groups = {}
    for device, index in leaf.sharding.devices_indices_map(leaf.shape).items():
        groups.setdefault(str(index), []).append(devices.index(device))
    return groups.values()


def _first_other(places, digests):
    first = places[0]
    return next(((first, place) for place in places if (digests[place] != digests[first]).any()), None)


def _digest(data):
    return [*np.frombuffer(hashlib.blake2b(data, digest_size=8).digest(), np.uint32)]


def _gathered(rows):
    """The rows of all devices, in the order of ``jax.devices()``, in every process."""
    mesh = Mesh(np.array(jax.devices()), ("devices",), axis_types=(AxisType.Auto,))
    by_device = NamedSharding(mesh, PartitionSpec("devices"))
    rows = jax.make_array_from_process_local_data(by_device, np.array(rows, np.uint32))
    everywhere = jax.jit(lambda rows: rows, out_shardings=NamedSharding(mesh, PartitionSpec()))
    return np.asarray(everywhere(rows))
