"""Rows of the law table: layers that keep to a policy of dtypes."""

import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.precision import Policy
from tests.laws.rows.row import BIAS_SUM, DROPOUT, LayerRow

BLOCK = nn.Series(nn.Linear(4), nn.Bias(), nn.F(jnp.tanh), nn.Dropout(0.5), nn.Linear(4))


def _of_dtype(dtype):
    return Policy(dtype, param_dtype=dtype).apply(BLOCK)


# The laws compare at float32's accuracy, so here the weights, not the activations, are of half precision.
LAYERS = [
    LayerRow(
        Policy("float32", param_dtype="bfloat16", output_dtype="float32").apply(BLOCK),
        (4,),
        draws=True,
        accumulates=BIAS_SUM | DROPOUT,
        of_dtype=_of_dtype,
        unlike=(
            BLOCK,
            Policy("float32").apply(BLOCK),
            Policy("float32", "bfloat16", "float32", "float32").apply(BLOCK),
        ),
        same=Policy(jnp.float32, jnp.bfloat16, output_dtype=jnp.float32).apply(BLOCK),
    ),
]
