"""A variational autoencoder: its latents are drawn in ``forward``, and its loss looks at their distribution."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn, optim
from tests.models import infer, train


class VAE(nn.Composite):
    encoder: nn.Layer
    mean: nn.Layer
    log_variance: nn.Layer
    decoder: nn.Layer
    draws = True

    def forward(self, call, x):
        hidden = call.encoder(x)
        latent = mean = call.mean(hidden)
        log_variance = call.log_variance(hidden)
        if not call.inference_mode:
            latent = mean + jnp.exp(log_variance / 2) * jax.random.normal(call.key(), mean.shape)
        return call.decoder(latent), mean, log_variance


def bound(outputs, x):
    """Minus the evidence lower bound, up to a constant."""
    y, mean, log_variance = outputs
    divergence = (mean**2 + jnp.exp(log_variance) - 1 - log_variance).sum(axis=-1) / 2
    return jnp.mean(((y - x) ** 2).sum(axis=-1) * 10 + divergence)


def test_it_learns_a_circle():
    angles = jax.random.uniform(jax.random.key(2), (64, 1), maxval=2 * jnp.pi)
    x = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    hidden = nn.Series(nn.Linear(32), nn.Bias(), nn.F(jnp.tanh))
    decoder = nn.Series(*hidden.layers, nn.Linear(2), nn.Bias())
    model = VAE(hidden, nn.Linear(2), nn.Linear(2), decoder)
    state, losses = train(model, bound, optim.Adam(1e-2), x, x, 40)
    assert losses[-1] < losses[0] / 2
    variables = state.trainables, state.non_trainables
    first, again = (infer(model, x, variables)[0] for _ in range(2))
    assert (first == again).all()  # without a draw
    drawn = model.fwd(x, *variables, key=jax.random.key(3))[0][0]
    assert (drawn != first).any() and not jnp.isnan(drawn).any()
