"""The residual network of the chapter ResNet, in JAX and in PyTorch: the same weights, the same batches, three seeds.

What has to be minded: PyTorch's kernels are OIHW; its momentum of running averages is one minus ours, and its running variance
is unbiased; at strides of 2, "SAME" pads after the last element only, so both sides pad by one on each side.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.twins._sides import by_path, differences, run_torch
from mlax_tutorial import data, nn, optim, training

TORCH = Path(__file__).with_name("resnet_torch.py")
ABOUT = "a residual network of 100,986 weights on 10,000 images of Fashion-MNIST, SGD, batches of 128"
EPOCHS, RATE, MOMENTUM, BATCH_SIZE = 4, 0.1, 0.9, 128
BLOCKS = ((16, 1), (16, 1), (32, 2), (32, 1), (64, 2))  # channels and strides of each
RELU = nn.F(jax.nn.relu)


def conv(channels, size=3, strides=1):
    return nn.Conv(channels, (size, size), strides=strides, padding=size // 2)


def norm():
    return nn.BatchNorm(affine=True)


def average(x):
    return jnp.mean(x, axis=(-3, -2))


def block(channels, strides, skip):
    branch = nn.Series(conv(channels, 3, strides), norm(), RELU, conv(channels), norm())
    shortcut = nn.Series(conv(channels, 1, strides), norm()) if strides > 1 else None
    return (nn.Residual(branch, shortcut) if skip else branch), RELU


def make_model(skip):
    """The network; without ``skip`` only its branches, one after the other."""
    blocks = [layer for channels, strides in BLOCKS for layer in block(channels, strides, skip)]
    return nn.Series(conv(16, strides=2), norm(), RELU, *blocks, nn.F(average), nn.Linear(10), nn.Bias())


def loss(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def named(tree):
    """Arrays by the paths of the layers that hold them, kernels of convolutions in PyTorch's layout."""
    arrays = by_path(tree).items()
    return {name: array.transpose(0, 3, 1, 2) if array.ndim == 4 else array for name, array in arrays}


def prepared(part):
    return (part.images[..., None] / np.float32(255) - np.float32(0.286)) / np.float32(0.353), part.labels


def run(seed, skip=True):
    """One seed on both sides: ``(differences of the first step, ours, PyTorch's)``."""
    (x, labels), (test_x, test_labels) = map(prepared, data.fashion_mnist())
    model = make_model(skip)
    trainables, averages = model.init(jax.random.key(seed), x[:1])
    random = np.random.default_rng(seed)
    whole = len(x) - len(x) % BATCH_SIZE
    order = np.stack([random.permutation(len(x))[:whole].reshape(-1, BATCH_SIZE) for _ in range(EPOCHS)])
    given = {
        "x": x, "labels": labels, "order": order, "rate": RATE, "momentum": MOMENTUM, "blocks": np.array(BLOCKS), "skip": skip,
        "test_x": test_x, "test_labels": test_labels,
    }  # fmt: skip
    theirs = run_torch(TORCH, given, named(trainables))

    # The first step in float64, as on the other side: in float32 each library's convolutions round in their own way.
    with jax.enable_x64(True):

        def batch_loss(exact):
            return loss(model.fwd(x[rows].astype(np.float64), exact, rest)[0], labels[rows])

        rows = order[0, 0]
        exact, rest = jax.tree.map(lambda leaf: np.asarray(leaf).astype(np.float64), (trainables, averages))
        first, gradients = jax.jit(jax.value_and_grad(batch_loss))(exact)
    found = differences(first, theirs["first loss"], named(gradients), theirs)

    def optimizer(epoch):
        return optim.SGD(RATE * (1 - epoch / EPOCHS), momentum=MOMENTUM, nesterov=True)

    step = training.make_step(model, loss)
    state = training.State(trainables, averages, optimizer(0).init(trainables))
    losses, seconds = [], []
    for epoch, batches in enumerate(order):
        for rows in batches:
            begin = time.perf_counter()
            state, value = step(optimizer(epoch), state, None, x[rows], labels[rows])
            losses.append(float(value))  # PyTorch waits at each step, too
            seconds.append(time.perf_counter() - begin)
    evaluate = training.make_evaluation(model, training.is_right)
    accuracy = float(evaluate(state.trainables, state.non_trainables, test_x, test_labels))
    return found, {"losses": losses, "seconds": seconds, "accuracy": accuracy}, theirs
