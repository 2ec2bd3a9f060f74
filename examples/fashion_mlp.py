"""A multilayer perceptron, 784-512-512-10, on the whole of Fashion-MNIST.

    .venv/bin/python -m examples.fashion_mlp                 # train, test, and print the accuracy
    .venv/bin/python -m examples.fashion_mlp --validate      # for tuning: hold out 5,000 training images instead
    .venv/bin/python -m examples.fashion_mlp --seeds 5       # five trainings, their mean and its interval
    .venv/bin/python -m examples.fashion_mlp --seeds 5 --record   # validate, train, test, and write the record
    .venv/bin/python -m examples.fashion_mlp --checkpoints DIR   # go on from what lies there, bit for bit

The loop is the one that the book's chapter on it builds. The settings below were chosen on the held-out images alone; the test images
are looked at once, at the end.
"""

import argparse
import contextlib
import math
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.stats

from examples import fashion, recording
from examples.checkpoints import resume, save
from mlax_tutorial import nn, optim, saving, training

BATCH_SIZE = 128
PEAK_LEARNING_RATE = 0.05
MOMENTUM = 0.9
DROPOUT = 0.25
LABEL_SMOOTHING = 0.05

MODEL = nn.Series(
    nn.Flatten(2),
    nn.Linear(512), nn.Bias(), nn.F(jax.nn.relu), nn.Dropout(DROPOUT),
    nn.Linear(512), nn.Bias(), nn.F(jax.nn.relu), nn.Dropout(DROPOUT),
    nn.Linear(10), nn.Bias(),
)  # fmt: skip


def loss(logits, labels):
    """Cross-entropy, in which the right class counts 0.95 and the rest is spread over all ten."""
    targets = optax.losses.smooth_labels(jax.nn.one_hot(labels, 10), LABEL_SMOOTHING)
    return optax.losses.softmax_cross_entropy(logits, targets).mean()


def schedule(epochs):
    """The learning rate falls along a half cosine, epoch by epoch. A new rate does not trace again."""

    def optimizer(epoch):
        rate = PEAK_LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * epoch / epochs))
        return optim.SGD(rate, momentum=MOMENTUM, nesterov=True)

    return optimizer


def on_device(part):
    """The images as float32 in [0, 1], with their labels, on the default device."""
    return jnp.asarray(part.images, jnp.float32) / 255, jnp.asarray(part.labels)


@jax.jit
def take(number, order, keys, images, labels):
    """The key and the batch of one step. Op by op, the three would be dispatched one after the other."""
    return keys[number], images[order[number]], labels[order[number]]


def run_epoch(step, optimizer, run, images, labels):
    """One epoch; ``run`` holds all that it depends on: the state, the key, and the number of epochs done."""
    key, order_key, steps_key = jax.random.split(run["key"], 3)
    order = training.batches(order_key, len(images), BATCH_SIZE)
    keys = jax.random.split(steps_key, len(order))
    state, losses = run["state"], []
    with training.Progress(len(order)) as progress:
        for number in range(len(order)):
            state, loss = step(optimizer, state, *take(number, order, keys, images, labels))
            losses.append(loss)  # on the device: float(loss) would wait for each step
            progress.advance()
    run = {"state": state, "key": key, "epoch": run["epoch"] + 1}
    return run, float(np.mean(jax.device_get(losses)))


