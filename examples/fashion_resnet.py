"""A residual network of 1,092,850 weights on the whole of Fashion-MNIST, in float32 or in mixed precision.

    .venv/bin/python -m examples.fashion_resnet                       # train, test, and print the accuracy
    .venv/bin/python -m examples.fashion_resnet --precision mixed     # compute in bfloat16, with float32 weights
    .venv/bin/python -m examples.fashion_resnet --validate            # for tuning: hold out 5,000 training images instead
    .venv/bin/python -m examples.fashion_resnet --record              # train, test, and write the record
    .venv/bin/python -m examples.fashion_resnet --checkpoints DIR     # go on from what lies there, bit for bit; the log is there, too
    .venv/bin/python -m examples.fashion_resnet --embedded --width 8 --epochs 2   # a quick look, at the part in the package

The book's chapter on residual networks takes such a network apart. A checkpoint is written every few hundred steps, so a training that
is killed in the middle of an epoch loses a minute or two. The test images are looked at once, at the end.
"""

import argparse
import contextlib
import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import fashion, recording
from examples.checkpoints import resume_step
from mlax_tutorial import augment, nn, optim, precision, saving, training

BATCH_SIZE = 128
PEAK_LEARNING_RATE, MOMENTUM, WARM_UP = (
    0.1,
    0.9,
    0.2,
)  # the rate rises over a fifth of the steps, then falls to 0
WEIGHT_DECAY = 5e-4
LABEL_SMOOTHING = 0.1
SHIFT = 2  # pixels, at most, in any direction
MEAN, DEVIATION = 0.286, 0.353  # of the training images' pixels
SAVE_EVERY = 200  # steps


# --- the model ---


def to_eight(x):
    """From 7 x 7 to 8 x 8, which can be halved: the last row and the last column come twice."""
    return jnp.pad(x, ((0, 0),) * (x.ndim - 3) + ((0, 1), (0, 1), (0, 0)), mode="edge")


def largest(x):
    return jnp.max(x, axis=(-3, -2))


def quarter(x):
    return x / 4


def unit(channels, *pooling):
    conv = nn.Conv(channels, (3, 3), padding="SAME")
    return conv, *pooling, nn.BatchNorm(affine=True), nn.F(jax.nn.relu)


