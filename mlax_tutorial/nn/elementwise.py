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
    found = _operations(function, x)
    longer = jax.tree.map(lambda x: jax.ShapeDtypeStruct(tuple(size + 1 for size in x.shape), x.dtype), x)
    return found is not None and found == _operations(function, longer)


def _operations(function, x):
    """The primitives and scalars in order; ``None`` if one of them is not elementwise."""
    shapes = {leaf.shape for leaf in jax.tree.leaves(x)}
    program, found = jax.make_jaxpr(function)(x), []

    def visit(closed):
        if any(np.ndim(constant) for constant in closed.consts):
            return False
        found.append([repr(constant) for constant in closed.consts])
        for equation in closed.jaxpr.eqns:
            name, params = equation.primitive.name, list(equation.params.values())
            inner = [value for value in params if isinstance(value, jax.extend.core.ClosedJaxpr)]
            spreads = name == "broadcast_in_dim" and not equation.invars[0].aval.shape
            around = {variable.aval.shape for variable in (*equation.invars, *equation.outvars)}
            if not around <= {*shapes, ()} or not (inner or spreads or name in _ELEMENTWISE):
                return False
            scalars = [str(v) for v in equation.invars if isinstance(v, jax.extend.core.Literal)]
            found.append([name, *scalars, *(value for value in params if isinstance(value, (int, float)))])
            if not all(map(visit, inner)):
                return False
        return True

    outputs = {variable.aval.shape for variable in program.jaxpr.outvars}
    return found if len(shapes) == 1 and visit(program) and outputs == shapes else None
