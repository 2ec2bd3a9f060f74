"""What a program costs: floating-point operations, and bytes that are read and written.

`cost` reads a function's jaxpr; nothing is compiled and nothing computed. The conventions are those of XLA's own
`cost_analysis`, so that the two can be compared, with three differences, all on purpose:

- the body of a loop counts as often as it runs (XLA counts it once);
- integers are not floating-point numbers (XLA counts their operations as well);
- bytes are those of each equation by itself, as if nothing were fused. XLA's are those after fusion. What has to be
  read and written in any case, inputs and outputs of the whole program, is `Cost.least_bytes`.
"""

import collections
import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.inspection import jaxprs

# One operation for each element of the result, if there is a floating number among inputs and results.
ELEMENTWISE = frozenset(
    "abs add add_any ceil clamp convert_element_type div eq floor ge gt is_finite le lt max min mul ne neg "
    "nextafter reduce_precision rem round select_n sign square sub".split()
)
# The same, but each is a function that takes a machine several operations: counted by themselves.
TRANSCENDENTAL = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh digamma erf erf_inv erfc exp exp2 expm1 lgamma log "
    "log1p log2 logistic pow rsqrt sin sinh sqrt tan tanh".split()
)
# n elements become one: n - 1 operations.
REDUCTIONS = frozenset("argmax argmin reduce_max reduce_min reduce_prod reduce_sum".split())
WINDOWS = frozenset("reduce_window_max reduce_window_min reduce_window_sum".split())
CUMULATIVE = frozenset("cumlogsumexp cummax cummin cumprod cumsum".split())
# No arithmetic on floating numbers.
MOVES = frozenset(
    "and axis_index bitcast_convert_type broadcast_in_dim broadcast_to clz complex concatenate conj copy copy_p "
    "device_put dynamic_slice dynamic_update_slice empty empty2 gather imag iota name not optimization_barrier or pad "
    "population_count pvary random_bits random_clone random_fold_in random_seed random_split random_unwrap "
    "random_wrap real reduce_and reduce_or reduce_xor reshape reshard rev scatter sharding_constraint shift_left "
    "shift_right_arithmetic shift_right_logical slice split squeeze stack stop_gradient threefry2x32 tile "
    "transpose unstack xor zeros_like".split()
)
# The same bytes under another shape or name: nothing is moved.
VIEWS = frozenset(
    "bitcast_convert_type name optimization_barrier pvary random_clone random_unwrap random_wrap reshape "
    "sharding_constraint squeeze stop_gradient".split()
)
# Of their first input they read only what they return, or write only what they are given.
PIECES = frozenset("dynamic_slice gather slice split unstack".split())


