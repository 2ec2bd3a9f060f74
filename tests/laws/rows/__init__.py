"""The law table: one row a layer, one row an optimizer. A new public class without a row fails the suite.

The laws are those of ``mlax_tutorial.checking.laws``; ``tests/laws/each/`` and the TPU compilation read these rows.
"""

import dataclasses
import inspect

from mlax_tutorial import nn, optim
from tests.laws.rows import (
    attention,
    basic,
    containers,
    convolution,
    embed,
    normalization,
    optimizers,
    precision,
    recurrent,
)
from tests.laws.rows.row import LayerRow

LAYERS: list[LayerRow] = [
    *basic.LAYERS,
    *embed.LAYERS,
    *normalization.LAYERS,
    *attention.LAYERS,
    *convolution.LAYERS,
    *recurrent.LAYERS,
    *containers.LAYERS,
    *precision.LAYERS,
]
OPTIMIZERS = optimizers.OPTIMIZERS
SCHEDULES = optimizers.SCHEDULES

# Bases that are not layers or optimizers by themselves.
BASES = {
    nn.Layer,
    nn.Composite,
    nn.Cell,
    optim.Transformation,
    optim.Optimizer,
    optim.Descent,
    optim.Schedule,
}


def public_classes(module, base):
    """The public subclasses of ``base`` that a module offers, bases left out."""
    named = (getattr(module, name) for name in module.__all__)
    return {item for item in named if inspect.isclass(item) and issubclass(item, base)} - BASES


def classes(layer):
    """The classes of a layer or an optimizer and of all that it holds."""
    yield type(layer)
    for field in dataclasses.fields(layer):
        value = getattr(layer, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, (nn.Layer, optim.Transformation, optim.Schedule)):
                yield from classes(item)
