"""The dtype audit: which values inside a program are not of the dtype that it was meant for?

The result of a function says little about what lies between: bfloat16 may go in and come out, and half of what is
computed in between be float32. `strays` reads the program, derivatives and inner programs included, and lists
every such value. Nothing is computed.
"""

import jax
import jax.numpy as jnp

from mlax_tutorial.inspection import jaxprs

DTYPES = ("float16", "bfloat16", "float32", "float64")


def strays(jaxpr, declared, accumulates=frozenset(), accumulator=None) -> list[str]:
    """Describes each floating value that a program computes in another dtype than ``declared``.

    Equations are judged by their results, at any depth. The result of an equation that holds a program (``jit``,
    ``scan``) is judged where it is computed: inside. Allowed are scalars, and in the primitives named in
    ``accumulates`` the dtype ``accumulator``. A complex number counts as the dtype of its two parts.

    The derivative of a function is audited by handing in the program of the derivative:
    ``strays(jax.make_jaxpr(jax.grad(loss))(...), "bfloat16")``.

    Args:
      jaxpr: what ``jax.make_jaxpr`` returns.
      declared: the dtype that all values should have.
      accumulates: names of primitives that may hold another one, as sums do: ``{"reduce_sum", "convert_element_type"}``.
      accumulator: that other one.

    Returns:
      A description of each stray value, in the order of the program: the way to it, its type and, where it is
      known, the line of Python that asked for it.

    >>> import jax, jax.numpy as jnp
    >>> def layer(x):
    ...     return (x * jnp.float32(0.5)).astype(x.dtype)
    >>> for stray in strays(jax.make_jaxpr(layer)(jnp.ones(3, jnp.bfloat16)), "bfloat16"):
    ...     print(stray)
    convert_element_type gives float32[3]: return (x * jnp.float32(0.5)).astype(x.dtype)
    mul gives float32[3]: return (x * jnp.float32(0.5)).astype(x.dtype)
    """
    declared = jnp.dtype(declared)
    accumulator = None if accumulator is None else jnp.dtype(accumulator)
    found = []
    for path, equation, line in jaxprs.lines(jaxpr):
        name, inside = equation.primitive.name, _types_inside(equation)
        for variable in equation.outvars:
            dtype, shape = _type(variable)
            if dtype is None or dtype == declared or shape == ():
                continue
            if any(dtype == other and size != () for other, size in inside):
                continue  # it is computed inside, and judged there
            if name in accumulates and dtype == accumulator:
                continue
            text = f"{'/'.join((*path, name))} gives {variable.aval.dtype}{list(shape)}"
            found.append(f"{text}: {line}" if line else text)
    return found


def floating_leaves(tree) -> list:
    """The leaves of a tree that are floating: those that the guarantee is about.

    >>> import jax.numpy as jnp
    >>> [leaf.shape for leaf in floating_leaves({"count": jnp.int32(1), "mean": jnp.zeros(3)})]
    [(3,)]
    """
    return [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]


def _types_inside(equation):
    """Of what the programs return that an equation holds."""
    return [_type(v) for _, inner in jaxprs.subjaxprs(equation) for v in jaxprs._open(inner)[0].outvars]


def _type(variable):
    """The floating dtype of a variable (of each part, if it is complex), or None; and its shape."""
    dtype, shape = getattr(variable.aval, "dtype", None), getattr(variable.aval, "shape", ())
    if dtype is None or not jnp.issubdtype(dtype, jnp.inexact):
        return None, shape
    return jnp.finfo(dtype).dtype, shape
