"""A language model on any mesh: fully sharded data parallel along one axis, tensor parallel along the other.

    .venv/bin/python -m examples.fsdp                                  # all devices of this machine, FSDP over all of them
    .venv/bin/python -m examples.fsdp --devices 8 --mesh 4 2           # eight simulated devices: 4 for FSDP, 2 for tensor parallelism
    .venv/bin/python -m examples.fsdp --size medium --precision mixed  # 124 million weights, in bfloat16
    .venv/bin/python -m examples.fsdp --checkpoints DIR                # save every 50 steps; started again, it goes on, on any mesh

It predicts the next character of the Jargon File. What it shows is the division of the work: no device ever holds all weights or all moments,
a checkpoint of eight devices is restored on two, and before it trains, it says how many bytes a step exchanges.
"""

import argparse
import contextlib
import math
import sys
import time

import jax
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import data, nn, optim, precision, saving, sharding, streams, training
from mlax_tutorial.inspection import collectives

# Layers, width, heads, characters of context.
SIZES = {
    "tiny": (2, 32, 2, 32),
    "small": (4, 256, 4, 128),
    "medium": (12, 896, 14, 512),
    "large": (24, 1536, 24, 1024),
}
RULES = [
    ("*['words']['embed']", P("model", "data")),
    ("*['out_kernel']", P(..., "model", None, "data")),
    ("*['attention']*_kernel']", P(..., "data", "model", None)),
    ("*['widen']['kernel']", P(..., "data", "model")),
    ("*['narrow']['kernel']", P(..., "model", "data")),
]


class Decoder(nn.Composite):
    """Characters to logits: ``(batch, time) -> (batch, time, characters)``; the embedding is the last kernel, too."""

    words: nn.Layer
    blocks: nn.Layer
    norm: nn.Layer

    def forward(self, call, ids):
        return call.words.attend(call.norm(call.blocks(call.words(ids))))


def decoder(characters, size):
    layers, width, heads, _ = SIZES[size]
    attention = nn.Series(
        norm=nn.RMSNorm(), attention=nn.MultiHeadAttention(heads, causal=True, rotary_base=10_000)
    )
    forward = nn.Series(
        norm=nn.RMSNorm(), widen=nn.Linear(4 * width), gelu=nn.F(jax.nn.gelu), narrow=nn.Linear(width)
    )
    block = nn.Series(attend=nn.Residual(attention), think=nn.Residual(forward))
    return Decoder(nn.Embed(characters, width), nn.Stack(block, layers), nn.RMSNorm())


def cross_entropy(logits, ids):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, ids).mean()


