"""The dtype guarantee: walk a jaxpr and list every floating value that has not the declared dtype."""

import jax
import jax.numpy as jnp

from mlax_tutorial.jaxprs import subjaxprs, walk

DTYPES = ["float16", "bfloat16", "float32", "float64"]


def strays(jaxpr, declared, accumulates=frozenset(), accumulator=None) -> list[str]:
    """Describe each floating result in ``jaxpr`` whose dtype is not ``declared``.

    Allowed are scalars (coefficients, which take part in no array's storage) and, in the primitives named in
    ``accumulates``, the dtype ``accumulator``. An equation that holds a jaxpr is judged by its contents.
    """
    found = []
    for path, equation in walk(jaxpr):
        if any(True for _ in subjaxprs(equation)):
            continue
        name = equation.primitive.name
        for variable in equation.outvars:
            dtype, shape = variable.aval.dtype, variable.aval.shape
            if not jnp.issubdtype(dtype, jnp.floating) or dtype == jnp.dtype(declared) or shape == ():
                continue
            if name in accumulates and dtype == jnp.dtype(accumulator):
                continue
            found.append(f"{'/'.join((*path, name))} gives {dtype}{list(shape)}")
    return found


def accumulator(dtype):
    return jnp.float32 if dtype in ("float16", "bfloat16") else jnp.dtype(dtype)


def floating_leaves(tree):
    return [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
