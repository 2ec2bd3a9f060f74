"""A bidirectional LSTM on surnames, in JAX and in PyTorch: the same weights, the same batches, three seeds.

There is no dropout, whose draws would differ. What has to be minded: PyTorch has two biases where we have one, and its kernels are
transposed; the order of the gates, i, f, g, o, is the same, and `pack_padded_sequence` does what `lengths` do.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.twins._sides import differences, run_torch
from examples import names_lstm
from mlax_tutorial import data, nn, optim, training

TORCH = Path(__file__).with_name("names_torch.py")
ABOUT = "a bidirectional LSTM of 64 features on surnames, Adam, batches of 128"  # PyTorch on one thread
HIDDEN, EPOCHS, RATE, BATCH_SIZE = 64, 3, 0.003, 128


def make_model(size):
    return nn.Series(
        nn.Embed(size, 32),
        nn.Bidirectional(nn.LSTMCell(HIDDEN), output="last"),
        nn.Linear(names_lstm.CLASSES),
        nn.Bias(),
    )


def loss(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def named(trainables):
    """Our weights by the names that both sides use."""
    embed, cells, kernel, bias = trainables
    flat = {
        "embedding": jax.tree.leaves(embed)[0],
        "head.kernel": jax.tree.leaves(kernel)[0],
        "head.bias": jax.tree.leaves(bias)[0],
    }
    flat |= {f"{way}.{name}": array for way, cell in cells.items() for name, array in cell.items()}
    return {name: np.asarray(array) for name, array in flat.items()}


def run(seed):
    """One seed on both sides: ``(differences of the first step, ours, PyTorch's)``."""
    train_set, test_set = data.names()
    encode, size = names_lstm.encoder(names_lstm.RECIPES["bilstm"], train_set.names)
    (ids, lengths), (test_ids, test_lengths) = encode(train_set.names), encode(test_set.names)
    labels, model = train_set.labels, make_model(size)
    trainables, _ = model.init(jax.random.key(seed), ids[:1], lengths=lengths[:1])
    random = np.random.default_rng(seed)
    whole = len(ids) - len(ids) % BATCH_SIZE
    order = np.concatenate(
        [random.permutation(len(ids))[:whole].reshape(-1, BATCH_SIZE) for _ in range(EPOCHS)]
    )
    given = {
        "ids": ids, "lengths": lengths, "labels": labels, "order": order, "rate": RATE, "test_ids": test_ids,
        "test_lengths": test_lengths, "test_labels": test_set.labels,
    }  # fmt: skip
    theirs = run_torch(TORCH, given, named(trainables))

    def batch_loss(trainables, rows):
        logits, _ = model.fwd(ids[rows], trainables, (), lengths=lengths[rows])
        return loss(logits, labels[rows])

    first, gradients = jax.value_and_grad(batch_loss)(trainables, order[0])
    found = differences(first, theirs["losses"][0], named(gradients), theirs)

    optimizer, step = optim.Adam(RATE), training.make_step(model, loss)
    state = training.State(trainables, (), optimizer.init(trainables))
    losses, seconds = [], []
    for rows in order:
        begin = time.perf_counter()
        state, value = step(optimizer, state, None, ids[rows], labels[rows], lengths=lengths[rows])
        losses.append(float(value))  # PyTorch waits at each step, too
        seconds.append(time.perf_counter() - begin)
    logits, _ = model.fwd(test_ids, state.trainables, (), lengths=jnp.asarray(test_lengths))
    accuracy = float(np.mean(np.argmax(logits, axis=-1) == test_set.labels))
    ours = {"losses": losses, "seconds": seconds, "accuracy": accuracy}
    return found, ours, theirs
