"""Two simulated devices for all tests, so that what is sharded really is."""

import jax

jax.config.update("jax_num_cpu_devices", 2)
