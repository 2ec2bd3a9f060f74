"""A hundred layers with next to no arithmetic: what remains is what each call costs."""

import functools

import jax.numpy as jnp

from benchmarks import dense
from benchmarks.workload import Workload

SIZES = (8,) * 101

WORKLOAD = Workload(
    name="tiny_layers",
    about="a training step of 100 layers of 8 units with tanh, batch 4",
    weights=functools.partial(dense.weights, SIZES),
    small=functools.partial(dense.weights, (8,) * 3),
    batch=functools.partial(dense.batch, 4, SIZES),
    contenders=dense.contenders(jnp.tanh),
)
