"""A multilayer perceptron: most of the time goes into three products of matrices."""

import functools

import jax

from benchmarks import dense
from benchmarks.workload import Workload

SIZES = (784, 512, 512, 10)

WORKLOAD = Workload(
    name="mlp",
    about="a training step of 784-512-512-10 with ReLU, batch 128",
    weights=functools.partial(dense.weights, SIZES),
    small=functools.partial(dense.weights, (784, 10)),
    batch=functools.partial(dense.batch, 128, SIZES),
    contenders=dense.contenders(jax.nn.relu),
)
