"""Run as a program, ``RESULTS REFERENCE``: one process that simulates eight devices. Writes how each check ended, and
what training on one device gave."""

import functools
import json
import pickle
import sys

import jax

jax.config.update("jax_num_cpu_devices", 8)

import numpy as np  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from mlax_tutorial import sharding  # noqa: E402
from tests.distributed import model as m  # noqa: E402

MESH = m.mesh(4, 2)


@functools.cache
def variables():
    ids = jax.ShapeDtypeStruct((8, 6), "int32")
    return sharding.init(m.MODEL, m.OPTIMIZER, jax.random.key(0), ids, MESH, m.RULES, strict=True)


def copies(mesh):
    """The first weights and state, all of them on each device."""
    begin, _ = m.on_one_device()
    return jax.device_put((begin, m.OPTIMIZER.init(begin)), NamedSharding(mesh, P()))


def init_is_that_of_one_device():
    trainables, _, state = variables()
    begin, _ = m.on_one_device()
    m.check_parts(trainables, begin, rtol=1e-6, atol=1e-7)
    m.check_parts(state, m.OPTIMIZER.init(begin))
    m.check_places(trainables, state)


def fully_sharded_and_tensor_parallel():
    trainables, _, state = variables()
    ids = jax.device_put(m.IDS, NamedSharding(MESH, P("data")))
    trainables, state, losses = m.train(m.sharded_step(trainables, state), trainables, state, ids)
    m.check_parts((trainables, state, losses), m.on_one_device()[1])
    m.check_places(trainables, state)


def data_parallel_through_jit():
    mesh = m.mesh(8, 1)
    ids = jax.device_put(m.IDS, NamedSharding(mesh, P("data")))
    m.check_parts(m.train(jax.jit(m.train_step), *copies(mesh), ids), m.on_one_device()[1])


def data_parallel_through_shard_map():
    mesh = m.mesh(8, 1)

    def step(trainables, state, ids):
        return m.train_step(trainables, state, ids, average=lambda loss: jax.lax.pmean(loss, "data"))

    step = jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P("data")), out_specs=(P(), P(), P()))
    m.check_parts(m.train(jax.jit(step), *copies(mesh), m.IDS), m.on_one_device()[1])


CHECKS = [
    init_is_that_of_one_device,
    fully_sharded_and_tensor_parallel,
    data_parallel_through_jit,
    data_parallel_through_shard_map,
]

if __name__ == "__main__":
    results = m.run_checks({check.__name__: check for check in CHECKS})
    with open(sys.argv[1], "w") as file:
        json.dump(results, file)
    with open(sys.argv[2], "wb") as file:  # for the two processes
        pickle.dump(jax.tree.map(np.asarray, m.on_one_device()[1]), file)
