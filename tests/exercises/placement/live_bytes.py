"""Answers to the exercise placement.live_bytes."""

import jax
import numpy as np

from mlax_tutorial.exercises.placement.live_bytes import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def leaves_of(tree):
    return {id(leaf): leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)}.values()


@answers.wrong("takes its whole size on *each* device")
def divides_evenly(tree):
    counted = {}
    for leaf in leaves_of(tree):
        for device in leaf.devices():
            counted[device] = counted.get(device, 0) + leaf.nbytes // len(leaf.devices())
    return counted


@answers.wrong("so an eighth of the bytes")
def whole_on_each(tree):
    counted = {}
    for leaf in leaves_of(tree):
        for device in leaf.devices():
            counted[device] = counted.get(device, 0) + leaf.nbytes
    return counted


@answers.wrong("takes its memory once")
def counts_twice(tree):
    counted = {}
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array):
            for shard in leaf.addressable_shards:
                counted[shard.device] = counted.get(shard.device, 0) + shard.data.nbytes
    return counted


@answers.wrong("tell them apart by `id`")
def equal_ones_once(tree):
    counted, seen = {}, []
    for leaf in leaves_of(tree):
        if any(leaf.sharding == x.sharding and np.array_equal(leaf, x) for x in seen):
            continue
        seen.append(leaf)
        for shard in leaf.addressable_shards:
            counted[shard.device] = counted.get(shard.device, 0) + shard.data.nbytes
    return counted


@answers.wrong("tell them apart by `id`")
def like_ones_once(tree):
    counted = {}
    for leaf in {(leaf.shape, leaf.dtype, leaf.sharding): leaf for leaf in leaves_of(tree)}.values():
        for shard in leaf.addressable_shards:
            counted[shard.device] = counted.get(shard.device, 0) + shard.data.nbytes
    return counted


@answers.wrong("they take nothing on a device")
def counts_numpy(tree):
    counted = {}
    for leaf in {id(leaf): leaf for leaf in jax.tree.leaves(tree)}.values():
        leaf = leaf if isinstance(leaf, jax.Array) else jax.numpy.asarray(leaf)
        for shard in leaf.addressable_shards:
            counted[shard.device] = counted.get(shard.device, 0) + shard.data.nbytes
    return counted


@answers.wrong("Return a dict")
def a_number(tree):
    return sum(leaf.nbytes for leaf in leaves_of(tree))


@answers.wrong("The keys are devices")
def by_id(tree):
    return {
        shard.device.id: shard.data.nbytes for leaf in leaves_of(tree) for shard in leaf.addressable_shards
    }


@answers.wrong("The bytes are wrong")
def counts_elements(tree):
    counted = {}
    for leaf in leaves_of(tree):
        for shard in leaf.addressable_shards:
            counted[shard.device] = counted.get(shard.device, 0) + shard.data.size
    return counted


# Right ones of unusual style


@answers.right
def by_the_sharding(tree):
    counted = dict.fromkeys(jax.devices("cpu"), 0)  # with zeros
    for leaf in leaves_of(tree):
        size = int(np.prod(leaf.sharding.shard_shape(leaf.shape))) * leaf.dtype.itemsize
        for device in leaf.sharding.device_set:
            counted[device] += size
    return counted


@answers.right
def with_a_list(tree):
    seen, counted = [], {}
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array) and not any(leaf is other for other in seen):
            seen.append(leaf)
            for shard in leaf.addressable_shards:
                counted.setdefault(shard.device, 0)
                counted[shard.device] += shard.data.size * shard.data.itemsize
    return counted
