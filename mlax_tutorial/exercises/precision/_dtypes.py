"""Which floating dtypes a reader's program computes in."""

import jax
import jax.numpy as jnp

from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.inspection import jaxprs


def program(function, *arguments):
    """The jaxpr of a reader's function."""
    with under("`jax.make_jaxpr`"):
        return jax.make_jaxpr(fresh(function))(*arguments)


def others(jaxpr, declared):
    """The values of a program that are floating and not of the dtype ``declared``: pairs of primitive and dtype."""
    found = []
    for _, equation in jaxprs.walk(jaxpr):
        for variable in equation.outvars:
            dtype = getattr(variable.aval, "dtype", None)
            if dtype is not None and jnp.issubdtype(dtype, jnp.floating) and dtype != declared:
                found.append((equation.primitive.name, jnp.dtype(dtype).name))
    return found
