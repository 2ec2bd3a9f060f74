"""The library that the book builds: purely functional neural networks on plain JAX.

Start with :mod:`mlax_tutorial.nn` (layers) and :mod:`mlax_tutorial.optim` (optimizers); the contract
that every layer keeps stands at the top of ``mlax_tutorial.nn``.
"""

import os

import jax

# On a CPU, jaxlib before 0.8.3 keeps a packed copy of a matrix by its address, and takes it for whatever matrix lies there
# later: one that a step has donated, or merely a new one. Products are then wrong, without a word. XLA reads its flags when
# JAX first uses a device, so import this package before.
if jax.__version_info__ < (0, 8, 3) and "xla_cpu_use_xnnpack" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_use_xnnpack=false"
