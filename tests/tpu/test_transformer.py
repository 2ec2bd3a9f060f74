"""A training step of a decoder compiles for a TPU v5e with eight chips: data-parallel, and cut up by the rules."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import optim, sharding
from tests.distributed import model as m
from tests.tpu.compiling import chips, compiled

IDS = jax.ShapeDtypeStruct((32, 129), jnp.int32)
KEY = jax.eval_shape(lambda: jax.random.key(0))
dtypes = pytest.mark.parametrize("dtype", ["float32", "bfloat16"])


def lowered_step(shape, rules, dtype):
    """The step with weights in float32 and arithmetic in ``dtype``, lowered, and where each of its arguments lives."""
    mesh = Mesh(np.array(chips(8)).reshape(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    inputs = jax.ShapeDtypeStruct((32, 128), jnp.int32)
    trainables, _, state = sharding.abstract(m.MODEL, m.OPTIMIZER, KEY, inputs, mesh, rules)
    ids = jax.ShapeDtypeStruct(IDS.shape, IDS.dtype, sharding=NamedSharding(mesh, P("data")))

    def step(trainables, state, ids):
        def loss_fn(trainables):
            cast = jax.tree.map(lambda leaf: leaf.astype(dtype), trainables)
            logits = m.MODEL.fwd(ids[:, :-1], cast, ())[0].astype(jnp.float32)
            return optax.losses.softmax_cross_entropy_with_integer_labels(logits, ids[:, 1:]).mean()

        loss, gradients = jax.value_and_grad(loss_fn)(trainables)
        updates, state = m.OPTIMIZER.step(gradients, state, trainables)
        return optim.apply_updates(trainables, updates), state, loss

    places = jax.tree.map(lambda leaf: leaf.sharding, (trainables, state))
    step = jax.jit(step, donate_argnums=(0, 1), out_shardings=(*places, None))
    with jax.set_mesh(mesh):
        return step.lower(trainables, state, ids), trainables


@dtypes
def test_data_parallel(dtype):
    lowered, trainables = lowered_step((8, 1), [], dtype)
    assert all(leaf.sharding.is_fully_replicated for leaf in jax.tree.leaves(trainables))
    text = compiled(lowered).as_text()
    assert "num_partitions=8" in text and "s32[4,129]" in text  # a share of the batch
    assert "all-reduce" in text, "the gradients of eight shards are never added up"
    assert "all-gather" not in text, "each chip has all weights"
    assert ("bf16" in text) == (dtype == "bfloat16")


@dtypes
def test_fully_sharded_and_tensor_parallel(dtype):
    lowered, trainables = lowered_step((4, 2), m.RULES, dtype)
    kernel = trainables["blocks"][1]["layer"][2]["kernel"]
    assert kernel.sharding.shard_shape(kernel.shape) == (m.DEPTH, m.WIDTH // 4, m.WIDTH)
    text = compiled(lowered).as_text()
    assert "num_partitions=8" in text and "s32[8,129]" in text
    assert "all-gather" in text, "the weights' parts are never put together"
    assert "all-reduce" in text or "reduce-scatter" in text
    assert "f32[2,4,16]" in text  # the share of the kernel above is what goes in and comes out
    assert "bf16" in text or dtype == "float32"  # the compiler may round a float32 product's inputs, too
