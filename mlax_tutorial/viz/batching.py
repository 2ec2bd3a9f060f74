"""``viz.batch``: what ``jax.vmap`` makes of a function, equation by equation and axis by axis.

`record` traces the function for one example, then runs its equations under ``jax.vmap`` and notes of each value
where the axis of the examples stands. What an equation becomes is found by mapping it alone, with the same axes.
`Batching` shows the result; the markup is made in `_batching_page`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.viz import _batching_page
from mlax_tutorial.viz._notation import letters

MOST = 200  # equations that are followed

_INLINED = {"jit", "pjit", "closed_call", "core_call"}
_SAID = ("axes", "axis", "dimension", "dimensions", "permutation")


@dataclasses.dataclass(frozen=True)
class Value:
    """A variable: its name, its type for one example, its shape for the batch, and where the examples are counted.

    Attributes:
      axis: the number of the axis that counts the examples; None if all examples share the value.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    batched: tuple[int, ...]
    axis: int | None


@dataclasses.dataclass(frozen=True)
class Step:
    """An equation for one example, and the equations that it becomes.

    Attributes:
      before: the equation as text.
      results: the variables that it defines.
      after: primitives with their parameters, as text, in order.
      shared: whether no input is mapped, so that it is done once for all examples.
    """

    before: str
    results: tuple[Value, ...]
    after: tuple[str, ...]
    shared: bool


@dataclasses.dataclass(frozen=True)
class Recording:
    """All that the figure shows."""

    name: str
    size: int
    inputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Value, ...]
    left_out: int = 0


class Batching:
    """A recording; a notebook shows it as a figure to step through, a terminal as a listing."""

    def __init__(self, recording: Recording):
        self.recording = recording

    def _repr_html_(self):
        return _batching_page.page(self.recording)

    def __repr__(self):
        return _batching_page.listing(self.recording)


def batch(function: Callable, *args: Any, in_axes: Any = 0, axis_name: Any = None) -> Batching:
    """Show what ``jax.vmap(function, in_axes)`` does to each equation of a function.

    Nothing is computed: arguments may be ``jax.ShapeDtypeStruct``, too.

    Args:
      function: a function for one example.
      *args: the arguments of the mapped call: pytrees of arrays, with the axis of the examples.
      in_axes, axis_name: as for ``jax.vmap``.

    Returns:
      A `Batching`: as the last expression of a cell it is a figure to step through by buttons or arrow keys.

    Raises:
      ValueError: as ``jax.vmap`` does, where the axes do not fit the arguments.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> viz.batch(lambda x: jnp.sum(x * x), jnp.ones((8, 3)))
      vmap of <lambda>, 8 examples
        a        f32[3]  ->  f32[8*,3]
        b = mul a a
                 f32[3]  ->  f32[8*,3]  mul
        c = reduce_sum b, axes (0,)
                 f32[]   ->  f32[8*]    reduce_sum, axes (1,)
      returns c; * marks the axis of the examples
    """
    return Batching(record(function, *args, in_axes=in_axes, axis_name=axis_name))


def record(function: Callable, *args: Any, in_axes: Any = 0, axis_name: Any = None) -> Recording:
    """What happens to each equation of the function under ``jax.vmap``."""
    found = []

    def probe(*args):
        found.append(_run(jax.make_jaxpr(function)(*args), jax.tree.leaves(args)))
        return ()

    mapped = jax.vmap(probe, in_axes=in_axes, out_axes=None, axis_name=axis_name)
    jax.make_jaxpr(mapped)(*args)
    inputs, rows, outputs, left_out = found[0]
    size = next(v.batched[v.axis] for v in inputs if v.axis is not None)
    steps = tuple(_step(*row, size, axis_name) for row in rows)
    return Recording(getattr(function, "__name__", "function"), size, inputs, steps, outputs, left_out)


