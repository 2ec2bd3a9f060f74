"""BYOL: a network learns to say what a slow average of itself says of another view."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn, optim

ENCODER = nn.Series(nn.Linear(32), nn.BatchNorm(), nn.F(jax.nn.relu), nn.Linear(8))
PREDICTOR = nn.Series(nn.Linear(16), nn.F(jax.nn.relu), nn.Linear(8))
ONLINE = nn.Series(encoder=ENCODER, predictor=PREDICTOR)
OPTIMIZER = optim.ExponentialMovingAverage(optim.Adam(3e-3), decay=0.98)


def distance(predicted, wanted):
    unit = [y / jnp.linalg.norm(y, axis=-1, keepdims=True) for y in (predicted, wanted)]
    return jnp.mean(2 - 2 * jnp.sum(unit[0] * unit[1], axis=-1))


@jax.jit
def step(trainables, rest, state, views):
    slow = state.average["encoder"]

    def loss(trainables):
        y, updated = ONLINE.fwd(views[0], trainables, rest)
        wanted, _ = ENCODER.fwd(views[1], slow, rest["encoder"])
        return distance(y, jax.lax.stop_gradient(wanted)), updated

    (value, rest), gradients = jax.value_and_grad(loss, has_aux=True)(trainables)
    updates, state = OPTIMIZER.step(gradients, state, trainables)
    return optim.apply_updates(trainables, updates), rest, state, value


def test_views_of_one_thing_come_together():
    x = jax.random.normal(jax.random.key(0), (64, 6))
    trainables, rest = ONLINE.init(jax.random.key(1), x)
    state, losses, first = OPTIMIZER.init(trainables), [], trainables
    for key in jax.random.split(jax.random.key(2), 40):
        views = x + 0.1 * jax.random.normal(key, (2, *x.shape))
        trainables, rest, state, value = step(trainables, rest, state, views)
        losses.append(float(value))
    assert losses[-1] < losses[0] / 3
    features, _ = ENCODER.fwd(x, trainables["encoder"], rest["encoder"], inference_mode=True)
    assert jnp.std(features, axis=0).min() > 0.1  # not all the same
    gone = jax.tree.map(lambda old, new: jnp.abs(new - old).sum(), first, trainables)
    lag = jax.tree.map(lambda slow, new: jnp.abs(new - slow).sum(), state.average, trainables)
    assert 0 < sum(jax.tree.leaves(lag)) < sum(jax.tree.leaves(gone))  # the average follows
