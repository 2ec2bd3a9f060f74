"""The library that the book builds: purely functional neural networks on plain JAX.

Start with :mod:`mlax_tutorial.nn` (layers) and :mod:`mlax_tutorial.optim` (optimizers); the contract
that every layer keeps stands at the top of ``mlax_tutorial.nn``.
"""
