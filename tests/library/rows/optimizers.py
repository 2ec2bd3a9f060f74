"""Rows of the law table: optimizers."""

from mlax_tutorial import optim

OPTIMIZERS = [
    optim.SGD(0.1),
    optim.SGD(0.1, momentum=0.9),
    optim.SGD(0.1, momentum=0.9, nesterov=True),
]
