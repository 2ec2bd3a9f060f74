"""The bytes that a tree's arrays take on each device."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed


def solution(tree):
    counted = collections.Counter()
    arrays = {id(leaf): leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)}
    for array in arrays.values():
        for shard in array.addressable_shards:
            counted[shard.device] += shard.data.nbytes
    return dict(counted)


def check(live_bytes):
    devices = jax.devices()
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    last = devices[-1]
    one = jax.device_put(jnp.zeros(10), devices[0])
    half = jax.device_put(jnp.zeros((4, 3), jnp.float16), last)
    rows = jax.device_put(jnp.zeros((8, 5)), NamedSharding(mesh, P(("data", "model"))))
    both = jax.device_put(jnp.zeros((8, 5)), NamedSharding(mesh, P("data")))
    copied = jax.device_put(jnp.zeros((8, 5)), NamedSharding(mesh, P()))
    trees = {
        "an array of 10 numbers on one device": [one],
        "two arrays on two devices": {"a": one, "b": (half, None)},
        "an array whose rows are divided over eight devices": rows,
        "an array that is copied to all devices": (copied,),
        "an array whose rows are divided over one axis of a mesh of 4 × 2": both,
        "the same array twice": {"weights": rows, "head": rows},
        "two arrays with the same numbers": [one, jax.device_put(jnp.zeros(10), devices[0])],
        "an array beside a NumPy array and a number": [one, np.zeros(100, np.float32), 3.0],
        "all of them": [one, half, rows, both, copied, one, np.zeros(3)],
    }
    mistakes = {
        "an array that is copied to all devices": "An array that is copied takes its whole size on *each* device. `nbytes` of the array counts it once; its `addressable_shards` tell.",
        "the same array twice": "An array that stands in the tree twice takes its memory once.",
        "two arrays with the same numbers": "Arrays that only look alike take memory each: tell them apart by `id`.",
        "an array beside a NumPy array and a number": "NumPy arrays and Python numbers are on the host: they take nothing on a device.",
        "an array whose rows are divided over eight devices": "Each device has an eighth of the rows, so an eighth of the bytes.",
    }
    for what, tree in trees.items():
        got, expected = live_bytes(tree), solution(tree)
        if not isinstance(got, dict):
            raise Failed("Return a dict from device to bytes.", got=got)
        if any(not isinstance(device, jax.Device) for device in got):
            raise Failed(
                "The keys are devices, such as `shard.device`.", input=what, got=[str(key) for key in got]
            )
        named = {str(device): int(count) for device, count in got.items() if count}
        wanted = {str(device): count for device, count in expected.items()}
        if named != wanted:
            raise Failed(mistakes.get(what, "The bytes are wrong."), input=what, expected=wanted, got=named)


exercise = Exercise(
    title="The bytes of a tree on each device",
    stars=2,
    minutes=12,
    why="Out of memory is said of one device: what counts there is its shards, and `nbytes` of an array does not tell.",
    hints=(
        "`array.addressable_shards` lists the parts that this process can reach; each has a `device` and its `data`, an array of its own.",
        "Collect the arrays of the tree in a dict by `id(array)` first: then each is there once.",
        "`isinstance(leaf, jax.Array)` tells JAX arrays from the rest, and a `collections.Counter` adds up.",
    ),
    solution=solution,
    check=check,
    devices=8,
)
