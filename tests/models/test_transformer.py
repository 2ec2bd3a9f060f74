"""A sequence-to-sequence Transformer that learns to turn sequences round; it writes one token at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mlax_tutorial import nn, optim
from tests.models import infer, train

WORDS, FEATURES, LENGTH = 8, 16, 5


class Tokens(nn.Composite):
    """Tokens with learned positions; written with the table that reads them."""

    words: nn.Layer
    places: nn.Layer
    decodes = True

    def forward(self, call, ids):
        return call.words(ids) + call.places(call.place)


def tokens():
    return Tokens(nn.Embed(WORDS, FEATURES), nn.Embed(LENGTH, FEATURES))


def feed_forward():
    return nn.Series(nn.LayerNorm(), nn.Linear(32), nn.Bias(), nn.F(jax.nn.gelu), nn.Linear(FEATURES))


class Writer(nn.Composite):
    """A block that looks at what it wrote, and at what it was given to read."""

    norms: tuple
    written: nn.Layer
    given: nn.Layer
    think: nn.Layer
    decodes = True

    def forward(self, call, x, *, context):
        x = x + call.written(call.norms[0](x))
        x = x + call.given(call.norms[1](x), context=context)
        return x + call.think(x)


class Translator(nn.Composite):
    encoder: nn.Layer
    written: nn.Layer
    decoder: nn.Layer
    logits: nn.Layer
    decodes = ("written", "decoder", "logits")

    def forward(self, call, x, *, source=None):
        context = None if source is None else call.encoder(source)  # a later step has it in its cache
        return call.logits(call.decoder(call.written(x), context=context))


def translator():
    attend = nn.Residual(nn.Series(nn.LayerNorm(), nn.MultiHeadAttention(2)))
    encoder = nn.Series(tokens(), attend, nn.Residual(feed_forward()), nn.LayerNorm())
    norms = nn.LayerNorm(), nn.LayerNorm()
    decoder = Writer(norms, nn.MultiHeadAttention(2, causal=True), nn.MultiHeadAttention(2), feed_forward())
    return Translator(encoder, tokens(), decoder, nn.Series(nn.LayerNorm(), nn.Linear(WORDS)))


def cross_entropy(logits, ids):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, ids).mean()


def test_it_learns_to_turn_round_and_decodes_as_it_learned():
    source = jax.random.randint(jax.random.key(2), (16, LENGTH), 1, WORDS)
    wanted = source[:, ::-1]
    begun = jnp.pad(wanted[:, :-1], ((0, 0), (1, 0)))  # 0 begins a sequence
    model = translator()
    state, losses = train(model, cross_entropy, optim.Adam(1e-2), begun, wanted, 30, source=source)
    assert losses[-1] < losses[0] / 2

    variables = state.trainables, state.non_trainables
    whole = infer(model, begun, variables, source=source)
    cache, steps, decode = model.init_cache(begun[:, :1], LENGTH, source=source), [], jax.jit(model.decode)
    for place in range(LENGTH):
        given = {"source": source} if place == 0 else {}
        logits, cache = decode(begun[:, place : place + 1], *variables, cache, **given)
        steps.append(logits)
    np.testing.assert_allclose(jnp.concatenate(steps, axis=1), whole, atol=1e-5)
