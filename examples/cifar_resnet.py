"""A residual network of about 98,500 weights on CIFAR-10, in float32 or in float16 with a static loss scale of 2**12.

    .venv/bin/python -m examples.cifar_resnet                        # train on 50,000 images, test on 10,000
    .venv/bin/python -m examples.cifar_resnet --precision float16    # float16 inside, float32 weights, a loss scale
    .venv/bin/python -m examples.cifar_resnet --validate             # for tuning: hold out 5,000 training images instead
    .venv/bin/python -m examples.cifar_resnet --record               # train, test, and write the record
    .venv/bin/python -m examples.cifar_resnet --checkpoints DIR      # save after each epoch, go on from the last; the log is there, too

`data.cifar10` looks for the archive in ``--folder`` or the user's cache, and downloads it (170 MB) if it is missing.

It has not been run at full size by its authors, who had no network where they wrote it: it was tested on a small file of the same
format. Adam, batches of 128 and 40 epochs are those of the sources of the book, which report 81.4 % in float32 and 80.1 % in float16;
the learning rate is Adam's usual one. The sources do not print their network; this one has the size that they tell.
"""

import argparse
import contextlib
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import fashion, recording
from examples.checkpoints import resume, save
from mlax_tutorial import data, nn, optim, precision, saving, training

BATCH_SIZE = 128
LEARNING_RATE = 1e-3
LOSS_SCALE = 2.0**12
MEAN, DEVIATION = (
    (0.4914, 0.4822, 0.4465),
    (0.2470, 0.2435, 0.2616),
)  # of each color, over the training images


def average(x):
    return jnp.mean(x, axis=(-3, -2))


def unit(channels, strides=1):
    return nn.Conv(channels, (3, 3), strides=strides, padding=1), nn.BatchNorm(affine=True)


def block(channels, strides=1):
    shortcut = None
    if strides > 1:
        shortcut = nn.Series(nn.Conv(channels, (1, 1), strides=strides), nn.BatchNorm(affine=True))
    branch = nn.Series(*unit(channels, strides), nn.F(jax.nn.relu), *unit(channels))
    return nn.Residual(branch, shortcut), nn.F(jax.nn.relu)


MODEL = nn.Series(
    *unit(16), nn.F(jax.nn.relu), *block(16), *block(32, 2), *block(32), *block(64, 2), nn.F(average),
    nn.Linear(32), nn.Bias(), nn.F(jax.nn.relu), nn.Linear(10), nn.Bias(),
)  # fmt: skip


