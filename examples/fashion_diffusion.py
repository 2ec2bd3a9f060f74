"""Diffusion on the pixels of the whole of Fashion-MNIST: a U-Net, averages of weights, guidance, Heun's method.

    .venv/bin/python -m examples.fashion_diffusion                       # train, sample, and measure the Fréchet distance
    .venv/bin/python -m examples.fashion_diffusion --sheet clothes.pgm   # and write ten samples of each class as an image
    .venv/bin/python -m examples.fashion_diffusion --record              # train, sample, measure, and write the record
    .venv/bin/python -m examples.fashion_diffusion --checkpoints DIR     # go on from what lies there, bit for bit; the log is there, too
    .venv/bin/python -m examples.fashion_diffusion --embedded --width 8 --steps 50   # a quick look, at the part in the package

The book's chapter on diffusion trains a small network on principal components. Distances are by the last hidden layer of a classifier
that is trained first, on the same training images, and can be compared within a run alone: the baseline beside them is one normal
distribution for each class. The defaults are meant for an accelerator; on a processor take a smaller width and fewer steps.
"""

import argparse
import contextlib
import functools
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
from mlax_tutorial import nn, optim, saving, training, trees

ANY = 10  # the label of no class in particular
DEVIATION = 0.7  # of the pixels, from -1 to 1
LEVEL_MEAN, LEVEL_DEVIATION = -0.5, 1.2  # of the logarithm of the noise level in training
HIGHEST, LOWEST, LEVELS = 80.0, 0.01, 18  # noise levels in sampling
UNLABELED = 0.1  # the share of images whose class is not told
PEAK_RATE, WARM_UP = 1e-3, 0.02
SAMPLES = 1_000
GUIDANCE = (1.0, 1.5)
SAVE_EVERY = 100  # steps


# --- the model ---


def conv(channels, strides=1, initializer=None):
    given = {} if initializer is None else {"kernel_initializer": initializer}
    return nn.Series(nn.Conv(channels, (3, 3), strides=strides, padding=1, **given), nn.Bias())


class Block(nn.Composite):
    """Norm and convolution twice beside a shortcut; the second norm is steered by noise level and class."""

    channels: int

    def children(self):
        return {
            "norm": nn.GroupNorm(4, axes=3, affine=True),
            "first": conv(self.channels),
            "steered": nn.AdaptiveNorm(nn.GroupNorm(4, axes=3)),
            "second": conv(self.channels, initializer=jax.nn.initializers.zeros),
            "shortcut": nn.Conv(self.channels, (1, 1)),
        }

    def forward(self, call, x, *, condition):
        y = call.first(jax.nn.silu(call.norm(x)))
        y = call.second(jax.nn.silu(call.steered(y, condition=condition)))
        return call.shortcut(x) + y


class UNet(nn.Composite):
    """From 28 x 28 to 14 x 14 to 7 x 7 and back; what is on the way down joins on the way up."""

    width: int

    def children(self):
        w = self.width
        embed = nn.Series(
            nn.TimeEmbedding(32), nn.Linear(4 * w), nn.Bias(), nn.F(jax.nn.silu), nn.Linear(4 * w)
        )
        return {
            "noise": embed,
            "label": nn.Embed(11, 4 * w),
            "stem": conv(w),
            "down": (Block(w), Block(2 * w)),
            "shrink": (conv(2 * w, strides=2), conv(4 * w, strides=2)),
            "middle": Block(4 * w),
            "widen": tuple(nn.Series(nn.Upsample((2, 2)), conv(size)) for size in (2 * w, w)),
            "up": (Block(2 * w), Block(w)),
            "last": nn.Series(
                nn.GroupNorm(4, axes=3, affine=True), nn.F(jax.nn.silu), conv(1, initializer=jax.nn.initializers.zeros)
            ),
        }  # fmt: skip

    def forward(self, call, x, *, sigma, label):
        told = jax.nn.silu(call.noise(25 * jnp.log(sigma)) + call.label(label))
        x, skips = call.stem(x), []
        for down, shrink in zip(call.down, call.shrink):
            skips.append(down(x, condition=told))
            x = shrink(skips[-1])
        x = call.middle(x, condition=told)
        for widen, up in zip(call.widen, call.up):
            x = up(jnp.concatenate([widen(x), skips.pop()], axis=-1), condition=told)
        return call.last(x)


