"""Two convolutions with batch norm and pooling, 1,236,010 weights, on the whole of Fashion-MNIST.

    .venv/bin/python -m examples.fashion_conv                    # train, test, and print the accuracy
    .venv/bin/python -m examples.fashion_conv --validate         # for tuning: hold out 5,000 training images instead
    .venv/bin/python -m examples.fashion_conv --record           # train, test, and write the record
    .venv/bin/python -m examples.fashion_conv --checkpoints DIR  # go on from what lies there, bit for bit

The book's chapter on convolution builds these layers. The test images are looked at once, at the end.
"""

import argparse
import contextlib
import math
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import fashion, recording
from examples.checkpoints import resume, save
from mlax_tutorial import nn, optim, saving, training

BATCH_SIZE = 128
PEAK_LEARNING_RATE = 0.003
WEIGHT_DECAY = 0.05
DROPOUT = 0.5
LABEL_SMOOTHING = 0.05
SHIFT = 1  # pixels, at most, in any direction


# The pooling comes first in each block: batch norm and ReLU then have a quarter of the work.
MODEL = nn.Series(
    nn.Conv(32, (5, 5), padding="SAME"), nn.F(fashion.halve), nn.BatchNorm(affine=True), nn.F(jax.nn.relu),
    nn.Conv(96, (3, 3), padding="SAME"), nn.F(fashion.halve), nn.BatchNorm(affine=True), nn.F(jax.nn.relu),
    nn.Flatten(3), nn.Linear(256), nn.BatchNorm(affine=True), nn.F(jax.nn.relu),
    nn.Dropout(DROPOUT), nn.Linear(10), nn.Bias(),
)  # fmt: skip


def loss(logits, labels):
    """Cross-entropy, in which the right class counts 0.95 and the rest is spread over all ten."""
    targets = optax.losses.smooth_labels(jax.nn.one_hot(labels, 10), LABEL_SMOOTHING)
    return optax.losses.softmax_cross_entropy(logits, targets).mean()


def schedule(epochs):
    """The learning rate falls along a half cosine, epoch by epoch. A new rate does not trace again."""

    def optimizer(epoch):
        rate = PEAK_LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * epoch / epochs))
        return optim.AdamW(rate, weight_decay=WEIGHT_DECAY, where=optim.kernels)

    return optimizer


def on_device(part):
    """The images as float32 in [0, 1], of one channel, with their labels, on the default device."""
    return jnp.asarray(part.images, jnp.float32)[..., None] / 255, jnp.asarray(part.labels)


@jax.jit
def augment(key, images):
    """Turn half of the images ``(n, height, width, channels)`` left to right, and shift each by a pixel or none."""
    flip_key, shift_key = jax.random.split(key)
    flips = jax.random.bernoulli(flip_key, shape=(len(images), 1, 1, 1))
    images = jnp.where(flips, images[:, :, ::-1], images)
    rim = (SHIFT, SHIFT)
    padded = jnp.pad(images, ((0, 0), rim, rim, (0, 0)))
    starts = jax.random.randint(shift_key, (len(images), 2), 0, 2 * SHIFT + 1)

    def cut(image, start):
        return jax.lax.dynamic_slice(image, (start[0], start[1], 0), images.shape[1:])

    return jax.vmap(cut)(padded, starts)


@jax.jit
def take(number, order, keys, images, labels):
    """The keys and the batch of one step. Op by op, the four would be dispatched one after the other."""
    return keys[number, 0], keys[number, 1], images[order[number]], labels[order[number]]


def run_epoch(step, optimizer, run, images, labels):
    """One epoch; ``run`` holds all that it depends on: the state, the key, and the number of epochs done."""
    key, order_key, steps_key = jax.random.split(run["key"], 3)
    order = training.batches(order_key, len(images), BATCH_SIZE)
    keys = jax.vmap(jax.random.split)(jax.random.split(steps_key, len(order)))  # two for each step
    state, losses = run["state"], []
    for number in range(len(order)):
        step_key, augment_key, x, y = take(number, order, keys, images, labels)
        state, loss = step(optimizer, state, step_key, augment(augment_key, x), y)
        losses.append(loss)  # on the device: float(loss) would wait for each step
    run = {"state": state, "key": key, "epoch": run["epoch"] + 1}
    return run, float(np.mean(jax.device_get(losses)))


def train(train_set, test_set, epochs, seed, watch=False, directory=None):
    """Train; then, or with ``watch`` after each epoch, test.

    Args:
      directory: where a checkpoint is written after each epoch, and training goes on from the last one.

    Returns:
      The accuracies on the test set, of one epoch each, the last one last; and the mean loss of each epoch.
    """
    init_key, key = jax.random.split(jax.random.key(seed))
    images, labels = on_device(train_set)
    optimizer, step = schedule(epochs), training.make_step(MODEL, loss)
    trainables, non_trainables = MODEL.init(init_key, images[:1])
    state = training.State(trainables, non_trainables, optimizer(0).init(trainables))
    run, losses, accuracies = {"state": state, "key": key, "epoch": 0}, [], []
    evaluate, test_arrays = (
        training.make_evaluation(fashion.BothWays(MODEL), training.is_right),
        on_device(test_set),
    )
    with saving.Checkpoints(directory) if directory else contextlib.nullcontext() as checkpoints:
        if checkpoints is not None:
            run, losses = resume(checkpoints, run, (epochs, seed))
        while run["epoch"] < epochs:
            run, value = run_epoch(step, optimizer(run["epoch"]), run, images, labels)
            losses.append(value)
            line = f"epoch {run['epoch']:2d} of {epochs}: loss {value:.3f}"
            if watch:
                accuracies.append(
                    float(evaluate(run["state"].trainables, run["state"].non_trainables, *test_arrays))
                )
                line += f", accuracy {accuracies[-1]:.2%}"
            print(line, flush=True)
            if checkpoints is not None:
                save(checkpoints, run, losses, (epochs, seed))
    if not watch:
        accuracies.append(float(evaluate(run["state"].trainables, run["state"].non_trainables, *test_arrays)))
    return accuracies, losses


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    fashion.add_options(parser)
    parser.add_argument(
        "--checkpoints", type=Path, help="a directory: save after each epoch, resume from the last"
    )
    parser.add_argument("--validate", action="store_true", help="test on held-out training images")
    parser.add_argument("--record", action="store_true", help="train on all, test, write the result")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {options.epochs}")
    if options.record and (options.validate or options.embedded):
        parser.error("--record is for the whole set, and tests on the test images")
    if options.checkpoints and options.validate:
        parser.error("--checkpoints is for a training of all training images")
    train_set, test_set = fashion.load(parser, options)

    if options.validate:
        parts = fashion.hold_out(train_set)
        held_out, _ = train(*parts, options.epochs, options.seed, watch=True)
        print(f"accuracy on {len(parts[1].labels):,} held-out training images: {held_out[-1]:.2%}")
        return held_out[-1]
    try:
        (accuracy,), losses = train(
            train_set, test_set, options.epochs, options.seed, directory=options.checkpoints
        )
    except saving.CheckpointError as error:
        parser.exit(1, f"{error}\n")
    print(f"accuracy on {len(test_set.labels):,} test images: {accuracy:.2%}")
    if options.record:
        result = {
            "accuracy": round(accuracy, 4),
            "images": {"train": len(train_set.labels), "test": len(test_set.labels)},
            "losses": [round(value, 4) for value in losses],
        }
        recording.write("fashion_conv", result, ["examples.fashion_conv", *(arguments or sys.argv[1:])])
    return accuracy


if __name__ == "__main__":
    main()
