"""Whether a function treats each element by itself, read off its jaxpr."""

from typing import Any

import jax
import jax.extend
import numpy as np

_ELEMENTWISE = frozenset(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp convert_element_type copy copy_p cos cosh "
    "digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt integer_pow is_finite le lgamma log log1p logistic lt max min "
    "mul ne neg nextafter not or pow real rem round rsqrt select_n sign sin sinh sqrt square stop_gradient sub tan tanh xor".split()
)


def is_elementwise(function, x: Any) -> bool:
    """Whether each element of ``function(x)`` depends on the same element of ``x`` alone, and in the same way.

    Only elementwise primitives may occur, between arrays of the shape of ``x`` and scalars, and the same ones with the
    same scalars for a longer ``x``: a scalar might be its length.

    >>> import jax.numpy as jnp
    >>> x = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    >>> is_elementwise(jax.nn.gelu, x), is_elementwise(lambda x: jnp.cumsum(x, 0), x), is_elementwise(jax.nn.softmax, x)
    (True, False, False)
    """
    longer = jax.tree.map(lambda x: jax.ShapeDtypeStruct(tuple(size + 1 for size in x.shape), x.dtype), x)
    found = _program(function, x)
    return None not in found and found == _program(function, longer)


def _program(function, x):
    """What `_operations` gives, with ``None`` also where the shapes of inputs and outputs are not one and the same."""
    shapes = {leaf.shape for leaf in jax.tree.leaves(x)}
    program = jax.make_jaxpr(function)(x)
    outputs = {variable.aval.shape for variable in program.jaxpr.outvars}
    return [*_operations(program, shapes), *([] if len(shapes) == 1 and outputs == shapes else [None])]


def _operations(closed, shapes):
    """The primitives and scalars in order; ``None`` for one that is not elementwise."""
    # No inner function that calls itself: such a cycle would hold what it has seen until the garbage collector comes.
    yield None if any(map(np.ndim, closed.consts)) else [repr(constant) for constant in closed.consts]
    for equation in closed.jaxpr.eqns:
        name, params = equation.primitive.name, list(equation.params.values())
        inner = [value for value in params if isinstance(value, jax.extend.core.ClosedJaxpr)]
        spreads = name == "broadcast_in_dim" and not equation.invars[0].aval.shape
        around = {variable.aval.shape for variable in (*equation.invars, *equation.outvars)}
        if not around <= {*shapes, ()} or not (inner or spreads or name in _ELEMENTWISE):
            yield None
        scalars = [str(v) for v in equation.invars if isinstance(v, jax.extend.core.Literal)]
        yield [name, *scalars, *(value for value in params if isinstance(value, (int, float)))]
        for program in inner:
            yield from _operations(program, shapes)
