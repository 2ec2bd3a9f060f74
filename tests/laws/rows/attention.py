"""Rows of the law table: attention."""

import jax.numpy as jnp

from mlax_tutorial import nn
from tests.laws.rows.normalization import STATISTICS
from tests.laws.rows.row import BIAS_SUM, DROPOUT, LayerRow

# Logits, softmax and (in chunks) the running sums are float32 for half precision; so are rotary angles.
SOFTMAX = frozenset(
    "dot_general convert_element_type select_n reduce_max reduce_sum sub exp div max mul add neg stop_gradient broadcast_in_dim "
    "eq add_any reduce_and is_finite transpose squeeze pow integer_pow while scan reshape sin cos jit pjit checkpoint remat2 "
    "custom_jvp_call copy iota".split()
)

LAYERS = [
    LayerRow(
        nn.MultiHeadAttention(heads=2),
        (3, 4),
        accumulates=SOFTMAX,
        unlike=(nn.MultiHeadAttention(heads=4), nn.MultiHeadAttention(heads=2, causal=True)),
        same=nn.MultiHeadAttention(jnp.int32(2)),
    ),
    LayerRow(
        nn.MultiHeadAttention(heads=2, head_dim=4, kv_heads=1, causal=True, rotary_base=100),
        (4, 6),
        accumulates=SOFTMAX,
        unlike=(nn.MultiHeadAttention(heads=2, head_dim=4, kv_heads=1, causal=True, rotary_base=101),),
        same=nn.MultiHeadAttention(heads=2, head_dim=4, kv_heads=1, causal=True, rotary_base=100.0),
    ),
    LayerRow(nn.MultiHeadAttention(heads=2, causal=True, chunk_size=2), (4, 4), accumulates=SOFTMAX),
    LayerRow(
        nn.MultiHeadAttention(heads=2, dropout=0.25, use_bias=True),
        (3, 4),
        draws=True,
        accumulates=SOFTMAX,
        unlike=(nn.MultiHeadAttention(heads=2, dropout=0.25), nn.MultiHeadAttention(heads=2, use_bias=True)),
    ),
    LayerRow(
        nn.MultiHeadAttention(heads=2, causal=True, window=2, implementation="cudnn"),
        (4, 4),
        accumulates=SOFTMAX,
        unlike=(
            nn.MultiHeadAttention(heads=2, causal=True, window=2),
            nn.MultiHeadAttention(heads=2, causal=True, window=2, implementation="xla"),
            nn.MultiHeadAttention(heads=2, causal=True, window=3, implementation="cudnn"),
        ),
    ),
    LayerRow(
        nn.TransformerBlock(8, heads=2, hidden=6, causal=True, window=2, rotary_base=100, dropout=0.25),
        (3, 8),
        draws=True,
        accumulates=SOFTMAX | STATISTICS | BIAS_SUM | DROPOUT,
        unlike=(
            nn.TransformerBlock(8, heads=2, causal=True, window=2, rotary_base=100, dropout=0.25),
            nn.TransformerBlock(8, heads=2, hidden=6, causal=True, rotary_base=100, dropout=0.25),
        ),
    ),
]
