"""Run as a program, ``RESULTS INDEX PORT DIRECTORY REFERENCE``: one of two processes with four devices each, or, with the
index 2, a process of its own with eight."""

import json
import pickle
import sys

import jax

INDEX, PORT, DIRECTORY = int(sys.argv[2]), sys.argv[3], sys.argv[4]
if INDEX < 2:
    jax.config.update("jax_num_cpu_devices", 4)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{PORT}", num_processes=2, process_id=INDEX)
else:
    jax.config.update("jax_num_cpu_devices", 8)

import numpy as np  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from mlax_tutorial import saving, sharding  # noqa: E402
from tests.distributed import model as m  # noqa: E402

MESH = m.mesh(4, 2) if INDEX < 2 else m.mesh(2, 4)
RULES = (
    m.RULES
    if INDEX < 2
    else [("*['out_kernel']", P(..., "model", None, None)), ("*['kernel']", P(..., "model"))]
)
ARGUMENTS = m.MODEL, m.OPTIMIZER, jax.random.key(0), jax.ShapeDtypeStruct((8, 6), "int32"), MESH, RULES
KEY, TRAINED = jax.random.key(7), {}


def target():
    trainables, _, state = sharding.abstract(*ARGUMENTS)
    return {
        "trainables": trainables,
        "state": state,
        "key": jax.eval_shape(lambda: KEY),
        "step": m.jnp.int32(0),
    }


def trained():
    """The state after training, in both processes."""
    if not TRAINED:
        trainables, _, state = sharding.init(*ARGUMENTS)
        ids = jax.make_array_from_callback(m.IDS.shape, NamedSharding(MESH, P("data")), lambda i: m.IDS[i])
        trainables, state, losses = m.train(m.sharded_step(trainables, state), trainables, state, ids)
        TRAINED.update(trainables=trainables, state=state, losses=losses)
    return TRAINED["trainables"], TRAINED["state"], TRAINED["losses"]


def whole(tree):
    """All numbers, as a dict of NumPy arrays."""
    tree = jax.jit(lambda tree: tree, out_shardings=NamedSharding(MESH, P()))(tree)
    return {
        jax.tree_util.keystr(path): np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def there_are_two_processes():
    assert (jax.process_count(), jax.local_device_count(), jax.device_count()) == (2, 4, 8)


def a_step_equals_that_of_one_process():
    with open(sys.argv[5], "rb") as file:
        wanted = pickle.load(file)
    trainables, state, losses = trained()
    assert not jax.tree.leaves(trainables)[0].is_fully_addressable
    m.check_parts((trainables, state, losses), wanted)
    m.check_places(trainables, state)


def a_checkpoint_of_both_is_restored_by_both():
    trainables, state, _ = trained()
    saved = {"trainables": trainables, "state": state, "key": KEY, "step": m.jnp.int32(m.STEPS)}
    with saving.Checkpoints(f"{DIRECTORY}/run", keep=2) as checkpoints:
        for step in range(1, 4):
            checkpoints.save(step, saved)
        assert checkpoints.latest_step() == 3
        restored = checkpoints.restore(target())
    for a, b in zip(
        jax.tree.leaves((restored["trainables"], restored["state"])), jax.tree.leaves((trainables, state))
    ):
        assert a.sharding.is_equivalent_to(b.sharding, b.ndim) and a.dtype == b.dtype
        for mine, other in zip(a.addressable_shards, b.addressable_shards, strict=True):
            assert np.asarray(mine.data).tobytes() == np.asarray(other.data).tobytes()
    assert (jax.random.key_data(restored["key"]) == jax.random.key_data(KEY)).all()
    assert int(restored["step"]) == m.STEPS
    arrays = whole((trainables, state))
    if INDEX == 0:
        np.savez(f"{DIRECTORY}/whole.npz", **arrays)


def weights_spread_over_processes_are_refused_as_one_file():
    try:
        saving.save_weights(f"{DIRECTORY}/weights", trained()[0])
    except saving.CheckpointError as error:
        assert "['embed']['embed'] is spread over several processes: save it with Checkpoints" in str(error)
    else:
        raise AssertionError("they were saved")


def a_checkpoint_of_two_is_restored_by_one_on_another_mesh():
    with saving.Checkpoints(f"{DIRECTORY}/run") as checkpoints:
        restored = checkpoints.restore(target())
    wanted, got = np.load(f"{DIRECTORY}/whole.npz"), whole((restored["trainables"], restored["state"]))
    assert set(wanted) == set(got)
    for name, array in got.items():
        assert array.tobytes() == wanted[name].tobytes(), name
    for a, b in zip(jax.tree.leaves(restored), jax.tree.leaves(target())):
        assert b.sharding is None or not hasattr(b.sharding, "spec") or a.sharding == b.sharding
    assert (jax.random.key_data(restored["key"]) == jax.random.key_data(KEY)).all()


BY_TWO = [
    there_are_two_processes,
    a_step_equals_that_of_one_process,
    a_checkpoint_of_both_is_restored_by_both,
    weights_spread_over_processes_are_refused_as_one_file,
]
BY_ONE = [a_checkpoint_of_two_is_restored_by_one_on_another_mesh]

if __name__ == "__main__":
    results = m.run_checks({check.__name__: check for check in (BY_TWO if INDEX < 2 else BY_ONE)})
    with open(sys.argv[1], "w") as file:
        json.dump(results, file)
