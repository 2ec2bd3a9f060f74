"""A U-Net that takes noise away: skips, transposed convolutions, and a time that every place is told."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn, optim, training
from tests.models import infer, train


def block(channels):
    convolution = nn.Conv(channels, (3, 3), padding="SAME"), nn.Bias()
    return nn.Series(*convolution, nn.GroupNorm(2, axes=3), nn.Scale(), nn.Bias(), nn.F(jax.nn.silu))


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


def test_averages_of_weights_and_statistics_are_evaluated():
    """Without noise the averages stay behind; with noisy gradients they are the better network."""
    keys = jax.random.split(jax.random.key(2), 3)
    clean = jnp.sin(
        jax.random.uniform(keys[0], (16, 1, 1, 1), maxval=6) + jnp.arange(8)[:, None, None]
    ) * jnp.ones((8, 1))
    noise = jax.random.normal(keys[1], clean.shape)
    model = nn.Series(
        nn.Conv(8, (3, 3), padding="SAME"), nn.BatchNorm(), nn.F(jax.nn.silu), nn.Conv(1, (1, 1))
    )
    trainables, rest = model.init(keys[2], clean)
    optimizer, step = optim.SGD(0.5), training.make_step(model, squared_error)
    state = training.State(trainables, rest, optimizer.init(trainables))
    wanted, seen = jax.tree.map(jnp.copy, (trainables, rest)), []
    average = jax.tree.map(jnp.copy, wanted)
    for number, key in enumerate(jax.random.split(jax.random.key(3), 60)):
        some = jax.random.randint(key, (4,), 0, 16)
        decay = min(0.9, (1 + number) / (10 + number))
        state, _ = step(optimizer, state, None, (clean + noise)[some], clean[some])
        average = training.follow(average, state, decay)
        wanted = jax.tree.map(
            lambda old, new, decay=decay: decay * old + (1 - decay) * new, wanted, tuple(state)[:2]
        )
        seen.append(jax.tree.map(jnp.copy, tuple(state)[:2]))
    for got, by_hand in zip(jax.tree.leaves(average), jax.tree.leaves(wanted), strict=True):
        assert jnp.allclose(got, by_hand, rtol=1e-4, atol=1e-5)
    evaluate = training.make_evaluation(model, squared_error)
    last = [evaluate(*variables, clean + noise, clean) for variables in seen[-10:]]
    assert evaluate(*average, clean + noise, clean) < sum(last) / 10


def test_guidance_leads_away_from_what_is_given_no_class():
    """One network with a class and without (Ho and Salimans, 2021): 0 stands for none; a trained table says what a class adds."""

    class Guided(nn.Composite):
        classes: nn.Layer
        net: nn.Layer

        def forward(self, call, x, *, label):
            return call.net(x, time=call.classes(label))

    model, label = Guided(nn.Embed(3, 4), UNet((4, 8))), jnp.array([1, 2] * 4)
    clean = jnp.where(label == 1, 1.0, -1.0)[:, None, None, None] * jnp.ones((8, 8, 1))
    noisy = clean + jax.random.normal(jax.random.key(0), clean.shape)
    x, y = jnp.concatenate([noisy, noisy]), jnp.concatenate([clean, clean])
    labels = jnp.concatenate([label, jnp.zeros_like(label)])
    state, losses = train(model, squared_error, optim.Adam(1e-2), x, y, 30, label=labels)
    variables = state.trainables, state.non_trainables
    with_class, without = (infer(model, noisy, variables, label=given) for given in (label, 0 * label))
    assert losses[-1] < losses[0] / 2 and squared_error(with_class, clean) < squared_error(without, clean)
    guided = without + 2 * (with_class - without)
    assert jnp.mean(guided * clean) > jnp.mean(with_class * clean)  # further towards the class
