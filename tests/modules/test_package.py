"""What importing the package does."""

import subprocess
import sys

PRODUCTS = """
import gc
{first}
import jax
import numpy as np

product = jax.jit(lambda x, w: x @ w)
generator = np.random.default_rng(0)
x = generator.normal(size=(128, 512)).astype(np.float32)
on_device = jax.device_put(x)
worst = 0.0
for _ in range(20):
    w = generator.normal(size=(512, 512)).astype(np.float32)
    device = jax.device_put(w)  # as a rule, where the last one lay
    worst = max(worst, float(np.abs(product(on_device, device) - x @ w).max()))
    del device
    gc.collect()
print(worst)
"""


def worst_error(first: str) -> float:
    """The worst error of products with twenty matrices, one after the other, in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", PRODUCTS.format(first=first)], capture_output=True, text=True, check=True
    )
    return float(ran.stdout)


def test_a_new_matrix_at_an_old_address_is_multiplied_rightly():
    """Without the package, the error is above 100 on the oldest JAX."""
    assert worst_error("import mlax_tutorial") < 1e-3


EVERYTHING = """
import importlib, importlib.util, pkgutil
import jax
import mlax_tutorial

live = importlib.util.find_spec("jupyter_server") is not None  # in the newest environment alone
for module in pkgutil.walk_packages(mlax_tutorial.__path__, "mlax_tutorial."):
    if not module.name.endswith("__main__") and (live or not module.name.startswith("mlax_tutorial.live.")):
        importlib.import_module(module.name)
jax.config.update("jax_num_cpu_devices", 2)
print(jax.device_count())
"""


def test_importing_starts_no_device():
    """A chapter chooses the number of its devices after the import; JAX refuses that once an array was made."""
    ran = subprocess.run([sys.executable, "-c", EVERYTHING], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.strip()) == (0, "2"), ran.stderr
