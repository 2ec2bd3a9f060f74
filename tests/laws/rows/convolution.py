"""Rows of the law table: convolutions and pooling."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from tests.laws.rows.row import LayerRow

# What an average or a sum, and its gradient, may do in float32.
SUMS = frozenset(
    {"convert_element_type", "reduce_window_sum", "broadcast_in_dim", "div", "pad", "reduce_window"}
)

LAYERS = [
    LayerRow(
        nn.Conv(4, (3, 2)),
        (5, 4, 3),
        unlike=(
            nn.Conv(4, (2, 3)),
            nn.Conv(4, (3, 2), strides=2),
            nn.Conv(4, (3, 2), padding=1),
            nn.Conv(4, (3, 2), kernel_spec="OIHW"),
            nn.ConvTranspose(4, (3, 2)),
        ),
        same=nn.Conv(jnp.int32(4), [3, 2], strides=jnp.int32(1), padding="valid"),
    ),
    LayerRow(
        nn.Conv(4, (3,), strides=2, padding="SAME", groups=2, input_spec="CW", kernel_spec="WIO"),
        (2, 7),
        unlike=(nn.Conv(4, (3,), strides=2, padding="SAME", groups=2),),
        same=nn.Conv(4, (3,), strides=2, padding="same", groups=2, input_spec="CW", kernel_spec="WIO"),
    ),
    LayerRow(
        nn.Conv(2, (2, 3), strides=(1, 2), padding=((1, 0), 2), dilation=(2, 1)),
        (5, 6, 2),
        unlike=(nn.Conv(2, (2, 3), strides=(2, 1), padding=((1, 0), 2), dilation=(2, 1)),),
        same=nn.Conv(2, (2, 3), strides=(1, 2), padding=[(1, 0), (2, 2)], dilation=[2, 1]),
    ),
    LayerRow(
        nn.Conv(2, (3,), padding="CIRCULAR"),
        (5, 2),
        unlike=(
            nn.Conv(2, (3,), padding="REFLECT"),
            nn.Conv(2, (3,), padding="SAME"),
            nn.Conv(2, (3,), padding="CAUSAL"),
        ),
        same=nn.Conv(2, (3,), padding="circular"),
    ),
    LayerRow(nn.Conv(2, (3,), padding="CAUSAL", dilation=2), (5, 2)),
    LayerRow(
        nn.ConvTranspose(3, (3, 2), strides=2, padding="SAME"),
        (3, 2, 4),
        unlike=(
            nn.ConvTranspose(3, (3, 2), strides=2),
            nn.ConvTranspose(3, (3, 2), strides=2, output_padding=1),
        ),
        same=nn.ConvTranspose(3, (3, 2), strides=np.int64(2), padding="same"),
    ),
    LayerRow(
        nn.ConvTranspose(4, (3,), strides=3, padding=1, groups=2, output_padding=1, input_spec="CW"),
        (2, 4),
        unlike=(nn.ConvTranspose(4, (3,), strides=3, padding=1, groups=2, input_spec="CW"),),
    ),
    LayerRow(
        nn.MaxPool((2, 3), strides=1, padding="SAME"),
        (3, 4, 2),
        unlike=(nn.MaxPool((2, 3)), nn.SumPool((2, 3), strides=1, padding="SAME")),
        same=nn.MaxPool([2, 3], strides=1, padding="same"),
    ),
    LayerRow(
        nn.MaxPool((2,), axes=-1),
        (3, 5),
        unlike=(nn.MaxPool((2,)),),
        same=nn.MaxPool((2,), axes=(-1,)),
    ),
    LayerRow(
        nn.AvgPool((2, 2), padding=1, strides=2, count_include_pad=False),
        (3, 4, 2),
        accumulates=SUMS,
        unlike=(nn.AvgPool((2, 2), padding=1), nn.AvgPool((2, 2))),
        same=nn.AvgPool((2, 2), padding=1, strides=2, count_include_pad=False),
    ),
    LayerRow(
        nn.AvgPool((3,), strides=2),
        (7, 2),
        accumulates=SUMS,
        unlike=(nn.AvgPool((3,), strides=2, padding=1),),
    ),
    LayerRow(
        nn.SumPool((2,), axes=-2),
        (4, 2),
        accumulates=SUMS,
        unlike=(nn.SumPool((2,), axes=-1),),
        same=nn.SumPool([2], axes=[-2]),
    ),
    LayerRow(nn.Upsample((2,)), (3, 2), unlike=(nn.Upsample((3,)), nn.Upsample((2,), "linear"))),
]
