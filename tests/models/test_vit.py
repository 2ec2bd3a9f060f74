"""A vision Transformer: patches, a class token, learned positions, a stack of blocks, in bfloat16 with a head in float32."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mlax_tutorial import nn, optim
from mlax_tutorial.precision import Policy
from tests.models import infer, train

FEATURES, PATCHES = 16, 16


class Tokens(nn.Composite):
    patches: nn.Layer
    token: nn.Layer
    places: nn.Layer

    def forward(self, call, x):
        x = call.patches(x)
        x = x.reshape(*x.shape[:-3], PATCHES, FEATURES)
        token = jnp.broadcast_to(call.token(x), (*x.shape[:-2], 1, FEATURES))
        return jnp.concatenate([token, x], axis=-2) + call.places(x)


def vit(depth):
    attention = nn.Series(
        nn.LayerNorm(), nn.MultiHeadAttention(2, dropout=0.1, use_bias=True), nn.Dropout(0.1)
    )
    think = nn.Series(nn.LayerNorm(), nn.Linear(32), nn.Bias(), nn.F(jax.nn.gelu), nn.Linear(FEATURES))
    return nn.Series(
        tokens=Tokens(
            nn.Conv(FEATURES, (4, 4), strides=4),
            nn.Weights((1, FEATURES)),
            nn.Weights((PATCHES + 1, FEATURES)),
        ),
        blocks=nn.Stack(nn.Series(nn.Residual(attention), nn.Residual(think)), depth),
        first=nn.Series(nn.LayerNorm(), nn.F(lambda x: x[..., 0, :])),
        head=Policy("float32").apply(nn.Series(nn.Linear(4), nn.Bias())),
    )


def cross_entropy(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def test_it_tells_where_the_light_is():
    draw = np.random.default_rng(2)
    labels = draw.integers(0, 4, 32)
    light = np.eye(4)[labels].reshape(32, 2, 2)
    images = np.kron(light, np.ones((1, 8, 8)))[..., None]
    images = jnp.asarray(images + 0.1 * draw.normal(size=images.shape), jnp.float32)
    model = Policy("bfloat16").apply(vit(depth=2))
    state, losses = train(model, cross_entropy, optim.AdamW(3e-3, where=optim.kernels), images, labels, 25)
    assert losses[-1] < losses[0] / 2
    assert {leaf.dtype for leaf in jax.tree.leaves(state.trainables)} == {jnp.dtype("float32")}
    logits = infer(model, images, (state.trainables, state.non_trainables))
    assert logits.dtype == jnp.float32 and (jnp.argmax(logits, axis=-1) == labels).mean() > 0.9
