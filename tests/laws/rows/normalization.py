"""Rows of the law table: Scale, BatchNorm, LayerNorm, RMSNorm, GroupNorm."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from tests.laws.rows.row import BIAS_SUM, LayerRow

# Statistics, and the normalization up to its result, are float32 for half precision; so is all of the backward pass.
STATISTICS = frozenset(
    "convert_element_type reduce_sum div sub square mul rsqrt broadcast_in_dim stop_gradient add add_any neg integer_pow pow "
    "reshape squeeze expand_dims".split()
)


class Conditioned(nn.Composite):
    """Its input is the condition, too."""

    layer: nn.Layer
    decodes = True

    def forward(self, call, x):
        return call.layer(x, condition=x)


_drawn = nn.FiLM(kernel_initializer=jax.nn.initializers.normal(0.1))

LAYERS = [
    LayerRow(
        Conditioned(_drawn),
        (3, 4),
        accumulates=STATISTICS | {"split", "concatenate", "pad"},
        unlike=(Conditioned(nn.FiLM()),),
    ),
    LayerRow(
        Conditioned(nn.AdaptiveNorm(nn.LayerNorm())),
        (3, 4),
        accumulates=STATISTICS | {"split", "concatenate", "pad"},
    ),
    LayerRow(
        nn.TimeEmbedding(6),
        (3,),
        accumulates=frozenset(
            "convert_element_type mul sin cos concatenate broadcast_in_dim iota div exp log neg add_any reshape slice split reduce_sum".split()
        ),
        unlike=(nn.TimeEmbedding(4), nn.TimeEmbedding(6, max_period=100.0)),
    ),
    LayerRow(
        nn.Scale(),
        (4,),
        accumulates=BIAS_SUM,
        unlike=(nn.Scale(1), nn.Scale((-1, 1)), nn.Scale(accum_dtype=jnp.float32), nn.Bias()),
        same=nn.Scale([-1]),
    ),
    LayerRow(
        nn.Scale((-1, 1), scale_initializer=jax.nn.initializers.normal(0.1)), (3, 4), accumulates=BIAS_SUM
    ),
    LayerRow(
        nn.BatchNorm(),
        (3, 4),
        accumulates=STATISTICS,
        averages=True,
        unlike=(
            nn.BatchNorm(1e-3),
            nn.BatchNorm(momentum=0.99),
            nn.BatchNorm(axis_name="batch"),
            nn.BatchNorm(affine=True),
            nn.LayerNorm(),
        ),
        same=nn.BatchNorm(epsilon=1e-5, momentum=0.9, channel_axis=jnp.int32(-1)),
    ),
    LayerRow(
        nn.BatchNorm(momentum=0, channel_axis=-2, epsilon=0.01),
        (3, 4),
        accumulates=STATISTICS,
        averages=True,
        unlike=(nn.BatchNorm(momentum=0, epsilon=0.01),),
        same=nn.BatchNorm(momentum=0.0, channel_axis=-2, epsilon=1e-2),
    ),
    LayerRow(
        nn.BatchNorm(channel_axis=-2, affine=True),
        (3, 4),
        accumulates=STATISTICS,
        averages=True,
        unlike=(
            nn.BatchNorm(channel_axis=-2),
            nn.BatchNorm(channel_axis=-2, affine=True, param_dtype=jnp.float32),
        ),
        same=nn.BatchNorm(channel_axis=np.int32(-2), affine=True),
    ),
    LayerRow(
        nn.Series(nn.Linear(3), nn.BatchNorm(), nn.Scale(), nn.Bias(), nn.F(jnp.tanh)),
        (3, 4),
        accumulates=STATISTICS | BIAS_SUM,
        averages=True,
    ),
    LayerRow(nn.Stack(nn.Residual(nn.BatchNorm()), depth=2), (3, 4), accumulates=STATISTICS, averages=True),
    LayerRow(
        nn.LayerNorm(),
        (4,),
        accumulates=STATISTICS,
        unlike=(nn.LayerNorm(axes=2), nn.LayerNorm(epsilon=1e-6), nn.RMSNorm()),
        same=nn.LayerNorm(axes=1, epsilon=1e-5),
    ),
    LayerRow(
        nn.LayerNorm(axes=2, affine=True),
        (3, 4),
        accumulates=STATISTICS,
        unlike=(nn.LayerNorm(axes=2), nn.LayerNorm(axes=2, affine=True, param_dtype=jnp.float32)),
    ),
    LayerRow(nn.RMSNorm(affine=True), (4,), accumulates=STATISTICS, unlike=(nn.RMSNorm(),)),
    LayerRow(
        nn.RMSNorm(),
        (4,),
        accumulates=STATISTICS,
        unlike=(nn.RMSNorm(axes=2), nn.RMSNorm(epsilon=1e-6)),
        same=nn.RMSNorm(axes=1, epsilon=np.float64(1e-5)),
    ),
    LayerRow(
        nn.GroupNorm(2, axes=2),
        (3, 4),
        accumulates=STATISTICS,
        unlike=(nn.GroupNorm(4, axes=2), nn.GroupNorm(2, axes=1), nn.GroupNorm(2, axes=2, channel_axis=-2)),
        same=nn.GroupNorm(groups=2, axes=2, channel_axis=-1),
    ),
    LayerRow(nn.GroupNorm(2, axes=3, channel_axis=-3), (4, 2, 3), accumulates=STATISTICS),
    LayerRow(
        nn.GroupNorm(2, axes=2, affine=True),
        (3, 4),
        accumulates=STATISTICS,
        unlike=(nn.GroupNorm(2, axes=2), nn.GroupNorm(2, axes=2, affine=True, param_dtype=jnp.float32)),
    ),
    LayerRow(
        nn.WeightNorm(nn.Linear(3)),
        (4,),
        accumulates=STATISTICS | {"sqrt", "transpose"},
        unlike=(nn.WeightNorm(nn.Linear(2)), nn.SpectralNorm(nn.Linear(3)), nn.Linear(3)),
    ),
    LayerRow(
        nn.WeightNorm(nn.Conv(8, (3,))),
        (5, 2),
        accumulates=STATISTICS | {"sqrt", "transpose"},
    ),
    LayerRow(
        nn.SpectralNorm(
            nn.Linear(1)
        ),  # one singular vector, which is no constant in second derivatives of more
        (4,),
        accumulates=STATISTICS | {"dot_general", "sqrt", "transpose"},
        averages=True,
        unlike=(nn.SpectralNorm(nn.Linear(1), iterations=2),),
    ),
    LayerRow(
        nn.LoRA(nn.Linear(3), rank=2),
        (4,),
        accumulates=STATISTICS | {"dot_general", "transpose"},
        unlike=(nn.LoRA(nn.Linear(3), rank=1), nn.LoRA(nn.Linear(3), rank=2, alpha=1), nn.Linear(3)),
        same=nn.LoRA(nn.Linear(3), 2, kernels=None),
    ),
]