def denoise(model, weights, x, sigma, label):
    """The clean images, ``(n, 28, 28, 1)``, by what the network says: it sees and is asked for numbers of variance 1."""
    sigma = jnp.broadcast_to(sigma, len(x))
    noise = sigma[:, None, None, None]
    total = jnp.sqrt(noise**2 + DEVIATION**2)
    y, _ = model.fwd(x / total, weights, (), sigma=sigma, label=label)
    return DEVIATION**2 / total**2 * x + noise * DEVIATION / total * y


def loss(weights, model, key, x, label):
    level_key, drop_key, noise_key = jax.random.split(key, 3)
    sigma = jnp.exp(LEVEL_MEAN + LEVEL_DEVIATION * jax.random.normal(level_key, (len(x),)))
    label = jnp.where(jax.random.bernoulli(drop_key, UNLABELED, label.shape), ANY, label)
    noise = sigma[:, None, None, None]
    errors = denoise(model, weights, x + noise * jax.random.normal(noise_key, x.shape), sigma, label) - x
    return jnp.mean((noise**2 + DEVIATION**2) / (noise * DEVIATION) ** 2 * errors**2)


def noise_levels(steps):
    roots = jnp.linspace(HIGHEST ** (1 / 7), LOWEST ** (1 / 7), steps)
    return jnp.append(roots**7, 0)


@functools.partial(jax.jit, static_argnums=0)
def sample(model, weights, key, label, guidance):
    """Heun's method, with classifier-free guidance: 1 is the conditional model."""
    levels = noise_levels(LEVELS)

    def guided(x, sigma):
        both = denoise(
            model, weights, jnp.concatenate([x, x]), sigma, jnp.append(label, jnp.full_like(label, ANY))
        )
        conditional, without = jnp.split(both, 2)
        return without + guidance * (conditional - without)

    def step(x, now):
        sigma, lower = now
        slope = (x - guided(x, sigma)) / sigma
        ahead = x + (lower - sigma) * slope
        return x + (lower - sigma) * (slope + (ahead - guided(ahead, lower)) / lower) / 2, None

    start = levels[0] * jax.random.normal(key, (len(label), 28, 28, 1))
    x, _ = jax.lax.scan(step, start, (levels[:-2], levels[1:-1]))
    return jnp.clip(guided(x, levels[-2]), -1, 1)