def make_model(width):
    """Three stages, of width, 2 width and 4 width channels; each is halved first, and then passes a residual block."""
    pool = nn.F(fashion.halve)

    def stage(channels):
        return *unit(channels, pool), nn.Residual(nn.Series(*unit(channels), *unit(channels)))

    return nn.Series(
        *unit(width // 2), *stage(width), *stage(2 * width), nn.F(to_eight), *stage(4 * width),
        nn.F(largest), nn.Linear(10), nn.Bias(), nn.F(quarter),
    )  # fmt: skip


def loss(logits, labels):
    """Cross-entropy, in which the right class counts 0.91 and each other 0.01."""
    targets = optax.losses.smooth_labels(jax.nn.one_hot(labels, 10), LABEL_SMOOTHING)
    return optax.losses.softmax_cross_entropy(logits, targets).mean()


# --- training ---


def prepared(part):
    """The images, normalized, of one channel, with their labels, on the default device."""
    images = jnp.asarray(part.images, jnp.float32)[..., None] / 255
    return (images - MEAN) / DEVIATION, jnp.asarray(part.labels)


def optimizer(share):
    """For a step, by the share of the training that is done. A new rate does not trace again."""
    rate = PEAK_LEARNING_RATE * min(share / WARM_UP, (1 - share) / (1 - WARM_UP))
    decay = optim.WeightDecay(WEIGHT_DECAY, where=optim.kernels)
    return optim.Chain(decay, optim.SGD(rate, momentum=MOMENTUM, nesterov=True))


@jax.jit
def take(key, order, number, images, labels):
    """The batch of one step, shifted and turned. Op by op, its parts would be dispatched one after the other."""
    flip_key, shift_key = jax.random.split(jax.random.fold_in(key, number))
    x = augment.crop(shift_key, images[order[number]], padding=SHIFT)
    return augment.flip(flip_key, x), labels[order[number]]


class Batches:
    """The batch of any step from its number alone: so a training resumes in the middle of an epoch, and no order is saved."""

    def __init__(self, key, images, labels):
        self.order_key, self.change_key = jax.random.split(key)
        self.data, self.each, self.epoch = (images, labels), len(images) // BATCH_SIZE, None

    def __call__(self, number):
        epoch, place = divmod(number, self.each)
        if epoch != self.epoch:
            order = training.batches(jax.random.fold_in(self.order_key, epoch), len(self.data[0]), BATCH_SIZE)
            self.epoch, self.order, self.key = epoch, order, jax.random.fold_in(self.change_key, epoch)
        return take(self.key, self.order, place, *self.data)


def last_step(directory):
    """The step of the last checkpoint, after which a training goes on; 0 without one."""
    if directory is None or not (directory / "checkpoints").is_dir():
        return 0
    with saving.Checkpoints(directory / "checkpoints") as checkpoints:
        return checkpoints.latest_step() or 0


def train(train_set, test_set, options, directory=None, watch=False):
    """Train; then, or with ``watch`` after each epoch, test.

    Args:
      directory: where checkpoints and the log are written, and training goes on from the last one.

    Returns:
      The accuracies on the test set, of one epoch each, the last one last; and the mean loss of each epoch, with a directory those
      of epochs before the training was resumed, too.
    """
    model = make_model(options.width)
    if options.precision == "mixed":
        model = precision.Policy("bfloat16").apply(model)
    init_key, batch_key = jax.random.split(jax.random.key(options.seed))
    images, labels = prepared(train_set)
    trainables, non_trainables = model.init(init_key, images[:1])
    state = training.State(trainables, non_trainables, optimizer(0).init(trainables))
    batches, step = Batches(batch_key, images, labels), training.make_step(model, loss)
    evaluate, test_arrays = (
        training.make_evaluation(fashion.BothWays(model), training.is_right),
        prepared(test_set),
    )
    total, done, accuracies, means, recent = options.epochs * batches.each, 0, [], [], []
    settings = jnp.int32([options.width, options.epochs, options.seed, options.precision == "mixed"])

    def test():
        return float(evaluate(state.trainables, state.non_trainables, *test_arrays))

    with contextlib.ExitStack() as stack:
        checkpoints = log = None
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            checkpoints = stack.enter_context(saving.Checkpoints(directory / "checkpoints"))
            state, done = resume_step(checkpoints, state, settings, "width, epochs, seed, mixed", total)
            log = stack.enter_context(training.Log(directory / "log.jsonl", after=done))
        progress = stack.enter_context(training.Progress(total))
        progress.done = done
        begin = time.perf_counter()
        while done < total:
            state, value = step(optimizer(done / total), state, None, *batches(done))
            done += 1
            recent.append(value)  # on the device: float(value) would wait for each step
            progress.advance()
            if log is not None:
                log.write(done, {"loss": value})
            if checkpoints is not None and (done % SAVE_EVERY == 0 or done == total):
                checkpoints.save(done, {"state": state, "settings": settings})
            if done % batches.each == 0:
                means.append(float(np.mean(jax.device_get(recent))))
                recent.clear()
                line = f"epoch {done // batches.each:2d} of {options.epochs}: loss {means[-1]:.3f}"
                if watch:
                    accuracies.append(test())
                    line += f", accuracy {accuracies[-1]:.2%}"
                print(f"{line}, {(time.perf_counter() - begin) / 60:.1f} min", flush=True)
    if directory is not None:
        lines = [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]
        values = np.array([line["loss"] for line in lines]).reshape(options.epochs, batches.each)
        means = values.mean(axis=1).tolist()
    if not watch:
        accuracies.append(test())
    return accuracies, means


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--width", type=int, default=48, help="channels of the first stage, an even number; 48 by default"
    )
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--precision", choices=["float32", "mixed"], default="float32")
    parser.add_argument("--seed", type=int, default=0)
    fashion.add_options(parser)
    parser.add_argument(
        "--checkpoints", type=Path, help="a directory: save every few minutes, resume from the last"
    )
    parser.add_argument("--validate", action="store_true", help="test on held-out training images")
    parser.add_argument("--record", action="store_true", help="train on all, test, write the record")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {options.epochs}")
    if options.width < 2 or options.width % 2:
        parser.error(f"--width must be an even number of at least 2, got {options.width}")
    if options.record and (options.validate or options.embedded):
        parser.error("--record is for the whole set, and tests on the test images")
    train_set, test_set = fashion.load(parser, options)
    if options.validate:
        train_set, test_set = fashion.hold_out(train_set)
    before, begin = last_step(options.checkpoints), time.perf_counter()
    try:
        accuracies, means = train(train_set, test_set, options, options.checkpoints, options.validate)
    except saving.CheckpointError as error:
        parser.exit(1, f"{error}\n")
    what = "held-out training" if options.validate else "test"
    print(f"accuracy on {len(test_set.labels):,} {what} images: {accuracies[-1]:.2%}")
    if options.record:
        result = {
            "accuracy": round(accuracies[-1], 4),
            "precision": options.precision,
            "width": options.width,
            "images": {"train": len(train_set.labels), "test": len(test_set.labels)},
            "losses": [round(value, 4) for value in means],
            "minutes": round((time.perf_counter() - begin) / 60, 1),
            "steps before these minutes": before,
        }
        name = "fashion_resnet" if options.precision == "float32" else "fashion_resnet_mixed"
        recording.write(name, result, ["examples.fashion_resnet", *(arguments or sys.argv[1:])])
    return accuracies[-1]


if __name__ == "__main__":
    main()
