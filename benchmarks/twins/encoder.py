"""The encoder that finds each bracket's partner, in JAX and in PyTorch: the same weights, the same batches, three seeds.

What has to be minded: PyTorch's `TransformerEncoderLayer` is post-norm unless told ``norm_first``, drops out a tenth by default, and
holds queries, keys and values in one kernel; its GELU is the exact one, ours the approximation by tanh.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.twins._sides import differences, run_torch
from examples import brackets
from mlax_tutorial import optim, training

TORCH = Path(__file__).with_name("encoder_torch.py")
ABOUT = "an encoder of one block on rows of 24 brackets, Adam, batches of 64"  # PyTorch on one thread
KIND, STEPS, RATE, WARM_UP, BATCH_SIZE = "learned places", 500, 3e-3, 30, 64


def named(trainables):
    """Arrays by the names of PyTorch's parameters, in its layouts; of weights and of gradients alike."""
    block = jax.tree.map(lambda leaf: np.asarray(leaf[0]), trainables["blocks"])  # of a stack of one
    attention, wide, narrow = block["attention"], block["mlp"][:2], block["mlp"][3:]
    size = trainables["embed"]["embed"].shape[1]
    three = "query", "key", "value"
    arrays = {
        "embed.weight": trainables["embed"]["embed"],
        "places.weight": trainables["places"]["embed"],
        "block.self_attn.in_proj_weight": np.concatenate(
            [attention[f"{name}_kernel"].reshape(size, size).T for name in three]
        ),
        "block.self_attn.in_proj_bias": np.concatenate([attention[f"{name}_bias"].ravel() for name in three]),
        "block.self_attn.out_proj.weight": attention["out_kernel"].reshape(size, size).T,
        "block.self_attn.out_proj.bias": attention["out_bias"],
    }
    for number, (kernel, bias) in enumerate((wide, narrow), start=1):
        arrays |= {
            f"block.linear{number}.weight": kernel["kernel"].T,
            f"block.linear{number}.bias": bias["bias"],
        }
    for name, norm in (
        ("block.norm1", block["attention_norm"]),
        ("block.norm2", block["mlp_norm"]),
        ("norm", trainables["norm"]),
    ):
        arrays |= {f"{name}.weight": norm["scale"], f"{name}.bias": norm["bias"]}
    for name in ("query", "key"):
        arrays[f"{name}.weight"] = trainables[name]["kernel"].T
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def run(seed):
    """One seed on both sides: ``(differences of the first step, ours, PyTorch's)``."""
    random, model = np.random.default_rng(seed), brackets.KINDS[KIND]
    x, partners = brackets.brackets(random, STEPS * BATCH_SIZE)
    test_x, test_partners = brackets.brackets(np.random.default_rng(10_000), 1000)
    order = np.arange(len(x)).reshape(STEPS, BATCH_SIZE)  # no row comes twice
    trainables, _ = model.init(jax.random.key(seed), x[:1])
    schedule = optim.WarmUp(optim.LinearDecay(RATE, STEPS), WARM_UP)
    given = {
        "x": x, "partners": partners, "order": order, "rates": schedule(jnp.arange(STEPS)), "heads": brackets.HEADS, "test_x": test_x,
        "test_partners": test_partners,
    }  # fmt: skip
    theirs = run_torch(TORCH, given, named(trainables))

    # The first step in float64, as on the other side: what is left are differences of the network.
    with jax.enable_x64(True):

        def batch_loss(exact):
            return brackets.loss(model.fwd(x[order[0]], exact, ())[0], partners[order[0]])

        exact = jax.tree.map(lambda leaf: np.asarray(leaf).astype(np.float64), trainables)
        first, gradients = jax.jit(jax.value_and_grad(batch_loss))(exact)
    found = differences(first, theirs["first loss"], named(gradients), theirs)

    optimizer, step = optim.Adam(schedule), training.make_step(model, brackets.loss)
    state = training.State(trainables, (), optimizer.init(trainables))
    losses, seconds = [], []
    for rows in order:
        begin = time.perf_counter()
        state, value = step(optimizer, state, None, x[rows], partners[rows])
        losses.append(float(value))  # PyTorch waits at each step, too
        seconds.append(time.perf_counter() - begin)
    logits = jax.jit(lambda w, x: model.fwd(x, w, ())[0])(state.trainables, test_x)
    accuracy = float(np.mean(np.argmax(logits, axis=-1) == test_partners))
    return found, {"losses": losses, "seconds": seconds, "accuracy": accuracy}, theirs