def sampled(model, weights, key, count, guidance, at_once=100):
    """``count`` images, classes in turn, made a hundred at a time."""
    label = jnp.arange(count, dtype=jnp.int32) % 10
    keys = jax.random.split(key, -(-count // at_once))
    parts = [
        sample(model, weights, k, label[:at_once], guidance) for k in keys
    ]  # at_once is a multiple of ten: all parts have the same labels
    return np.concatenate(parts)[:count], np.asarray(label)


# --- the judge ---


class Judge:
    """A classifier of images as rows of pixels, and the Fréchet distance by its last hidden layer."""

    def __init__(self, pixels, labels, epochs=10):
        relu = nn.F(jax.nn.relu)
        hidden = nn.Linear(256), nn.Bias(), relu, nn.Linear(64), nn.Bias(), relu
        self.model = nn.Series(*hidden, nn.Linear(10), nn.Bias())

        def cross_entropy(logits, labels):
            return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        adam, step = optim.Adam(1e-3), training.make_step(self.model, cross_entropy)
        start, self.rest = self.model.init(jax.random.key(6), pixels[:1])
        state = start, self.rest, adam.init(start)
        size = min(128, len(pixels))
        self.weights, _, _ = training.fit(
            jax.random.key(7), step, adam, state, pixels, labels, epochs=epochs, batch_size=size
        )

    def guesses(self, pixels):
        return np.asarray(self.model.fwd(pixels, self.weights, self.rest)[0].argmax(axis=-1))

    def summary(self, pixels):
        hidden = np.float64(self.model[:6].fwd(pixels, self.weights[:6], self.rest[:6])[0])
        return hidden.mean(axis=0), np.cov(hidden.T)

    def distance(self, one, two):
        (m1, c1), (m2, c2) = self.summary(one), self.summary(two)
        roots = np.sqrt(np.linalg.eigvals(c1 @ c2).real.clip(0))
        return float(np.sum((m1 - m2) ** 2) + np.trace(c1 + c2) - 2 * roots.sum())


def flat(images):
    """Bytes to rows of 784 numbers from -1 to 1."""
    return np.float32(images.reshape(-1, 784)) / np.float32(127.5) - 1


def gaussian(random, pixels, labels, each):
    """From one normal distribution for each class: a mean, and a random mixture of the deviations from it."""
    drawn = []
    for k in range(10):
        own = pixels[labels == k]
        deviations = (own - own.mean(axis=0)) / np.sqrt(len(own) - 1)
        drawn.append(own.mean(axis=0) + random.standard_normal((each, len(own)), np.float32) @ deviations)
    return np.clip(np.concatenate(drawn), -1, 1)


# --- training ---


def optimizer(steps):
    decay = optim.LinearDecay(PEAK_RATE, steps)
    warm_up = max(1, int(WARM_UP * steps))
    return optim.Chain(
        optim.ClipByGlobalNorm(1.0), optim.Adam(optim.WarmUp(decay, warm_up), second_decay=0.99)
    )


@functools.partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def update(model, steps, batch_size, state, key, number, images, labels):
    """One step: its batch, its noise and its flips follow from its number alone, so a training resumes anywhere."""
    weights, moments, average = state
    rows_key, flip_key, loss_key = jax.random.split(jax.random.fold_in(key, number), 3)
    rows = jax.random.randint(rows_key, (batch_size,), 0, len(images))
    x = jnp.float32(images[rows])[..., None] / 127.5 - 1
    value, gradients = jax.value_and_grad(loss)(weights, model, loss_key, x, labels[rows])
    updates, moments = optimizer(steps).step(gradients, moments, weights)
    weights = optim.apply_updates(weights, updates)
    return (weights, moments, trees.average(average, weights, number / (number + 20.0))), value


def train(train_set, options, directory=None):
    """Train for ``options.steps`` steps.

    Args:
      directory: where checkpoints and the log are written, and training goes on from the last one.

    Returns:
      The model, the averaged weights and the loss of each step; with a directory, of the steps before it was resumed, too.
    """
    model = UNet(options.width)
    init_key, key = jax.random.split(jax.random.key(options.seed))
    one = jnp.zeros((1, 28, 28, 1))
    weights, _ = jax.jit(model.init)(init_key, one, sigma=jnp.ones(1), label=jnp.zeros(1, jnp.int32))
    state = weights, optimizer(options.steps).init(weights), jax.tree.map(jnp.copy, weights)
    images, labels = jnp.asarray(train_set.images), jnp.asarray(train_set.labels)
    settings = jnp.int32([options.width, options.steps, options.batch_size, options.seed])
    done, losses = 0, []
    with contextlib.ExitStack() as stack:
        checkpoints = log = None
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            checkpoints = stack.enter_context(saving.Checkpoints(directory / "checkpoints"))
            state, done = resume_step(
                checkpoints, state, settings, "width, steps, batch size, seed", options.steps
            )
            log = stack.enter_context(training.Log(directory / "log.jsonl", after=done))
        progress = stack.enter_context(training.Progress(options.steps))
        progress.done = done
        while done < options.steps:
            state, value = update(
                model, options.steps, options.batch_size, state, key, jnp.float32(done), images, labels
            )
            done += 1
            losses.append(value)  # on the device: float(value) would wait for each step
            progress.advance()
            if log is not None:
                log.write(done, {"loss": value})
            if checkpoints is not None and (done % SAVE_EVERY == 0 or done == options.steps):
                checkpoints.save(done, {"state": state, "settings": settings})
    losses = [float(value) for value in losses]
    if directory is not None:
        lines = (directory / "log.jsonl").read_text().splitlines()
        losses = [json.loads(line)["loss"] for line in lines]
    return model, state[2], losses


def measured(model, weights, train_set, test_set, seed, samples=SAMPLES):
    """Distances from the test images: of real images, of the Gaussians, and of the network at each weight of guidance."""
    pixels, test = flat(train_set.images), flat(test_set.images)
    judge, random = Judge(pixels, train_set.labels), np.random.default_rng(seed)
    some = pixels[random.permutation(len(pixels))[:samples]]
    drawn = gaussian(random, pixels, train_set.labels, samples // 10)
    found = {
        "judge": round(float(np.mean(judge.guesses(test) == test_set.labels)), 4),
        "real": round(judge.distance(some, test), 2),
        "gaussian": round(judge.distance(drawn, test), 2),
    }
    for number, weight in enumerate(GUIDANCE):
        key = jax.random.fold_in(jax.random.key(seed + 1), number)
        images, label = sampled(model, weights, key, samples, weight)
        rows = images.reshape(-1, 784)
        found[f"network, guidance {weight}"] = {
            "distance": round(judge.distance(rows, test), 2),
            "recognized": round(float(np.mean(judge.guesses(rows) == label)), 4),
        }
    return found


def sheet(images):
    """A .pgm file: a hundred images, a class in each column."""
    gray = np.uint8(np.round(127.5 * (1 - images[:100].reshape(-1, 10, 28, 28))))
    page = gray.transpose(0, 2, 1, 3).reshape(-1, 280)
    return b"P5 280 %d 255\n" % len(page) + page.tobytes()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--width", type=int, default=64, help="channels at 28 x 28, a multiple of 4; 64 by default"
    )
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    fashion.add_options(parser)
    parser.add_argument(
        "--checkpoints", type=Path, help="a directory: save now and then, resume from the last"
    )
    parser.add_argument("--sheet", type=Path, help="write ten samples of each class to this .pgm file")
    parser.add_argument("--record", action="store_true", help="write the record")
    options = parser.parse_args(arguments)
    if options.width < 4 or options.width % 4:
        parser.error(f"--width must be a multiple of 4, got {options.width}")
    if options.steps < 1 or options.batch_size < 1:
        parser.error("--steps and --batch-size must be at least 1")
    if options.record and options.embedded:
        parser.error("--record is for the whole set")
    train_set, test_set = fashion.load(parser, options)
    begin = time.perf_counter()
    try:
        model, weights, losses = train(train_set, options, options.checkpoints)
    except saving.CheckpointError as error:
        parser.exit(1, f"{error}\n")
    minutes = (time.perf_counter() - begin) / 60
    print(f"{trees.count(weights):,} weights, loss {np.mean(losses[-100:]):.4f}, {minutes:.1f} min")
    found = measured(model, weights, train_set, test_set, options.seed)
    for name, value in found.items():
        print(f"{name}: {value}")
    if options.sheet:
        images, _ = sampled(model, weights, jax.random.key(options.seed + 2), 100, GUIDANCE[-1])
        options.sheet.write_bytes(sheet(images))
    if options.record:
        every = max(1, len(losses) // 50)
        result = found | {
            "weights": trees.count(weights),
            "images": len(train_set.labels),
            "steps": options.steps,
            "batch size": options.batch_size,
            "losses": [
                round(float(np.mean(part)), 4) for part in np.array_split(losses, len(losses) // every)
            ],
            "minutes": round(minutes, 1),
        }
        recording.write(
            "fashion_diffusion", result, ["examples.fashion_diffusion", *(arguments or sys.argv[1:])]
        )
    return found


if __name__ == "__main__":
    main()
