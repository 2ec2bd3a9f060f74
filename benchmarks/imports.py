"""How long imports take, each in a fresh process, in turns."""

import subprocess
import sys

STATEMENTS = {
    "jax": "import jax",
    "mlax_tutorial": "import mlax_tutorial.nn, mlax_tutorial.optim",
    "Flax Linen": "import flax.linen, optax",
    "Flax NNX": "import flax.nnx, optax",
    "Equinox": "import equinox, optax",
    "Haiku": "import haiku, optax",
}
TIMED = "import time; begun = time.perf_counter(); {}; print(time.perf_counter() - begun)"


def run(names, rounds: int) -> dict[str, tuple[float, ...]]:
    """Seconds for each named import, one figure a round, after a round that warms the disk's cache."""
    times = [{name: once(STATEMENTS[name]) for name in names} for _ in range(1 + rounds)][1:]
    return {name: tuple(time[name] for time in times) for name in names}


def once(statement: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", TIMED.format(statement)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)
