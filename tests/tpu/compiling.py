"""Compile for a TPU without a TPU: libtpu brings the whole compiler, and needs only the name of a topology.

Nothing can be executed, but what no CPU run can find is found: a lowering that is missing, memory that does not
suffice, a layout that the chip refuses.
"""

import functools
import importlib.util
import os

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding

from tests.settings import configured

# Read by libtpu when it is loaded, which is later than this.
for _name, _value in {
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}.items():
    os.environ.setdefault(_name, _value)

# Beside libtpu, JAX would look for a TPU to run on.
jax.config.update("jax_platforms", "cpu")

REQUIRED = os.environ.get("MLAX_REQUIRE_TPU") == "1"


def why_not() -> str | None:
    """Why nothing can be compiled for a TPU here, or None."""
    if importlib.util.find_spec("libtpu") is None:
        return "libtpu is not installed: run `make test-tpu`, which makes an environment that has it"
    return None


@functools.cache
def chips(count: int):
    """The devices of a TPU v5e with 1 or 8 chips."""
    if count == 1:
        found = topologies.get_topology_desc(
            platform="tpu", topology_name="v5e:1x1", chips_per_host_bounds=[1, 1, 1]
        )
    else:
        found = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4")
    assert len(found.devices) == count and found.devices[0].platform == "tpu"
    return found.devices


def shapes(tree):
    """Arrays as `jax.ShapeDtypeStruct`, without a place; anything else as it is."""

    def shape(leaf):
        if not isinstance(leaf, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)):
            return leaf
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=getattr(leaf, "weak_type", False))

    return jax.tree.map(shape, tree)


def compile_for_chip(jitted, *args, **kwargs):
    """Compiles a jitted function for one chip. The arguments are arrays or shapes."""
    return compiled(lowered_for_chip(jitted, *args, **kwargs))


def lowered_for_chip(jitted, *args, **kwargs):
    """A jitted function, lowered for one chip."""
    args, kwargs = shapes((args, kwargs))
    with jax.default_device(chips(1)[0]):
        return jitted.lower(*args, **kwargs)


def compiled(lowered):
    """Compiles what was lowered for a TPU: without optimizations, which is several times faster."""
    with configured(jax_optimization_level="O0"):
        return checked(lowered.compile())


def mesh():
    """Eight chips on one axis, called `data`."""
    return Mesh(np.array(chips(8)), ("data",), axis_types=(AxisType.Auto,))


def placed(tree, spec=None):
    """Shapes with a place on `mesh()`: by default a copy on each chip."""
    sharding = NamedSharding(mesh(), spec or jax.P())
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)


def checked(compiled):
    """Sees to it that a program was compiled for the TPU. (Where an argument sits on a CPU, JAX silently compiles for
    that: a program that could run here has a `LoadedExecutable`.)"""
    kind = type(compiled.runtime_executable()).__name__
    assert kind == "Executable", f"this was no TPU compile but one for the CPU: {kind}"
    return compiled
