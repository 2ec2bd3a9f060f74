"""Which floating dtypes a reader's program computes in, and what it rounds on the way."""

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


def squares_in_half(jaxpr):
    """The primitives of a program that square a value in half precision."""
    found = []
    for _, equation in jaxprs.walk(jaxpr):
        name, result = equation.primitive.name, equation.outvars[0].aval if equation.outvars else None
        twice = len(equation.invars) == 2 and equation.invars[0] is equation.invars[1]
        if name in ("square", "integer_pow", "pow") or (name in ("mul", "dot_general") and twice):
            if getattr(result, "dtype", None) in (jnp.bfloat16, jnp.float16):
                found.append(name)
    return found


def rounded_on_the_way(jaxpr):
    """The dtypes of half precision to which a program rounds what it then widens again."""
    rounded, found = set(), []
    for _, equation in jaxprs.walk(jaxpr):
        if equation.primitive.name != "convert_element_type":
            continue
        (given,), (result,) = equation.invars, equation.outvars
        if id(given) in rounded and result.aval.dtype.itemsize > 2:
            found.append(given.aval.dtype.name)
        if result.aval.dtype in (jnp.bfloat16, jnp.float16) and given.aval.dtype.itemsize > 2:
            rounded.add(id(result))
    return found
