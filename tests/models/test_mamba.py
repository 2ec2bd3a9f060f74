"""A selective state space (Gu and Dao, 2023): a block in the manner of Mamba learns what to keep, and decodes as it learned."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mlax_tutorial import nn, optim
from tests.models import infer, train

WORDS, CHANNELS, STATES, LENGTH = 4, 16, 4, 12


class Selective(nn.Layer):
    """A state for each channel, which fades, takes in the input, and is read, as much as the input itself says."""

    states: int
    decodes = True

    def init(self, key, x, **inputs):
        rates = jnp.broadcast_to(jnp.arange(1, self.states + 1, dtype=x.dtype), (x.shape[-1], self.states))
        return {"log_rates": jnp.log(rates), "skip": jnp.ones(x.shape[-1:], x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, step, write, read, key=None, inference_mode=False):
        return self.decode(x, trainables, (), None, step=step, write=write, read=read)[0], non_trainables

    def build_cache(self, x, length, **inputs):
        return jnp.zeros((*x.shape[:-2], x.shape[-1], self.states))

    def decode(self, x, trainables, non_trainables, cache, *, step, write, read):
        keep = jnp.exp(-jnp.einsum("...tc,cs->...tcs", step, jnp.exp(trainables["log_rates"])))
        add = jnp.einsum("...tc,...ts->...tcs", step * x, write)
        states, last = nn.linear_recurrence(keep, add, cache, axis=-3)
        return jnp.einsum("...tcs,...ts->...tc", states, read) + x * trainables["skip"], last


class Mamba(nn.Composite):
    channels: int
    states: int
    decodes = True

    def children(self):
        return {
            "norm": nn.RMSNorm(),
            "inner": nn.Linear(self.channels),
            "gate": nn.Linear(self.channels),
            "mix": nn.Conv(self.channels, (3,), padding="CAUSAL", groups=self.channels),
            "step": nn.Series(nn.Linear(self.channels), nn.Bias(), nn.F(jax.nn.softplus)),
            "write": nn.Linear(self.states),
            "read": nn.Linear(self.states),
            "memory": Selective(self.states),
            "outer": nn.Linear(self.channels),
        }

    def forward(self, call, x):
        y = call.norm(x)
        gate, y = jax.nn.silu(call.gate(y)), jax.nn.silu(call.mix(call.inner(y)))
        y = call.memory(y, step=call.step(y), write=call.write(y), read=call.read(y))
        return x + call.outer(y * gate)


def cross_entropy(logits, ids):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, ids).mean()


def test_it_learns_which_words_to_keep_and_decodes_as_it_learned():
    ids = jax.random.randint(jax.random.key(2), (32, LENGTH), 0, 4 * WORDS)
    ids = ids.at[:, 0].set(ids[:, 0] % WORDS)
    places = jnp.where(
        ids < WORDS, jnp.arange(LENGTH), 0
    )  # of words to keep; all others are to be overlooked
    wanted = jnp.take_along_axis(ids, jax.lax.cummax(places, axis=1), axis=1)
    model = nn.Series(nn.Embed(4 * WORDS, CHANNELS), Mamba(CHANNELS, STATES), nn.RMSNorm(), nn.Linear(WORDS))
    state, losses = train(model, cross_entropy, optim.Adam(2e-2), ids, wanted, 40)
    assert losses[-1] < losses[0] / 4

    variables = state.trainables, state.non_trainables
    whole = infer(model, ids, variables)
    cache, steps, decode = model.init_cache(ids[:, :1], LENGTH), [], jax.jit(model.decode)
    for place in range(LENGTH):
        logits, cache = decode(ids[:, place : place + 1], *variables, cache)
        steps.append(logits)
    np.testing.assert_allclose(jnp.concatenate(steps, axis=1), whole, atol=1e-4)
