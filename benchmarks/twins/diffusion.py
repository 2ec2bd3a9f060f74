"""The denoiser of the chapter Diffusion, in JAX and in PyTorch: the same weights, batches, noise levels and noise, three seeds.

What has to be minded: PyTorch's `nn.Linear` keeps kernels as (out, in) and has a bias, ours has none; the shift comes before the scale
in FiLM's kernel; and `lr_scheduler.LinearLR` would count epochs, so the rate is set at each step.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.twins._sides import by_path, differences, run_torch
from examples.fashion_diffusion import Judge, flat
from mlax_tutorial import data, nn, optim, trees

TORCH = Path(__file__).with_name("diffusion_torch.py")
ABOUT = "a denoiser of 694,464 weights on 64 principal components of 10,000 images of Fashion-MNIST, Adam, batches of 256"
STEPS, RATE, BATCH_SIZE, SAMPLES, LEVELS = 1000, 2e-3, 256, 1000, 40
WIDTH, BLOCKS, FEATURES, ANY = 192, 3, 64, 10


class Block(nn.Composite):
    def children(self):
        mlp = nn.Series(nn.Linear(2 * WIDTH), nn.F(jax.nn.silu), nn.Linear(WIDTH))
        return {"norm": nn.AdaptiveNorm(nn.RMSNorm()), "mlp": mlp}

    def forward(self, call, x, *, condition):
        return x + call.mlp(call.norm(x, condition=condition))


class Net(nn.Composite):
    def children(self):
        return {
            "noise": nn.Series(nn.TimeEmbedding(16), nn.Linear(WIDTH)),
            "label": nn.Embed(11, WIDTH),
            "first": nn.Linear(WIDTH),
            "blocks": BLOCKS * (Block(),),
            "last": nn.Series(nn.RMSNorm(), nn.Linear(FEATURES)),
        }

    def forward(self, call, x, *, sigma, label):
        told = call.noise(25 * jnp.log(sigma)) + call.label(label)
        told, x = jax.nn.silu(told), call.first(x)
        for block in call.blocks:
            x = block(x, condition=told)
        return call.last(x)


def denoise(weights, x, sigma, label):
    sigma = jnp.broadcast_to(sigma, len(x))
    noise = sigma[:, None]
    total = jnp.sqrt(1 + noise**2)
    y, _ = Net().fwd(x / total, weights, (), sigma=sigma, label=label)
    return x / total**2 + noise / total * y


def loss(weights, x, sigma, label, noise):
    errors = denoise(weights, x + sigma[:, None] * noise, sigma, label) - x
    return jnp.mean((1 + 1 / sigma[:, None] ** 2) * errors**2)


def noise_levels(steps, high=80.0, low=0.02):
    return np.append(np.linspace(high ** (1 / 7), low ** (1 / 7), steps) ** 7, 0).astype(np.float32)


@jax.jit
def sample(weights, start, label, levels):
    def step(x, now):
        sigma, lower = now
        return x + (lower - sigma) * (x - denoise(weights, x, sigma, label)) / sigma, None

    return jax.lax.scan(step, start, (levels[:-1], levels[1:]))[0]


@jax.jit
def update(state, number, *batch):
    weights, moments, average = state
    value, gradients = jax.value_and_grad(loss)(weights, *batch)
    adam = optim.Adam(optim.LinearDecay(RATE, STEPS), second_decay=0.99)
    updates, moments = adam.step(gradients, moments, weights)
    weights = optim.apply_updates(weights, updates)
    return (weights, moments, trees.average(average, weights, number / (number + 20))), value


# --- the images ---


class Components:
    """The first principal components, scaled to a variance of 1 together."""

    def __init__(self, pixels):
        self.center = pixels.mean(axis=0)
        _, vectors = np.linalg.eigh(np.cov(pixels.T))
        self.basis = np.float32(vectors[:, -FEATURES:])
        self.scale = np.std((pixels - self.center) @ self.basis)

    def encode(self, pixels):
        return (pixels - self.center) @ self.basis / self.scale

    def decode(self, x):
        return np.clip(self.scale * x @ self.basis.T + self.center, -1, 1)


# --- both sides ---


def drawn(random, images, labels):
    """Batches for all steps: images, noise levels, labels (a tenth of them "any"), noise."""
    rows = random.integers(0, len(images), (STEPS, BATCH_SIZE))
    sigma = np.exp(1.5 * random.standard_normal((STEPS, BATCH_SIZE), np.float32))
    label = np.where(random.random((STEPS, BATCH_SIZE)) < 0.1, ANY, labels[rows]).astype(np.int32)
    return rows, sigma, label, random.standard_normal((STEPS, BATCH_SIZE, FEATURES), np.float32)


def run(seed):
    """One seed on both sides: ``(differences of the first step, ours, PyTorch's)``."""
    train_set, test_set = data.fashion_mnist()
    pixels, labels, test = flat(train_set.images), train_set.labels, flat(test_set.images)
    components, random = Components(pixels), np.random.default_rng(seed)
    images = components.encode(pixels)
    rows, sigma, label, noise = drawn(random, images, labels)
    weights, _ = Net().init(jax.random.key(seed), images[:1], sigma=jnp.ones(1), label=labels[:1])
    # FiLM's kernels begin as zeros, and no gradient would pass them in the first step.
    weights = trees.update(
        weights,
        "*['film']['kernel']",
        lambda leaf: np.float32(0.02) * random.standard_normal(leaf.shape, np.float32),
    )
    levels = noise_levels(LEVELS)
    asked = np.arange(SAMPLES, dtype=np.int32) % 10
    start = levels[0] * random.standard_normal((SAMPLES, FEATURES), np.float32)
    given = {
        "images": images, "rows": rows, "sigma": sigma, "label": label, "noise": noise, "rate": RATE, "width": WIDTH, "blocks": BLOCKS,
        "levels": levels, "asked": asked, "start": start,
    }  # fmt: skip
    theirs = run_torch(TORCH, given, by_path(weights))

    with jax.enable_x64(True):  # the first step, as on the other side
        exact, *batch = jax.tree.map(
            lambda leaf: np.asarray(leaf).astype(np.float64), (weights, images[rows[0]], sigma[0], noise[0])
        )
        first, gradients = jax.jit(jax.value_and_grad(loss))(exact, batch[0], batch[1], label[0], batch[2])
    found = differences(first, theirs["first loss"], by_path(gradients), theirs)

    adam = optim.Adam(optim.LinearDecay(RATE, STEPS), second_decay=0.99)
    state, losses, seconds = (weights, adam.init(weights), weights), [], []
    for number in range(STEPS):
        batch = images[rows[number]], sigma[number], label[number], noise[number]
        begin = time.perf_counter()
        state, value = update(state, jnp.float32(number), *batch)
        losses.append(float(value))  # PyTorch waits at each step, too
        seconds.append(time.perf_counter() - begin)
    ours = {
        "losses": losses,
        "seconds": seconds,
        "samples": np.asarray(sample(state[2], start, asked, levels)),
    }
    judge = Judge(pixels, labels)
    for side in (ours, theirs):
        made = components.decode(side["samples"])
        side["accuracy"] = float(np.mean(judge.guesses(made) == asked))
        side["distance"] = judge.distance(made, test)
    return found, ours, theirs
