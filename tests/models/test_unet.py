"""A U-Net that takes noise away: skips, transposed convolutions, and a time that every place is told."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn, optim
from tests.models import infer, train


def block(channels):
    convolution = nn.Conv(channels, (3, 3), padding="SAME"), nn.Bias()
    return nn.Series(*convolution, nn.GroupNorm(2, axes=3), nn.Scaler(), nn.Bias(), nn.F(jax.nn.silu))


class UNet(nn.Composite):
    channels: tuple[int, ...]

    def children(self):
        *sides, deepest = self.channels
        return {
            "down": tuple(block(size) for size in sides),
            "shrink": nn.MaxPool((2, 2)),
            "time": nn.Series(nn.Linear(deepest), nn.F(jax.nn.silu), nn.Linear(deepest)),
            "deepest": block(deepest),
            "widen": tuple(nn.ConvTranspose(size, (2, 2), strides=2) for size in reversed(sides)),
            "up": tuple(block(size) for size in reversed(sides)),
            "last": nn.Conv(1, (1, 1)),
        }

    def forward(self, call, x, *, time):
        skips = []
        for down in call.down:
            skips.append(down(x))
            x = call.shrink(skips[-1])
        x = call.deepest(x) + call.time(time)[:, None, None]
        for widen, up in zip(call.widen, call.up):
            x = up(jnp.concatenate([widen(x), skips.pop()], axis=-1))
        return call.last(x)


def squared_error(outputs, targets):
    return jnp.mean((outputs - targets) ** 2)


def test_it_takes_noise_away():
    keys = jax.random.split(jax.random.key(2), 3)
    angles = jax.random.uniform(keys[0], (8, 1, 1, 1)) + jnp.arange(16)[:, None, None] / 4
    clean = jnp.sin(angles) * jnp.ones((16, 1))
    time = jax.random.uniform(keys[1], (8, 1))
    noisy = clean + time[:, None, None] * jax.random.normal(keys[2], clean.shape)
    model = UNet((4, 8, 16))
    state, losses = train(model, squared_error, optim.Adam(1e-2), noisy, clean, 20, time=time)
    assert losses[-1] < losses[0] / 2
    variables = state.trainables, state.non_trainables
    assert (infer(model, noisy, variables, time=time + 1) != infer(model, noisy, variables, time=time)).any()
