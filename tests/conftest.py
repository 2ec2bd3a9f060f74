"""Two simulated devices for all tests, so that what is sharded really is."""

import jax

import mlax_tutorial  # noqa: F401  (before any test uses a device)

jax.config.update("jax_num_cpu_devices", 2)
