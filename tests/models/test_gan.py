"""A GAN: two models and two optimizers in one jitted step."""

import jax
import jax.numpy as jnp
import optax

from mlax_tutorial import nn, optim

MAKER = nn.Series(nn.Linear(2), nn.Bias())
CRITIC = nn.Series(nn.Linear(16), nn.Bias(), nn.F(jax.nn.leaky_relu), nn.Linear(1), nn.Bias())
MAKER_OPTIMIZER, CRITIC_OPTIMIZER = optim.Adam(2e-2, first_decay=0.5), optim.Adam(2e-2, first_decay=0.5)
CENTER = jnp.array([2.0, -1.0])


def judged(critic, x, real):
    """How far the critic's judgments are from the label."""
    logits = CRITIC.fwd(x, critic, ((),) * 5)[0][:, 0]
    return optax.losses.sigmoid_binary_cross_entropy(logits, jnp.full(logits.shape, float(real))).mean()


def made(maker, key):
    return MAKER.fwd(jax.random.normal(key, (64, 2)), maker, ())[0]


@jax.jit
def step(maker, maker_state, critic, critic_state, key):
    data_key, first, second = jax.random.split(key, 3)
    data = CENTER + jax.random.normal(data_key, (64, 2))

    def critics_loss(critic):
        return judged(critic, data, True) + judged(critic, jax.lax.stop_gradient(made(maker, first)), False)

    value, gradients = jax.value_and_grad(critics_loss)(critic)
    updates, critic_state = CRITIC_OPTIMIZER.step(gradients, critic_state, critic)
    critic = optim.apply_updates(critic, updates)
    gradients = jax.grad(lambda maker: judged(critic, made(maker, second), True))(maker)
    updates, maker_state = MAKER_OPTIMIZER.step(gradients, maker_state, maker)
    return optim.apply_updates(maker, updates), maker_state, critic, critic_state, value


def test_what_it_makes_moves_to_the_data():
    maker, _ = MAKER.init(jax.random.key(0), jnp.ones((1, 2)))
    critic, _ = CRITIC.init(jax.random.key(1), jnp.ones((1, 2)))
    state = maker, MAKER_OPTIMIZER.init(maker), critic, CRITIC_OPTIMIZER.init(critic)
    values = []
    for key in jax.random.split(jax.random.key(2), 120):
        *state, value = step(*state, key)
        values.append(float(value))
    assert min(values[:20]) < values[0]  # the critic learned first
    far = jnp.linalg.norm(made(maker, jax.random.key(3)).mean(axis=0) - CENTER)
    near = jnp.linalg.norm(made(state[0], jax.random.key(3)).mean(axis=0) - CENTER)
    assert near < far / 2
