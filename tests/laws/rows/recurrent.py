"""Rows of the law table: recurrent layers."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.checking import laws
from tests.laws.rows.row import BIAS_SUM, LayerRow

# Gradients are summed over batch and time in float32 for half precision.
SUMS = BIAS_SUM | {"add_any"}
# So is the state of an LSTM or a GRU, and with it the gates.
STATES = SUMS | laws.GATES

LAYERS = [
    LayerRow(
        nn.Recurrent(nn.RNNCell(3), unroll=3),
        (4, 2),
        accumulates=SUMS,
        unlike=(
            nn.Recurrent(nn.RNNCell(3), unroll=2),
            nn.Recurrent(nn.RNNCell(3), unroll=3, reverse=True),
            nn.Recurrent(nn.RNNCell(2), unroll=3),
            nn.Recurrent(nn.RNNCell(3, activation=jax.nn.relu), unroll=3),
        ),
        same=nn.Recurrent(nn.RNNCell(jnp.int32(3)), unroll=jnp.int32(3)),
    ),
    LayerRow(
        nn.Recurrent(nn.GRUCell(3), reverse=True, output="last"),
        (4, 2),
        accumulates=STATES,
        unlike=(
            nn.Recurrent(
                nn.GRUCell(3, update_bias_initializer=jax.nn.initializers.ones), reverse=True, output="last"
            ),
        ),
    ),
    LayerRow(
        nn.Recurrent(nn.LSTMCell(3)),
        (4, 2),
        accumulates=STATES,
        unlike=(nn.Recurrent(nn.GRUCell(3)), nn.Recurrent(nn.LSTMCell(3), unroll=2)),
    ),
    LayerRow(
        nn.Series(nn.Bidirectional(nn.RNNCell(2)), nn.Bidirectional(nn.GRUCell(2), output="last")),
        (4, 2),
        accumulates=STATES,
        unlike=(nn.Series(nn.Bidirectional(nn.RNNCell(2)), nn.Bidirectional(nn.GRUCell(2))),),
    ),
    LayerRow(
        nn.Stack(nn.Residual(nn.Recurrent(nn.RNNCell(2))), depth=2),
        (3, 2),
        accumulates=SUMS,
    ),
]
