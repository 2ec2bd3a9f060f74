"""What these exercises share: meshes of the simulated devices, and each device's own result."""

import traceback

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Failed, checks
from mlax_tutorial.checking.describe import kind
from mlax_tutorial.checking.guarding import Raised

DEVICES = 8


def mesh(name="devices", size=DEVICES):
    return jax.make_mesh((size,), (name,), axis_types=(AxisType.Auto,), devices=jax.devices()[:size])


def numbers(seed, *shape):
    """The same random numbers everywhere."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def each(function, specs, *, name="devices", size=DEVICES):
    """A jitted function that runs the reader's on each device, and stacks what the devices return."""

    def local(*parts):
        try:
            result = function(*parts)
        except Raised as raised:
            if _unknown_axis(raised.error):
                raised.say_first(
                    f"The mesh has no axis of the name that you use. It has one, which is called {name!r} here, and elsewhere anything "
                    "else: hand `axis_name` on."
                )
            raise
        return as_array(result)[None]

    return jax.jit(jax.shard_map(local, mesh=mesh(name, size), in_specs=specs, out_specs=P(name)))


def _unknown_axis(error):
    """Whether JAX refused the name of an axis. For some collectives it only asserts, or looks it up, where it varies a value over the axis."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return "unbound axis name" in str(error) or frame.f_code.co_name in ("pvary", "get_vma")


def as_array(result):
    if not isinstance(result, jax.Array):
        raise Failed(f"Your function returned {kind(result)}, but an array is asked for.")
    return result


def close(got, wanted):
    return checks.agrees(got, np.asarray(wanted, np.float64), 1e-4, 1e-5)


def ratio(got, wanted):
    """The number by which all of one array are multiples of the other's, if there is one."""
    if got.shape != wanted.shape:
        return None
    got, wanted = np.asarray(got, np.float64).ravel(), np.asarray(wanted, np.float64).ravel()
    factor = got @ wanted / (wanted @ wanted)
    return float(factor) if np.allclose(got, factor * wanted, rtol=1e-4, atol=1e-5) else None
