"""What a process is told before it starts: how many devices it simulates is fixed when JAX is first used."""

import os
import re


def environment_for(devices):
    """The variables of a process that simulates so many devices on the CPU."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(devices)}
    # JAX refuses to be told twice, and XLA takes blanks for the name of a file.
    flags = re.sub(r"--xla_force_host_platform_device_count=\d+", "", environment.pop("XLA_FLAGS", ""))
    return environment | ({"XLA_FLAGS": flags} if flags.strip() else {})
