"""The perceptron 784-512-512-10 on the part of Fashion-MNIST in the package, in JAX and in PyTorch: the same weights, the same batches.

There is no dropout, whose masks would differ. PyTorch's kernels are transposed; its Nesterov momentum is the same formula as ours.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.twins._sides import differences, run_torch
from mlax_tutorial import data, nn, optim, training

TORCH = Path(__file__).with_name("mlp_torch.py")
ABOUT = "784-512-512-10 on 10,000 images, SGD with Nesterov momentum, batches of 128"
EPOCHS, RATE, MOMENTUM, BATCH_SIZE = 5, 0.05, 0.9, 128
MODEL = nn.Series(
    nn.Flatten(2),
    nn.Linear(512), nn.Bias(), nn.F(jax.nn.relu),
    nn.Linear(512), nn.Bias(), nn.F(jax.nn.relu),
    nn.Linear(10), nn.Bias(),
)  # fmt: skip
AFFINE = (1, 4, 7)  # where the kernels are; each bias comes after its kernel


def loss(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def named(trainables):
    """Our weights by the names that both sides use."""
    flat = {f"{i}.kernel": trainables[place]["kernel"] for i, place in enumerate(AFFINE)}
    flat |= {f"{i}.bias": trainables[place + 1]["bias"] for i, place in enumerate(AFFINE)}
    return {name: np.asarray(array) for name, array in flat.items()}


def run(seed):
    """One seed on both sides: ``(differences of the first step, ours, PyTorch's)``."""
    train_set, test_set = data.fashion_mnist()
    x, x_test = (np.float32(part.images) / np.float32(255) for part in (train_set, test_set))
    y, y_test = train_set.labels, test_set.labels
    trainables, _ = MODEL.init(jax.random.key(seed), x[:1])
    keys = jax.random.split(jax.random.key(1000 + seed), EPOCHS)
    order = np.concatenate([training.batches(key, len(x), BATCH_SIZE) for key in keys])
    given = {
        "x": x,
        "y": y,
        "x_test": x_test,
        "y_test": y_test,
        "order": order,
        "rate": RATE,
        "momentum": MOMENTUM,
    }
    theirs = run_torch(TORCH, given, named(trainables))

    def batch_loss(trainables, rows):
        return loss(MODEL.fwd(x[rows], trainables, ())[0], y[rows])

    first, gradients = jax.value_and_grad(batch_loss)(trainables, order[0])
    found = differences(first, theirs["losses"][0], named(gradients), theirs)

    optimizer, step = optim.SGD(RATE, momentum=MOMENTUM, nesterov=True), training.make_step(MODEL, loss)
    state = training.State(trainables, (), optimizer.init(trainables))
    losses, seconds = [], []
    for rows in order:
        begin = time.perf_counter()
        state, value = step(optimizer, state, None, x[rows], y[rows])
        losses.append(float(value))  # PyTorch waits at each step, too
        seconds.append(time.perf_counter() - begin)
    logits, _ = MODEL.fwd(jnp.asarray(x_test), state.trainables, ())
    accuracy = float(np.mean(np.argmax(logits, axis=-1) == y_test))
    return found, {"losses": losses, "seconds": seconds, "accuracy": accuracy}, theirs
