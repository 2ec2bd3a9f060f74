"""Rows of the law table: Linear, Bias, F, Flatten, Dropout."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from tests.laws.rows.row import BIAS_SUM, DROPOUT, LayerRow

_leaky = functools.partial(jax.nn.leaky_relu, negative_slope=0.2)


def _double(x):
    return x * jnp.asarray(2, x.dtype)


LAYERS = [
    LayerRow(
        nn.Linear(3),
        (4,),
        unlike=(nn.Linear(4), nn.Linear(3, param_dtype=jnp.float32), nn.Flatten(3), nn.F(jax.nn.relu)),
        same=nn.Linear(jnp.int32(3)),
    ),
    LayerRow(
        nn.Linear(2, kernel_initializer=jax.nn.initializers.glorot_uniform(), precision="highest"),
        (5, 4),
        unlike=(nn.Linear(2), nn.Linear(2, precision="highest")),
        same=nn.Linear(
            2, kernel_initializer=jax.nn.initializers.glorot_uniform(), precision=jax.lax.Precision.HIGHEST
        ),
    ),
    LayerRow(
        nn.Linear(3, transposed_kernel=True),
        (4,),
        unlike=(nn.Linear(3), nn.Linear(4, transposed_kernel=True)),
        same=nn.Linear(out_features=3, transposed_kernel=True),
    ),
    LayerRow(
        nn.Bias(),
        (4,),
        accumulates=BIAS_SUM,
        unlike=(nn.Bias(1), nn.Bias((-1, 1)), nn.Bias(accum_dtype=jnp.float32)),
        same=nn.Bias([-1]),
    ),
    LayerRow(
        nn.Bias((-1, 1), bias_initializer=jax.nn.initializers.normal(0.1)),
        (3, 4),
        accumulates=BIAS_SUM,
        unlike=(nn.Bias((-1, 1), bias_initializer=jax.nn.initializers.normal(0.2)),),
        same=nn.Bias((-1, 1), bias_initializer=jax.nn.initializers.normal(0.1)),
    ),
    LayerRow(
        nn.F(_leaky),
        (4,),
        unlike=(nn.F(jax.nn.leaky_relu), nn.F(functools.partial(jax.nn.leaky_relu, negative_slope=0.3))),
        same=nn.F(functools.partial(jax.nn.leaky_relu, negative_slope=0.2)),
    ),
    LayerRow(nn.F(jax.nn.gelu, _double), (4,), unlike=(nn.F(jax.nn.gelu),), same=nn.F(jax.nn.gelu, _double)),
    LayerRow(nn.Flatten(2), (4, 3), unlike=(nn.Flatten(1), nn.Linear(2)), same=nn.Flatten(axes=2)),
    LayerRow(
        nn.Dropout(0.5),
        (6,),
        draws=True,
        accumulates=DROPOUT,
        unlike=(nn.Dropout(0.25),),
        same=nn.Dropout(jnp.float32(0.5)),
    ),
    LayerRow(
        nn.Dropout(1.0), (6,), draws=True, accumulates=DROPOUT, unlike=(nn.Dropout(0.0),), same=nn.Dropout(1)
    ),
    LayerRow(
        nn.Dropout(0.5, shared_axes=(-3, -2)),
        (3, 2, 6),
        draws=True,
        accumulates=DROPOUT,
        unlike=(nn.Dropout(0.5), nn.Dropout(0.5, -2), nn.Dropout(0.5, (-3, -1))),
        same=nn.Dropout(0.5, [jnp.int32(-2), -3]),
    ),
    LayerRow(nn.Dropout(0), (6,), same=nn.Dropout(0.0)),
]
