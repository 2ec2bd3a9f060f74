"""MAML: weights from which one step on a new task goes far; the outer gradient goes through the inner optimizer."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial import nn, optim

MODEL = nn.Series(nn.Linear(32), nn.Bias(), nn.F(jnp.tanh), nn.Linear(1), nn.Bias())
INNER, OUTER = optim.SGD(0.05), optim.Adam(1e-2)


def error(trainables, x, y):
    return jnp.mean((MODEL.fwd(x, trainables, ())[0] - y) ** 2)


def after_one_step(trainables, seen, unseen):
    """The error on unseen examples of a task, after a step on those that were seen."""
    updates, _ = INNER.step(jax.grad(error)(trainables, *seen), INNER.init(trainables), trainables)
    return error(optim.apply_updates(trainables, updates), *unseen)


def task(key):
    """Examples of a wave of its own height and place."""
    heights, places, *xs = jax.random.split(key, 4)
    height, place = jax.random.uniform(heights, minval=0.5, maxval=2), jax.random.uniform(places)
    return tuple((x, height * jnp.sin(x + place)) for x in (3 * jax.random.normal(k, (10, 1)) for k in xs))


@jax.jit
def mean_error(trainables, keys):
    return jnp.mean(jax.vmap(lambda key: after_one_step(trainables, *task(key)))(keys))


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(trainables, state, key):
    value, gradients = jax.value_and_grad(mean_error)(trainables, jax.random.split(key, 16))
    updates, state = OUTER.step(gradients, state, trainables)
    return optim.apply_updates(trainables, updates), state, value


def test_one_step_on_a_new_task_goes_further():
    trainables, _ = MODEL.init(jax.random.key(0), jnp.ones((1, 1)))
    state, new = OUTER.init(trainables), jax.random.split(jax.random.key(1), 64)
    before = mean_error(trainables, new)
    for key in jax.random.split(jax.random.key(2), 60):
        trainables, state, _ = step(trainables, state, key)
    assert mean_error(trainables, new) < 0.7 * before