@dataclasses.dataclass(frozen=True)
class Item:
    """An equation of a program, how often it runs, and what one run costs.

    Attributes:
      path: the way to it, as in `jaxprs.walk`.
      line: the line of Python that asked for it, as in `jaxprs.lines`.
      times: how often it runs, because of the loops around it.
      counted: whether its operations are known.
      scopes: what ``jax.named_scope`` calls the parts of the program that it stands in, from the outside in, each with
        how often that part runs.
    """

    path: tuple[str, ...]
    equation: object
    line: str
    times: int
    flops: int
    transcendentals: int
    bytes: int
    counted: bool = True
    scopes: tuple[tuple[str, int], ...] = ()


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one call of a program costs.

    Attributes:
      flops: floating-point operations, transcendental functions not included.
      transcendentals: evaluations of ``exp``, ``tanh``, ``sqrt`` and their like.
      bytes: what is read and written if each equation runs by itself.
      least_bytes: what is read and written in any case: inputs, constants and outputs of the program.
      uncounted: primitives whose operations are not known, and ``while``, of which one round is counted.
    """

    flops: int
    transcendentals: int
    bytes: int
    least_bytes: int
    uncounted: tuple[str, ...] = ()

    def __str__(self):
        text = f"{self.flops:,} FLOPs, {self.transcendentals:,} transcendentals, {self.bytes:,} bytes"
        return text + (f" (not counted: {', '.join(self.uncounted)})" if self.uncounted else "")


def cost(fun, *args, **kwargs) -> Cost:
    """Counts what a call ``fun(*args, **kwargs)`` costs, by its jaxpr.

    Arguments may be arrays or ``jax.ShapeDtypeStruct``: nothing is computed. Of a ``cond`` the dearest branch
    counts, of a ``while_loop`` one round, of a ``shard_map`` the work of all devices together.

    >>> import jax, jax.numpy as jnp
    >>> x = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    >>> print(cost(lambda x: jnp.tanh(x @ x), x))
    524,288 FLOPs, 4,096 transcendentals, 65,536 bytes
    >>> cost(lambda x: jax.lax.fori_loop(0, 10, lambda i, y: jnp.tanh(y @ x), x), x).flops
    5242880
    """
    return cost_of(jax.make_jaxpr(fun)(*args, **kwargs))


def cost_of(jaxpr) -> Cost:
    """The same of a jaxpr."""
    bare, _ = jaxprs._open(jaxpr)
    totals, uncounted = collections.Counter(), {}
    for item in itemize(jaxpr):
        for name in ("flops", "transcendentals", "bytes"):
            totals[name] += item.times * getattr(item, name)
        if not item.counted:
            uncounted[item.equation.primitive.name] = True
    ends = set(filter(_is_variable, (*bare.invars, *bare.constvars, *bare.outvars)))
    return Cost(
        totals["flops"],
        totals["transcendentals"],
        totals["bytes"],
        sum(map(_bytes, ends)),
        tuple(uncounted),
    )


def itemize(jaxpr, path=(), line="", times=1, scopes=()):
    """Yields an `Item` for each equation that computes something.

    Equations that only hold others are entered. What no result needs is left out, as JAX leaves it out when it
    lowers a program.

    >>> import jax, jax.numpy as jnp
    >>> jaxpr = jax.make_jaxpr(jax.jit(lambda x, y: jnp.exp(x @ y)))(jnp.ones((2, 3)), jnp.ones((3, 4)))
    >>> for item in itemize(jaxpr):
    ...     print(item.equation.primitive.name, item.flops, item.transcendentals, item.bytes)
    dot_general 48 0 104
    exp 0 8 64
    """
    for equation in _alive(jaxpr):
        name, params = equation.primitive.name, equation.params
        here = jaxprs._line(equation) or line
        within = (*scopes, *((name, times) for name in jaxprs._scopes(equation)))
        inner = [] if _is_leaf(name) else list(jaxprs.subjaxprs(equation))
        if not inner or name == "pallas_call":
            operations = _operations(equation)
            flops, transcendentals = operations or (0, 0)
            moved = _moved(equation)
            known = operations is not None
            yield Item(path, equation, here, times, flops, transcendentals, moved, known, within)
            continue
        rounds = times
        if name == "scan":
            rounds = times * params["length"]
        elif name == "shard_map":
            axes = params.get("newly_manual_axes", params.get("manual_axes"))  # the newer name, the older
            rounds = times * math.prod(params["mesh"].shape[axis] for axis in axes)
        elif name == "cond":
            inner = [max(inner, key=_dearest)]
        elif name == "custom_linear_solve":
            # The product, its transpose, the solver, the transposed solver; some may be missing.
            inner = [part for part in inner if part[0] == "jaxprs[2]"]
        elif name == "while":
            yield Item(path, equation, here, times, 0, 0, 0, False, within)
        for key, jaxpr in inner:
            yield from itemize(jaxpr, (*path, f"{jaxprs._label(equation)}.{key}"), here, rounds, within)


def _alive(jaxpr):
    """The equations that a result needs, or that do something besides."""
    bare, _ = jaxprs._open(jaxpr)
    needed, alive = set(filter(_is_variable, bare.outvars)), []
    for equation in reversed(bare.eqns):
        if equation.effects or not needed.isdisjoint(equation.outvars):
            needed.update(filter(_is_variable, equation.invars))
            alive.append(equation)
    return alive[::-1]


def _is_variable(atom):
    return not hasattr(atom, "val")


def _dearest(named):
    total = cost_of(named[1])
    return total.flops + total.transcendentals, total.bytes


def _is_leaf(name):
    """Some primitives hold a program only to say how two numbers are combined."""
    return name.startswith(("scatter", "reduce", "select_and")) or name in ELEMENTWISE or name in MOVES


# Operations


def _operations(equation):
    """FLOPs and transcendentals of one equation, or None where they are not known."""
    name, params = equation.primitive.name, equation.params
    if not equation.outvars:
        return 0, 0
    ins, out = [v.aval for v in equation.invars], equation.outvars[0].aval
    if not any(_is_floating(v.aval) for v in (*equation.invars, *equation.outvars)):
        return 0, 0
    if name == "dot_general":
        ((contracted, _), _) = params["dimension_numbers"]
        return 2 * out.size * math.prod(ins[0].shape[axis] for axis in contracted), 0
    if name == "conv_general_dilated":
        return 2 * _multiplications(equation), 0
    if name == "one_minus_square":
        return 2 * out.size, 0
    if name == "integer_pow":
        return out.size * _products_of_power(params["y"]), 0
    if name == "convert_element_type":
        return (out.size if ins[0].dtype != out.dtype else 0), 0
    if name in ELEMENTWISE:
        return out.size, 0
    if name in TRANSCENDENTAL:
        return 0, out.size
    if name in REDUCTIONS:
        return ins[0].size - out.size, 0
    if name in WINDOWS:
        return out.size * (math.prod(params["window_dimensions"]) - 1), 0
    if name in CUMULATIVE:
        return out.size, 0
    if name.startswith("scatter-"):  # -add, -sub, -mul, -max, -min
        return ins[2].size, 0
    if name == "select_and_scatter_add":  # the gradient of a maximum over windows
        return ins[0].size * math.prod(params["window_dimensions"]), 0
    if name == "reduce":  # of any kind: a small program says how two numbers become one
        combine = cost_of(params["jaxpr"])
        return tuple((ins[0].size - out.size) * n for n in (combine.flops, combine.transcendentals))
    return (0, 0) if name in MOVES else None


def _products_of_power(power):
    """How many products (and quotients) make an integer power by repeated squaring."""
    n = abs(power)
    products = max(n.bit_length() - 1, 0) + max(n.bit_count() - 1, 0)
    return products + (power < 0)


def _multiplications(equation):
    """Of a convolution: products with padding, and with the gaps of a dilated input, do not count."""
    params = equation.params
    numbers = params["dimension_numbers"]
    left, right = (v.aval.shape for v in equation.invars)
    out = equation.outvars[0].aval.shape
    total = out[numbers.out_spec[0]] * out[numbers.out_spec[1]] * right[numbers.rhs_spec[1]]
    for i, axis in enumerate(numbers.lhs_spec[2:]):
        size, taps = left[axis], right[numbers.rhs_spec[2 + i]]
        count, gaps = out[numbers.out_spec[2 + i]], params["lhs_dilation"][i]
        start, _ = params["padding"][i]
        places = np.arange(count)[:, None] * params["window_strides"][i] - start
        places = places + np.arange(taps) * params["rhs_dilation"][i]
        inside = (places >= 0) & (places <= (size - 1) * gaps) & (places % gaps == 0)
        total *= int(inside.sum())
    return total  # groups have been counted: kernels are as deep as one group of channels, the result has one of the batch


# Bytes


def _moved(equation):
    name = equation.primitive.name
    read = set(filter(_is_variable, equation.invars))
    written = list(equation.outvars)
    if name in VIEWS:
        return 0
    if name in ("broadcast_in_dim", "convert_element_type") and read:
        (source,), (target,) = list(read)[:1], written
        if _bytes(source) == _bytes(target) and source.aval.dtype == target.aval.dtype:
            return 0
    if name in PIECES:
        indices = sum(map(_bytes, filter(_is_variable, equation.invars[1:])))
        return indices + 2 * sum(map(_bytes, written))
    if name == "dynamic_update_slice" or name.startswith("scatter"):
        place = 1 if name == "dynamic_update_slice" else 2
        rest = [v for i, v in enumerate(equation.invars) if i not in (0, place) and _is_variable(v)]
        return sum(map(_bytes, rest)) + 2 * _bytes(equation.invars[place])
    return sum(map(_bytes, read)) + sum(map(_bytes, written))


def _bytes(variable):
    aval = variable.aval
    if not hasattr(aval, "dtype"):
        return 0
    return math.prod(aval.shape) * aval.dtype.itemsize


def _is_floating(aval):
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, jnp.inexact)
