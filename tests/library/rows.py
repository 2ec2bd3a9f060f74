"""The law table: one row a layer, one row an optimizer. A new public class without a row fails the suite.

The laws in ``test_layer_laws.py``, ``test_optimizer_laws.py`` and the TPU compilation read these rows.
"""

import dataclasses
import functools
import inspect

import jax
import jax.numpy as jnp

from mlax_tutorial import nn, optim


@dataclasses.dataclass(frozen=True)
class LayerRow:
    """A layer with an example input, and how it departs from the plain laws.

    Attributes:
      layer: the layer.
      shape: of one example, without batch axes.
      draws: it draws random numbers in training, so batched laws need a key for each example.
      accumulates: primitives that may hold float32 for a half-precision input (a documented ``accum_dtype``).
      unlike: layers that must not equal it.
      same: makes an equal layer by other means.
    """

    layer: nn.Layer
    shape: tuple[int, ...]
    draws: bool = False
    accumulates: frozenset[str] = frozenset()
    unlike: tuple[nn.Layer, ...] = ()
    same: nn.Layer | None = None

    @property
    def id(self):
        return repr(self.layer)


BIAS_SUM = frozenset({"convert_element_type", "broadcast_in_dim", "reduce_sum"})
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
        nn.Dropout(0.5), (6,), draws=True, unlike=(nn.Dropout(0.25),), same=nn.Dropout(jnp.float32(0.5))
    ),
    LayerRow(nn.Dropout(1.0), (6,), draws=True, unlike=(nn.Dropout(0.0),), same=nn.Dropout(1)),
    LayerRow(nn.Dropout(0), (6,), same=nn.Dropout(0.0)),
    LayerRow(
        nn.Series(
            nn.Flatten(2), nn.Linear(5), nn.Bias(), nn.F(jax.nn.relu), nn.Series(nn.Linear(2), nn.F(jnp.tanh))
        ),
        (4, 3),
        accumulates=BIAS_SUM,
        unlike=(nn.Series(nn.Flatten(2)), nn.Series(nn.Flatten(2), nn.Linear(5))),
    ),
    LayerRow(
        nn.Series(nn.Linear(5), nn.Dropout(0.5), nn.Series(nn.Dropout(0.2), nn.Linear(2)), nn.Dropout(0.1)),
        (4,),
        draws=True,
        unlike=(nn.Series(nn.Linear(5), nn.Dropout(0.5), nn.Dropout(0.2), nn.Linear(2), nn.Dropout(0.1)),),
    ),
    LayerRow(nn.Series(), (4,), unlike=(nn.Series(nn.Flatten(1)),), same=nn.Series()),
]

OPTIMIZERS = [
    optim.SGD(0.1),
    optim.SGD(0.1, momentum=0.9),
    optim.SGD(0.1, momentum=0.9, nesterov=True),
]

# Bases that are not layers or optimizers by themselves.
BASES = {nn.Layer, optim.Optimizer}


def public_classes(module, base):
    """The public subclasses of ``base`` that a module offers, bases left out."""
    named = (getattr(module, name) for name in module.__all__)
    return {item for item in named if inspect.isclass(item) and issubclass(item, base)} - BASES