def loss(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def prepared(part):
    """The images, each color normalized, with their labels, on the default device."""
    images = jnp.asarray(part.images, jnp.float32) / 255
    return (images - jnp.array(MEAN)) / jnp.array(DEVIATION), jnp.asarray(part.labels)


@jax.jit
def take(number, order, images, labels):
    return images[order[number]], labels[order[number]]


def make_scaled_step(model):
    """A step whose loss is multiplied by 2**12 on the way back; one whose gradients overflow changes nothing."""
    scale = precision.StaticLossScale(LOSS_SCALE)

    def objective(trainables, non_trainables, x, labels):
        logits, updated = model.fwd(x, trainables, non_trainables)
        value = loss(logits, labels)
        return scale.scale(value), (value, updated)

    @jax.jit
    def step(optimizer, state, key, x, labels):
        trainables, non_trainables, moments = state
        gradients, (value, updated) = jax.grad(objective, has_aux=True)(trainables, non_trainables, x, labels)
        gradients = scale.unscale(gradients)
        updates, moments = optimizer.step(gradients, moments, trainables)
        new = training.State(optim.apply_updates(trainables, updates), updated, moments)
        return precision.accept(precision.all_finite(gradients), new, state), value

    return step


def run_epoch(step, optimizer, run, images, labels):
    """One epoch; ``run`` holds all that it depends on: the state, the key, and the number of epochs done."""
    key, order_key = jax.random.split(run["key"])
    order = training.batches(order_key, len(images), BATCH_SIZE)
    state, losses = run["state"], []
    with training.Progress(len(order)) as progress:
        for number in range(len(order)):
            state, value = step(optimizer, state, None, *take(number, order, images, labels))
            losses.append(value)  # on the device: float(value) would wait for each step
            progress.advance()
    return {"state": state, "key": key, "epoch": run["epoch"] + 1}, float(np.mean(jax.device_get(losses)))


def train(train_set, test_set, options, directory=None, watch=False):
    """Train; then, or with ``watch`` after each epoch, test.

    Returns:
      The accuracies on the test set, of one epoch each, the last one last; and the mean loss of each epoch.
    """
    model, step = MODEL, training.make_step(MODEL, loss)
    if options.precision == "float16":
        model = precision.Policy("float16").apply(MODEL)
        step = make_scaled_step(model)
    init_key, key = jax.random.split(jax.random.key(options.seed))
    images, labels = prepared(train_set)
    optimizer = optim.Adam(LEARNING_RATE)
    trainables, non_trainables = model.init(init_key, images[:1])
    state = training.State(trainables, non_trainables, optimizer.init(trainables))
    run, losses, accuracies = {"state": state, "key": key, "epoch": 0}, [], []
    evaluate, test_arrays = training.make_evaluation(model, training.is_right), prepared(test_set)
    settings = (options.epochs, options.seed, int(options.precision == "float16"))

    def test():
        return float(evaluate(run["state"].trainables, run["state"].non_trainables, *test_arrays))

    with contextlib.ExitStack() as stack:
        checkpoints = log = None
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            checkpoints = stack.enter_context(saving.Checkpoints(directory / "checkpoints"))
            run, losses = resume(checkpoints, run, settings)
            log = stack.enter_context(training.Log(directory / "log.jsonl", after=run["epoch"]))
        while run["epoch"] < options.epochs:
            run, value = run_epoch(step, optimizer, run, images, labels)
            losses.append(value)
            line = f"epoch {run['epoch']:2d} of {options.epochs}: loss {value:.3f}"
            if watch:
                accuracies.append(test())
                line += f", accuracy {accuracies[-1]:.2%}"
            print(line, flush=True)
            if checkpoints is not None:
                save(checkpoints, run, losses, settings)
                log.write(run["epoch"], {"loss": np.float32(value)})
    if not watch:
        accuracies.append(test())
    return accuracies, losses


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--precision", choices=["float32", "float16"], default="float32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the archive is, or shall be put")
    parser.add_argument(
        "--checkpoints", type=Path, help="a directory: save after each epoch, resume from the last"
    )
    parser.add_argument("--validate", action="store_true", help="test on held-out training images")
    parser.add_argument("--record", action="store_true", help="train on all, test, write the record")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {options.epochs}")
    if options.record and options.validate:
        parser.error("--record tests on the test images")
    begin = time.perf_counter()
    try:
        train_set, test_set = data.cifar10(options.folder)
        if options.validate:
            train_set, test_set = fashion.hold_out(train_set)
        accuracies, losses = train(train_set, test_set, options, options.checkpoints, options.validate)
    except (data.DataError, saving.CheckpointError) as error:
        parser.exit(1, f"{error}\n")
    what = "held-out training" if options.validate else "test"
    print(f"accuracy on {len(test_set.labels):,} {what} images: {accuracies[-1]:.2%}")
    if options.record:
        result = {
            "accuracy": round(accuracies[-1], 4),
            "precision": options.precision,
            "images": {"train": len(train_set.labels), "test": len(test_set.labels)},
            "losses": [round(value, 4) for value in losses],
            "minutes": round((time.perf_counter() - begin) / 60, 1),
        }
        name = "cifar_resnet" if options.precision == "float32" else "cifar_resnet_float16"
        recording.write(name, result, ["examples.cifar_resnet", *(arguments or sys.argv[1:])])
    return accuracies[-1]


if __name__ == "__main__":
    main()