def encoded(text):
    """The text as numbers, and how many characters there are, rounded up so that any mesh divides the embedding alike."""
    alphabet = {letter: number for number, letter in enumerate(sorted(set(text)))}
    ids = np.array([alphabet[letter] for letter in text], np.int32)
    return ids, -(-len(alphabet) // 128) * 128


def windows(ids, length):
    """All windows of a length that begin at a multiple of it, and what follows each character: ``(windows, length)`` twice."""
    count = (len(ids) - 1) // length
    return ids[: count * length].reshape(count, length), ids[1 : count * length + 1].reshape(count, length)


def train(text, *, mesh, size="small", steps=200, batch_size=32, rate=1e-3, seed=0, directory=None, every=50, mixed=False, say=print):  # fmt: skip
    """Train to the step ``steps``, from the last checkpoint if there is one; returns the state and the losses of these steps."""
    ids, characters = encoded(text)
    length = SIZES[size][3]
    model, stream = decoder(characters, size), streams.Stream(windows(ids, length), batch_size)
    if mixed:
        model = precision.Policy("bfloat16").apply(model)
    optimizer = optim.Chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(rate, epsilon=1e-6))
    recipe = model, optimizer, jax.random.key(seed), jax.ShapeDtypeStruct((batch_size, length), "int32"), mesh, RULES  # fmt: skip
    target = sharding.abstract(*recipe)
    step = training.make_step(model, cross_entropy, jax.tree.map(lambda leaf: leaf.sharding, target))
    where, losses = NamedSharding(mesh, P("data")), []
    weights = sum(leaf.size for leaf in jax.tree.leaves(target[0]))
    with contextlib.ExitStack() as stack:
        checkpoints = stack.enter_context(saving.Checkpoints(directory)) if directory else None
        begun, position = (checkpoints and checkpoints.latest_step()) or 0, stream.begin(seed)
        if begun:
            variables, position = checkpoints.restore((target, position))
            say(f"resumed after step {begun}, on {mesh.size} devices")
        else:
            variables = sharding.init(*recipe)
        state = training.State(*variables)
        held = max(part.data.nbytes for part in jax.tree.leaves(state.trainables)[0].addressable_shards)
        say(f"{weights:,} weights on a mesh of {dict(mesh.shape)}; the largest part of the first is {held:,} bytes")  # fmt: skip
        last = time.perf_counter()
        batches = stream.iterate(position, sharding=where)
        for number in range(begun + 1, steps + 1):
            (x, y), position = next(batches)
            state, loss = step(optimizer, state, None, x, y)
            losses.append(loss)
            if number % every == 0 or number == steps:
                now = time.perf_counter()
                bits = float(loss) / math.log(2)
                say(f"step {number}: {bits:.3f} bits a character, {now - last:.1f} s")
                last = now
                if checkpoints:
                    checkpoints.save(number, (tuple(state), position))
    return state, [float(loss) for loss in losses]


def traffic(text, *, mesh, size="small", batch_size=32, mixed=False):
    """What a step exchanges: for each kind of collective how many, and the bytes of their results on one device."""
    ids, characters = encoded(text)
    length = SIZES[size][3]
    model = decoder(characters, size)
    if mixed:
        model = precision.Policy("bfloat16").apply(model)
    optimizer = optim.Chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(1e-3, epsilon=1e-6))
    rows = jax.ShapeDtypeStruct((batch_size, length), "int32", sharding=NamedSharding(mesh, P("data")))
    target = sharding.abstract(model, optimizer, jax.random.key(0), rows, mesh, RULES)
    step = training.make_step(model, cross_entropy, jax.tree.map(lambda leaf: leaf.sharding, target))
    return collectives.count(lambda *args: step(*args), optimizer, training.State(*target), None, rows, rows)


def add_options(parser):
    """What to train and how, which is asked on one host and on many."""
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--steps", type=int, default=200, help="the number of the last step")
    parser.add_argument("--batch-size", type=int, default=32, help="over all devices")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=50, help="steps between reports and checkpoints")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )  # fmt: skip
    parser.add_argument("--devices", type=int, help="simulate so many devices on the CPU")
    parser.add_argument("--mesh", type=int, nargs=2, metavar=("DATA", "MODEL"), help="FSDP, tensor parallelism; default: all, 1")  # fmt: skip
    add_options(parser)
    parser.add_argument("--precision", choices=("float32", "mixed"), default="float32")
    parser.add_argument("--checkpoints", metavar="DIR", help="go on from what lies there")
    given = parser.parse_args(arguments)
    if given.devices:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", given.devices)
    shape = given.mesh or (len(jax.devices()), 1)
    if math.prod(shape) != len(jax.devices()):
        parser.error(
            f"--mesh {shape[0]} {shape[1]} needs {math.prod(shape)} devices; there are {len(jax.devices())}"
        )
    if given.batch_size % shape[0]:
        parser.error(f"--batch-size {given.batch_size} cannot be divided over {shape[0]} devices")
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    text, mixed = data.jargon().train, given.precision == "mixed"
    options = {"mesh": mesh, "size": given.size, "batch_size": given.batch_size, "mixed": mixed}
    for kind, (count, size) in traffic(text, **options).items():
        print(f"a step: {count} x {kind}, {size / 1e6:.2f} MB on each device")
    train(
        text, **options, steps=given.steps, rate=given.rate, seed=given.seed, every=given.every, directory=given.checkpoints
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