def _run(closed, leaves):
    """Runs a jaxpr on the stand-ins of ``vmap``; returns what is known of each value, and of each equation."""
    names, values, known, rows = {}, {}, {}, []
    total = 0

    def name(variable):
        return names.setdefault(variable, letters(len(names)))

    def define(variable, value):
        values[variable] = value
        if type(variable).__name__ != "DropVar":
            name(variable)
        known[variable] = _value(names.get(variable, "_"), value)

    def read(atom):
        return atom.val if hasattr(atom, "val") else values[atom]

    def said(atom):
        return _number(atom.val) if hasattr(atom, "val") else name(atom)

    def run(jaxpr):
        nonlocal total
        for equation in jaxpr.eqns:
            inner = next((jaxpr for _, jaxpr in jaxprs.subjaxprs(equation)), None)
            if equation.primitive.name in _INLINED and inner is not None:
                opened, consts = jaxprs._open(inner)
                for variable, value in zip(opened.constvars, consts, strict=True):
                    define(variable, value)
                for variable, atom in zip(opened.invars, equation.invars, strict=True):
                    values[variable], known[variable] = read(atom), known.get(_hashable(atom))
                    names[variable] = said(atom)
                run(opened)
                for variable, atom in zip(equation.outvars, opened.outvars, strict=True):
                    values[variable], names[variable] = read(atom), said(atom)
                    known[variable] = known.get(_hashable(atom)) or _value(said(atom), read(atom))
                continue
            total += 1
            inputs = [read(atom) for atom in equation.invars]
            results = jaxprs._bind(equation.primitive, *inputs, **equation.params)
            results = results if equation.primitive.multiple_results else [results]
            for variable, value in zip(equation.outvars, results, strict=True):
                define(variable, value)
            if total <= MOST:
                outs = tuple(known[variable] for variable in equation.outvars)
                text = " ".join([equation.primitive.name, *map(said, equation.invars)]) + _said(equation)
                left = ", ".join(value.name for value in outs)
                before = f"{left} = {text}" if outs else text
                operands = [(_axis(x), _spec(x)) for x in inputs]
                rows.append((equation, before, outs, operands))

    bare, consts = jaxprs._open(closed)
    for variable, value in zip(bare.invars, leaves, strict=True):
        define(variable, value)
    inputs = tuple(known[variable] for variable in bare.invars)
    for variable, value in zip(bare.constvars, consts, strict=True):
        define(variable, value)
    run(bare)
    outputs = tuple(
        _value(_number(atom.val), atom.val) if hasattr(atom, "val") else known[atom] for atom in bare.outvars
    )
    return inputs, rows, outputs, max(0, total - MOST)


def _step(equation, before, results, operands, size, axis_name):
    shared = all(axis is None for axis, _ in operands) and all(v.axis is None for v in results)
    if shared:
        return Step(before, results, (equation.primitive.name + _said(equation),), True)
    given = [(axis, x) for axis, x in operands if isinstance(x, jax.ShapeDtypeStruct)]

    def alone(*arrays):
        arrays = iter(arrays)
        inputs = [next(arrays) if isinstance(x, jax.ShapeDtypeStruct) else x for _, x in operands]
        found = jaxprs._bind(equation.primitive, *inputs, **equation.params)
        return tuple(found) if equation.primitive.multiple_results else (found,)

    mapped_alone = jax.vmap(
        alone,
        in_axes=tuple(axis for axis, _ in given),
        out_axes=tuple(value.axis for value in results),
        axis_name=axis_name,
        axis_size=size,
    )
    program = jax.make_jaxpr(mapped_alone)(*[x for _, x in given])
    after = tuple(e.primitive.name + _said(e) for e in jaxprs._open(program)[0].eqns)
    return Step(before, results, after, False)


def _axis(x):
    """Where the examples are counted in the array behind a stand-in; None if it is no stand-in of ``vmap``."""
    axis = getattr(x, "batch_dim", None) if isinstance(x, jax.core.Tracer) else None
    return axis if isinstance(axis, int) else None


def _spec(x):
    """The type of the whole array behind a value; numbers that stand in the jaxpr's text are themselves."""
    if not isinstance(x, jax.Array):
        return x
    aval = jax.typeof(x if _axis(x) is None else x.val)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _value(name, x):
    aval, axis = jax.typeof(x), _axis(x)
    shape = tuple(getattr(aval, "shape", ()))
    batched = tuple(jax.typeof(x.val).shape) if axis is not None else shape
    dtype = aval.str_short(short_dtypes=True).partition("[")[0] if hasattr(aval, "str_short") else str(aval)
    if hasattr(aval, "dtype") and jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        dtype = "key"
    return Value(name, dtype, shape, batched, axis)


def _hashable(atom):
    return None if hasattr(atom, "val") else atom


def _number(value):
    if np.ndim(value) == 0 and not isinstance(value, jax.core.Tracer):
        try:
            return f"{np.asarray(value).item():.4g}"
        except (TypeError, ValueError):
            pass
    return str(np.shape(value))


def _said(equation):
    """The parameters that speak of axes."""
    if equation.primitive.name == "dot_general":
        (left, right), (left_batch, right_batch) = _plain(equation.params["dimension_numbers"])
        batch = f", batch axes {left_batch} {right_batch}" if left_batch else ""
        return f", sums over {left} {right}{batch}"
    said = []
    for name in _SAID:
        value = equation.params.get(name)
        if value is not None and (plain := _plain(value)) is not None:
            said.append(f", {name} {plain}")
    return "".join(said)


def _plain(value):
    """Tuples of whole numbers, however they are made; None for anything else."""
    if isinstance(value, (tuple, list)):
        parts = [_plain(part) for part in value]
        return None if None in parts else tuple(parts)
    return int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None
