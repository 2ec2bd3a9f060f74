"""The GPT of the chapter, in JAX and in PyTorch: the same weights, the same batches, three seeds.

Both sides train by Adam, since PyTorch's Muon has other constants. What has to be minded: our kernels of attention have an axis for
the heads; rotary positions pair feature i with i + d / 2 on both sides; the norms have no weights.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.twins._sides import by_path, differences, run_torch
from examples import gpt
from mlax_tutorial import data, optim, training

TORCH = Path(__file__).with_name("gpt_torch.py")
ABOUT = "a GPT of two blocks and 239,424 weights on the Jargon File, Adam, 16 windows of 64 characters"
STEPS, RATE = 200, 0.002
RECIPE = gpt.RECIPES["alone"]


def loss(logits, ids):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, ids).mean()


def start(model, seed, ids):
    """Initial weights. Those that are zero in the chapter are drawn, so that all have gradients in the first step."""
    trainables, _ = model.init(jax.random.key(seed), ids)
    leaves, structure = jax.tree.flatten(trainables)
    keys = jax.random.split(jax.random.key(seed + 100), len(leaves))
    drawn = [
        leaf if leaf.any() else 0.02 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, keys)
    ]
    return jax.tree.unflatten(structure, drawn)


def run(seed):
    """One seed on both sides: ``(differences of the first step, ours, PyTorch's)``."""
    train_text, test_text = data.jargon()
    alphabet = sorted(set(train_text))
    ids, test_ids = (gpt.encode(alphabet, text) for text in (train_text, test_text))
    model, random = gpt.make_model(RECIPE, len(alphabet)), np.random.default_rng(seed)
    width = RECIPE.context + 1
    rows = random.integers(0, len(ids) - width, (STEPS, RECIPE.batch))[..., None] + np.arange(width)
    batches, test = ids[rows], test_ids[: len(test_ids) // width * width].reshape(-1, width)
    trainables = start(model, seed, batches[0, :, :-1])
    given = {"batches": batches, "test": test, "rate": RATE, "heads": RECIPE.heads}
    theirs = run_torch(TORCH, given, by_path(trainables))

    # The first step in float64, as on the other side: in float32 each library rounds in its own way.
    with jax.enable_x64(True):

        def batch_loss(exact):
            return loss(model.fwd(batches[0, :, :-1], exact, ())[0], batches[0, :, 1:])

        exact = jax.tree.map(lambda leaf: np.asarray(leaf).astype(np.float64), trainables)
        first, gradients = jax.jit(jax.value_and_grad(batch_loss))(exact)
    found = differences(first, theirs["first loss"], by_path(gradients), theirs)

    optimizer, step = optim.Adam(RATE), training.make_step(model, loss)
    state = training.State(trainables, (), optimizer.init(trainables))
    losses, seconds = [], []
    for batch in batches:
        begin = time.perf_counter()
        state, value = step(optimizer, state, None, batch[:, :-1], batch[:, 1:])
        losses.append(float(value))  # PyTorch waits at each step, too
        seconds.append(time.perf_counter() - begin)
    right = jax.jit(lambda w, ids: jnp.mean(model.fwd(ids[:, :-1], w, ())[0].argmax(-1) == ids[:, 1:]))
    accuracy = float(right(state.trainables, test))
    return found, {"losses": losses, "seconds": seconds, "accuracy": accuracy}, theirs
