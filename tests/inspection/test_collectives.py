"""What devices tell each other, read from compiled programs: of two devices here, and of texts of larger meshes."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.inspection import collectives

MESH = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
X = jnp.arange(16.0).reshape(8, 2)


def mapped(local):
    return jax.shard_map(local, mesh=MESH, in_specs=P("data"), out_specs=P("data"))


SWAP = [(0, 1), (1, 0)]
# What one device does, and the collective that it becomes: its kind, the bytes of its result, and what is sent.
LOCAL = {
    "psum": (lambda x: jax.lax.psum(x, "data"), ("all-reduce", 32, 32)),
    "all_gather": (lambda x: jax.lax.all_gather(x, "data", tiled=True), ("all-gather", 64, 32)),
    "psum_scatter": (lambda x: jax.lax.psum_scatter(x, "data", tiled=True), ("reduce-scatter", 16, 16)),
    "all_to_all": (lambda x: jax.lax.all_to_all(x, "data", 0, 0, tiled=True), ("all-to-all", 32, 16)),
    "ppermute": (lambda x: jax.lax.ppermute(x, "data", SWAP), ("collective-permute", 32, 32)),
}


@pytest.mark.parametrize("name", LOCAL)
def test_each_collective_is_found(name):
    local, (kind, size, sent) = LOCAL[name]
    [found] = collectives.find(mapped(local), X)
    assert (found.kind, found.bytes, found.sent, found.times) == (kind, size, sent, 1)
    assert found.groups == (((0, 1), (1, 0)) if name == "ppermute" else ((0, 1),))
    assert collectives.count(jax.jit(mapped(local)), X) == {kind: (1, size)}


def test_narrow_numbers_have_fewer_bytes():
    [found] = collectives.find(mapped(lambda x: jax.lax.ppermute(x, "data", SWAP)), X.astype(jnp.int16))
    assert found.bytes == 16


def test_loops_count_as_often_as_they_run():
    def local(x):
        def twice(x, _):
            return jax.lax.scan(lambda x, _: (jax.lax.ppermute(x, "data", SWAP), None), x, length=3)[0], None

        return jax.lax.scan(twice, x, length=5)[0]

    assert collectives.count(mapped(local), X) == {"collective-permute": (15, 15 * 32)}


def test_what_xla_puts_in_is_found():
    x = jax.device_put(X, NamedSharding(MESH, P("data")))
    assert collectives.count(jnp.sum, x) == {"all-reduce": (1, 4)}
    assert collectives.count(jax.jit(jnp.sum).lower(x).compile()) == {"all-reduce": (1, 4)}
    assert collectives.count(jnp.sin, x) == {}


LINE = "  %r = f32[4]{0} all-reduce(%x), channel_id=1, replica_groups=GROUPS, use_global_device_ids=true"
GROUPS = {
    "{{0,1,2,3},{4,5,6,7}}": ((0, 1, 2, 3), (4, 5, 6, 7)),
    "{}": ((0, 1, 2, 3, 4, 5, 6, 7),),
    "[2,4]<=[8]": ((0, 1, 2, 3), (4, 5, 6, 7)),
    "[2,4]<=[4,2]T(1,0)": ((0, 2, 4, 6), (1, 3, 5, 7)),
    "mesh['data'=4,'model'=2] {'data'}": ((0, 2, 4, 6), (1, 3, 5, 7)),
    "mesh['data'=4,'model'=2] {'model'}": ((0, 1), (2, 3), (4, 5), (6, 7)),
    "mesh['data'=4,'model'=2] {'data','model'}": ((0, 1, 2, 3, 4, 5, 6, 7),),
    "mesh['x'=8] {'x':(2)4}": ((0, 1, 2, 3), (4, 5, 6, 7)),
    "mesh['x'=8] {'x':(1)2}": ((0, 4), (1, 5), (2, 6), (3, 7)),
}


@pytest.mark.parametrize("groups", GROUPS)
def test_groups_in_all_of_their_forms(groups):
    text = "ENTRY %main (x: f32[4]) -> f32[4] {\n" + LINE.replace("GROUPS", groups) + "\n}\n"
    [found] = collectives._read(text, 8)
    assert found.groups == GROUPS[groups] and found.bytes == 16


def test_what_runs_meanwhile_counts_once():
    text = """ENTRY %main (x: f32[4]) -> f32[8] {
  %s = (f32[4]{0}, f32[8]{0}) all-gather-start(%x), replica_groups={{0,1}}, dimensions={0}
  %d = f32[8]{0} all-gather-done(%s)
}
"""
    [found] = collectives._read(text, 2)
    assert found.bytes == 32
