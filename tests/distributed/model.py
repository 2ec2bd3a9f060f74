"""A small decoder Transformer, its optimizer, its sharding rules and its training step."""

import functools
import time
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from mlax_tutorial import nn, optim

VOCABULARY, WIDTH, DEPTH, STEPS = 16, 16, 2, 3
IDS = np.random.default_rng(0).integers(0, VOCABULARY, (8, 7)).astype("int32")
RULES = [
    ("*['embed']", P("model", "data")),
    ("*['out_kernel']", P(..., "model", None, "data")),
    (
        lambda path: path.endswith(("['query_kernel']", "['key_kernel']", "['value_kernel']")),
        P(..., "data", "model", None),
    ),
    ("*[2]['kernel']", P(..., "data", "model")),
    ("*[3]['bias']", P(..., "model")),
    ("*[5]['kernel']", P(..., "model", "data")),
    ("*['scale']", P()),
]
# A large epsilon: otherwise Adam's first steps are of full size where a gradient is nothing but rounding.
OPTIMIZER = optim.Chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(1e-2, epsilon=1e-4))


class Decoder(nn.Composite):
    embed: nn.Layer
    blocks: nn.Layer
    norm: nn.Layer

    def forward(self, call, ids):
        return call.embed.attend(call.norm(call.blocks(call.embed(ids))))


def decoder():
    attention = nn.MultiHeadAttention(heads=4, kv_heads=2, causal=True, rotary_base=100)
    feedforward = nn.Linear(2 * WIDTH), nn.Bias(), nn.F(jax.nn.gelu), nn.Linear(WIDTH)
    block = nn.Series(
        nn.Residual(nn.Series(nn.RMSNorm(), nn.Scale(), attention)),
        nn.Residual(nn.Series(nn.RMSNorm(), nn.Scale(), *feedforward)),
    )
    return Decoder(nn.Embed(VOCABULARY, WIDTH), nn.Stack(block, DEPTH), nn.RMSNorm())


MODEL = decoder()


def mesh(*shape, devices=None):
    return jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2, devices=devices)


def train_step(trainables, state, ids, average=lambda loss: loss):
    def loss_fn(trainables):
        logits, _ = MODEL.fwd(ids[:, :-1], trainables, ())
        losses = optax.losses.softmax_cross_entropy_with_integer_labels(logits, ids[:, 1:])
        return average(jnp.mean(losses))

    loss, gradients = jax.value_and_grad(loss_fn)(trainables)
    updates, state = OPTIMIZER.step(gradients, state, trainables)
    return optim.apply_updates(trainables, updates), state, loss


def sharded_step(trainables, state):
    """The step, compiled so that weights and state stay where they are."""
    places = jax.tree.map(lambda leaf: leaf.sharding, (trainables, state))
    return jax.jit(train_step, out_shardings=(*places, None))


def train(step, trainables, state, ids):
    losses = []
    for _ in range(STEPS):
        trainables, state, loss = step(trainables, state, ids)
        losses.append(loss)
    return trainables, state, jnp.stack(losses)


@functools.cache
def on_one_device():
    """What everything is compared with: weights at the beginning; weights, state and losses after training."""
    begin, _ = jax.jit(MODEL.init)(jax.random.key(0), IDS[:, :-1])
    return begin, train(jax.jit(train_step), begin, OPTIMIZER.init(begin), IDS)


def check_parts(got, wanted, rtol=1e-4, atol=2e-5):
    """Compare the parts of arrays that this process holds with the same parts of whole arrays."""
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(wanted)):
        assert a.shape == b.shape and a.dtype == b.dtype
        for part in a.addressable_shards:
            np.testing.assert_allclose(
                part.data, np.asarray(b)[part.index], rtol, atol, err_msg=jax.tree_util.keystr(path)
            )


def check_places(trainables, state):
    """Every kernel is spread over all devices, and each moment lives where its weight lives."""
    for path, weight in jax.tree_util.tree_leaves_with_path(trainables):
        if path[-1].key not in ("scale", "bias"):
            assert not weight.is_fully_replicated
            assert {8 * part.data.size for part in weight.addressable_shards} == {weight.size}, path
    adam = state.inner[1]
    assert adam.count.is_fully_replicated
    for moments in (adam.first_moment, adam.second_moment):
        for weight, moment in zip(jax.tree.leaves(trainables), jax.tree.leaves(moments), strict=True):
            assert moment.sharding.is_equivalent_to(weight.sharding, weight.ndim)


def run_checks(checks):
    """Run all; return what went wrong, by name."""
    results = {}
    for name, check in checks.items():
        begin = time.perf_counter(), time.process_time()
        try:
            check()
            results[name] = "passed"
        except Exception:
            results[name] = traceback.format_exc()
        wall, busy = time.perf_counter() - begin[0], time.process_time() - begin[1]
        print(f"{name}: {wall:.1f} s, of the processor {busy:.1f} s", flush=True)  # seen after a time-out
    return results
