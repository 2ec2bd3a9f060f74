"""Fully sharded data parallelism with tensor parallelism: three steps on eight devices, and three more on two, from a checkpoint.

The devices of a process are fixed when JAX starts, so each part is a process of its own, which runs this file: ``DIRECTORY DEVICES``.
"""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import nn, optim, saving, sharding, streams, training

WORDS, WIDTH = 16, 16
IDS = np.random.default_rng(0).integers(0, WORDS, (32, 7)).astype("int32")
RULES = [
    ("['words']['embed']", P("model", "data")),
    ("*['out_kernel']", P(..., "model", None, "data")),
    ("*['attention']*_kernel']", P(..., "data", "model", None)),
    ("*['widen']['kernel']", P(..., "data", "model")),
    ("*['narrow']['kernel']", P(..., "model", "data")),
]


class Model(nn.Composite):
    words: nn.Layer
    blocks: nn.Layer

    def forward(self, call, ids):
        return call.words.attend(call.blocks(call.words(ids)))


def model():
    attention = nn.Series(norm=nn.RMSNorm(), attention=nn.MultiHeadAttention(2, causal=True))
    forward = nn.Series(
        norm=nn.RMSNorm(), widen=nn.Linear(32), gelu=nn.F(jax.nn.gelu), narrow=nn.Linear(WIDTH)
    )
    block = nn.Series(attend=nn.Residual(attention), think=nn.Residual(forward))
    return Model(nn.Embed(WORDS, WIDTH), nn.Stack(block, 2))


def cross_entropy(logits, ids):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, ids).mean()


def on_one_device(variables):
    """The loss on all data, of the weights gathered on one device: they alone decide about it, not how they were shared out."""
    trainables, rest = jax.device_get(tuple(variables)[:2])
    outputs, _ = jax.jit(model().fwd)(IDS[:, :-1], trainables, rest)
    return float(cross_entropy(outputs, IDS[:, 1:]))


def train(directory, mesh, steps):
    """Go on from the last checkpoint, if there is one. Returns the losses, and those on one device before the first and after the last."""
    optimizer, stream = optim.AdamW(1e-2, epsilon=1e-4), streams.Stream((IDS[:, :-1], IDS[:, 1:]), 8)
    recipe = model(), optimizer, jax.random.key(0), jax.ShapeDtypeStruct((8, 6), "int32"), mesh, RULES
    target = sharding.abstract(*recipe)
    places, losses = jax.tree.map(lambda leaf: leaf.sharding, target), []
    step = training.make_step(recipe[0], cross_entropy, places)
    with saving.Checkpoints(directory) as checkpoints:
        begun, position = checkpoints.latest_step() or 0, stream.begin(seed=1)
        if begun:
            variables, position = checkpoints.restore((target, position))
        else:
            variables = sharding.init(*recipe)
        state, before = training.State(*variables), on_one_device(variables)
        batches = stream.iterate(position, sharding=NamedSharding(mesh, P("data")))
        for _ in range(steps):
            (x, y), position = next(batches)
            state, value = step(optimizer, state, None, x, y)
            losses.append(float(value))
        checkpoints.save(begun + steps, (tuple(state), position))
    kernels = [leaf for leaf in jax.tree.leaves(state.trainables) if leaf.ndim > 2]
    assert all(
        leaf.addressable_shards[0].data.size * mesh.size == leaf.size for leaf in kernels
    )  # shared out
    return losses, before, on_one_device(state)


def run(directory, devices):
    environment = dict(os.environ, JAX_PLATFORMS="cpu", JAX_DISABLE_MOST_OPTIMIZATIONS="1")
    environment.pop("JAX_NUM_CPU_DEVICES", None)
    command = [sys.executable, "-m", "tests.models.test_fully_sharded", str(directory), str(devices)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_eight_devices_saved_two_go_on_with(tmp_path):
    on_eight, _, saved = run(tmp_path / "parts", 8)
    on_two, restored, _ = run(tmp_path / "parts", 2)
    assert restored == saved  # to the bit
    losses, mesh = on_eight + on_two, jax.make_mesh((1, 1), ("data", "model"), devices=jax.devices()[:1])
    np.testing.assert_allclose(losses, train(tmp_path / "whole", mesh, 6)[0], rtol=1e-6, atol=1e-6)
    assert losses[-1] < losses[0]


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", int(sys.argv[2]))
    shape = (int(sys.argv[2]) // 2, 2)
    print(json.dumps(train(sys.argv[1], jax.make_mesh(shape, ("data", "model")), 3)))