def train(train_set, test_set, epochs, seed, watch=False, directory=None):
    """Train; then, or with ``watch`` after each epoch, test.

    Args:
      directory: where a checkpoint is written after each epoch, and training goes on from the last one. Beside it, in a file of
        the same name with ``.jsonl`` behind it, stands a line for each epoch.

    Returns:
      The accuracies on the test set, of one epoch each, the last one last; and the mean loss of each epoch.
    """
    init_key, key = jax.random.split(jax.random.key(seed))
    images, labels = on_device(train_set)
    optimizer, step = schedule(epochs), training.make_step(MODEL, loss)
    trainables, non_trainables = MODEL.init(init_key, images[:1])
    state = training.State(trainables, non_trainables, optimizer(0).init(trainables))
    run, losses, accuracies = {"state": state, "key": key, "epoch": 0}, [], []
    evaluate, test_arrays = training.make_evaluation(MODEL, training.is_right), on_device(test_set)
    with contextlib.ExitStack() as stack:
        checkpoints = log = None
        if directory:
            checkpoints = stack.enter_context(saving.Checkpoints(directory))
            run, losses = resume(checkpoints, run, (epochs, seed))
            log = stack.enter_context(training.Log(f"{directory}.jsonl", after=run["epoch"]))
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
                log.write(run["epoch"], {"loss": value})
    if not watch:
        accuracies.append(float(evaluate(run["state"].trainables, run["state"].non_trainables, *test_arrays)))
    return accuracies, losses


def interval(accuracies):
    """Half the width of the 95 % interval of a mean over seeds, by Student's t; None for a single one."""
    if len(accuracies) < 2:
        return None
    return float(scipy.stats.t.ppf(0.975, len(accuracies) - 1) * scipy.stats.sem(accuracies))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--seeds", type=int, default=1, help="how many trainings, with successive seeds")
    fashion.add_options(parser)
    parser.add_argument(
        "--checkpoints",
        type=Path,
        help="a directory: save after each epoch of each seed, resume from the last",
    )
    parser.add_argument("--validate", action="store_true", help="test on held-out training images")
    parser.add_argument(
        "--record", action="store_true", help="validate, train on all, test, write the record"
    )
    options = parser.parse_args(arguments)
    if options.epochs < 1 or options.seeds < 1:
        parser.error(f"--epochs and --seeds must be at least 1, got {options.epochs} and {options.seeds}")
    if options.record and (options.validate or options.embedded):
        parser.error("--record is for the whole set, and validates by itself")
    if options.checkpoints and options.validate:
        parser.error("--checkpoints is for trainings on all training images")
    train_set, test_set = fashion.load(parser, options)

    held_out = []
    if options.validate or options.record:
        parts = fashion.hold_out(train_set)
        held_out, _ = train(*parts, options.epochs, options.seed, watch=True)
        print(f"accuracy on {len(parts[1].labels):,} held-out training images: {held_out[-1]:.2%}")
        if options.validate:
            return held_out[-1]
    if options.checkpoints:
        options.checkpoints.mkdir(parents=True, exist_ok=True)
    start, accuracies, losses = time.perf_counter(), [], []
    for seed in range(options.seed, options.seed + options.seeds):
        directory = options.checkpoints / f"seed-{seed}" if options.checkpoints else None
        try:
            (accuracy,), each = train(train_set, test_set, options.epochs, seed, directory=directory)
        except saving.CheckpointError as error:
            parser.exit(1, f"{error}\n")
        print(f"seed {seed}: accuracy on {len(test_set.labels):,} test images: {accuracy:.2%}", flush=True)
        accuracies.append(accuracy)
        losses.append(each)
    mean, half = float(np.mean(accuracies)), interval(accuracies)
    if half is not None:
        print(f"mean of {options.seeds} seeds: {mean:.2%} ± {half:.2%}")
    if options.record:
        result = {
            "accuracy": round(mean, 4),
            "interval": half and round(half, 5),
            "accuracies": [round(value, 4) for value in accuracies],
            "images": {"train": len(train_set.labels), "test": len(test_set.labels)},
            "losses": [[round(value, 4) for value in each] for each in losses],
            "held_out": {
                "images": len(parts[1].labels),
                "accuracies": [round(value, 4) for value in held_out],
            },
            "minutes": round((time.perf_counter() - start) / 60, 1),
        }
        recording.write("fashion_mlp", result, ["examples.fashion_mlp", *(arguments or sys.argv[1:])])
    return mean


if __name__ == "__main__":
    main()
