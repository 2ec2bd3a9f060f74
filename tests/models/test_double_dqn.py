"""Double DQN (van Hasselt et al., 2016): the network chooses the next action, its slow copy says what that is worth."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial import nn, optim, trees

PLACES, DISCOUNT = 6, 0.9
MODEL = nn.Series(nn.Embed(PLACES, 16), nn.F(jnp.tanh), nn.Linear(2), nn.Bias())
OPTIMIZER = optim.Adam(1e-2)


def walk(place, action):
    """A corridor: 0 goes left, 1 right; the right end pays 1 and ends the walk."""
    after = jnp.clip(place + 2 * action - 1, 0, PLACES - 1)
    end = after == PLACES - 1
    return after, end.astype("float32"), end


def values(trainables, place):
    return MODEL.fwd(place, trainables, ((),) * 4)[0]


def of(table, action):
    return jnp.take_along_axis(table, action[:, None], axis=1)[:, 0]


@functools.partial(jax.jit, donate_argnums=(0, 1, 2))
def step(trainables, slow, state, key):
    place_key, action_key = jax.random.split(key)
    place = jax.random.randint(place_key, (32,), 0, PLACES - 1)
    action = jax.random.randint(action_key, (32,), 0, 2)
    after, reward, end = walk(place, action)

    def loss(trainables):
        chosen = jnp.argmax(values(trainables, after), axis=1)
        target = reward + DISCOUNT * jnp.where(end, 0, of(values(slow, after), chosen))
        return jnp.mean((of(values(trainables, place), action) - jax.lax.stop_gradient(target)) ** 2)

    updates, state = OPTIMIZER.step(jax.grad(loss)(trainables), state, trainables)
    trainables = optim.apply_updates(trainables, updates)
    return trainables, trees.average(slow, trainables, 0.95), state


def test_it_learns_what_each_place_is_worth():
    trainables, _ = MODEL.init(jax.random.key(0), jnp.arange(3))
    slow, state = jax.tree.map(jnp.copy, trainables), OPTIMIZER.init(trainables)
    for key in jax.random.split(jax.random.key(1), 500):
        trainables, slow, state = step(trainables, slow, state, key)
    found, place = values(trainables, jnp.arange(PLACES - 1)), jnp.arange(PLACES - 1)
    assert (jnp.argmax(found, axis=1) == 1).all()  # always to the right
    assert jnp.allclose(found[:, 1], DISCOUNT ** (PLACES - 2 - place).astype("float32"), atol=0.05)
