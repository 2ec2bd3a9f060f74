"""Rows of the law table: Embed."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from tests.laws.rows.row import LayerRow

# Rows are looked up in float32 for half precision, and so their gradients summed.
LOOK_UP = frozenset({"convert_element_type", "gather", "scatter-add", "broadcast_in_dim"})


class Tied(nn.Composite):
    """Reads with the table and writes with it."""

    embed: nn.Layer

    def forward(self, call, x):
        return call.embed.attend(jnp.tanh(call.embed(x)))


LAYERS = [
    LayerRow(
        nn.Embed(5, 3),
        (4,),
        ids=5,
        accumulates=LOOK_UP,
        unlike=(nn.Embed(3, 5), nn.Embed(5, 3, param_dtype=jnp.bfloat16), nn.Linear(5)),
        same=nn.Embed(vocab_size=jnp.int32(5), embed_dim=3, param_dtype="float32"),
    ),
    LayerRow(
        nn.Embed(5, 3, embed_initializer=jax.nn.initializers.normal(1.0)),
        (),
        ids=5,
        accumulates=LOOK_UP,
        unlike=(nn.Embed(5, 3), nn.Embed(5, 3, embed_initializer=jax.nn.initializers.normal(2.0))),
        same=nn.Embed(5, 3, embed_initializer=jax.nn.initializers.normal(1.0)),
    ),
    LayerRow(Tied(nn.Embed(5, 3)), (4,), ids=5, accumulates=LOOK_UP),
]
