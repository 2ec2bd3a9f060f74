"""What a unit's outcome depends on besides the project's files: installed versions, Python, platform, settings."""

import functools
import importlib.metadata
import os
import platform
import sys

PREFIXES = ("JAX_", "XLA_", "LIBTPU", "TPU_", "MLAX_", "PYTHONOPTIMIZE", "PYTHONWARNINGS")
# They turn a skip into a failure, or say where this record is not to be used: no outcome depends on them.
HARMLESS = ("MLAX_REQUIRE_", "MLAX_RECORD")
# As the run was started: `mlax_tutorial` changes XLA_FLAGS when it is imported with an old JAX.
_STARTED = dict(os.environ)


def python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


@functools.cache
def installed() -> tuple[str, ...]:
    """Name and version of every distribution of this Python."""
    return tuple(sorted({f"{each.name}=={each.version}" for each in importlib.metadata.distributions()}))


def settings() -> list[str]:
    return sorted(
        f"{name}={value}"
        for name, value in _STARTED.items()
        if name.startswith(PREFIXES) and not name.startswith(HARMLESS)
    )


def here() -> list[str]:
    """All of it, as lines. Only the kind of processor counts, as the newest JAX runs on each machine anyway."""
    return [
        f"{sys.implementation.name} {python()}",
        sys.platform,
        platform.machine(),
        *settings(),
        *installed(),
    ]
