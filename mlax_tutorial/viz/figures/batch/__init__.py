"""``viz.batch``: what ``jax.vmap`` makes of a function, equation by equation and axis by axis.

`record` traces the function for one example, then runs its equations under ``jax.vmap`` and notes of each value
where the axis of the examples stands. What an equation becomes is found by mapping it alone, with the same axes.
`Batching` shows the result; the markup is made in `page`.
"""

import dataclasses
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.viz.figures.batch import page
from mlax_tutorial.viz.figures.notation import letters

MOST = 200  # equations that are followed
COMBINATIONS = 64  # of axes, that a page holds to choose from
LETTERS = 60_000  # of a page with all that can be chosen

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


@dataclasses.dataclass(frozen=True)
class Choice:
    """One combination of axes, and what comes of it.

    Attributes:
      axes: for each argument its axis, or None if it is shared.
      takes: what example i takes of each argument, as Python would write it.
      recording: what ``vmap`` makes of the function, or None if it refuses.
      refused: why it refuses, or "".
    """

    axes: tuple[int | None, ...]
    takes: tuple[str, ...]
    recording: Recording | None
    refused: str = ""


@dataclasses.dataclass(frozen=True)
class Choices:
    """All combinations of axes.

    Attributes:
      names: of the arguments.
      options: for each argument, the axes that it has, and None.
      axes: the combination with which the figure begins.
      all: a `Choice` for each combination.
    """

    names: tuple[str, ...]
    options: tuple[tuple[int | None, ...], ...]
    axes: tuple[int | None, ...]
    all: tuple[Choice, ...]


class Batching:
    """A recording; a notebook shows it as a figure to step through, a terminal as a listing.

    Attributes:
      recording: what happens to each equation.
      choices: the other combinations of axes, if the reader can choose; else None.
    """

    def __init__(self, recording: Recording, choices: Choices | None = None):
        self.recording, self.choices = recording, choices

    def _repr_html_(self):
        return page.write(self.recording, self.choices)

    def __repr__(self):
        return page.listing(self.recording)


def batch(
    function: Callable, *args: Any, in_axes: Any = 0, axis_name: Any = None, choose: bool = False
) -> Batching:
    """Show what ``jax.vmap(function, in_axes)`` does to each equation of a function.

    Nothing is computed: arguments may be ``jax.ShapeDtypeStruct``, too.

    Args:
      function: a function for one example.
      *args: the arguments of the mapped call: pytrees of arrays, with the axis of the examples.
      in_axes, axis_name: as for ``jax.vmap``.
      choose: whether the figure has the reader choose an axis for each argument. All combinations are tried here, and stored in the
        page, which needs no kernel; of one that ``vmap`` or the function refuses it says why.

    Returns:
      A `Batching`: as the last expression of a cell it is a figure to step through by buttons or arrow keys.

    Raises:
      ValueError: as ``jax.vmap`` does, where the axes do not fit the arguments; to ``choose``, if ``in_axes`` is not one number
        or None for each argument, or there is too much to choose from.

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
      >>> figure = viz.batch(jnp.dot, jnp.ones((8, 3)), jnp.ones((3, 2)), in_axes=(0, None), choose=True)
      >>> [choice.axes for choice in figure.choices.all if not choice.refused]
      [(0, None), (None, 1)]
    """
    recording = record(function, *args, in_axes=in_axes, axis_name=axis_name)
    if not choose:
        return Batching(recording)
    choices = _choices(function, args, in_axes, axis_name)
    if (length := len(page.write(recording, choices))) > LETTERS:
        raise ValueError(
            f"viz.batch: with all combinations of axes the figure would be {length / 1000:.0f} kB, more than {LETTERS // 1000}; "
            "choose for a smaller function, or leave choose out"
        )
    return Batching(recording, choices)


def _choices(function, args, in_axes, axis_name) -> Choices:
    """Tries all combinations of axes."""
    given = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
    if not all(axis is None or isinstance(axis, int) for axis in given):
        raise ValueError(
            f"viz.batch: choose needs one axis or None for each argument, got in_axes={in_axes!r}"
        )
    shapes = [[np.shape(leaf) for leaf in jax.tree.leaves(argument)] for argument in args]
    ranks = [min(map(len, each), default=0) for each in shapes]
    options = tuple((*range(rank), None) for rank in ranks)
    combinations = list(itertools.product(*options))
    if len(combinations) > COMBINATIONS:
        raise ValueError(
            f"viz.batch: choose would try {len(combinations)} combinations of axes, more than {COMBINATIONS}; close over some arguments"
        )
    names = _names(function, len(args))
    axes = tuple(
        axis if axis is None or axis >= 0 else axis + rank for axis, rank in zip(given, ranks, strict=True)
    )
    found = []
    for combination in combinations:
        takes = tuple(
            name if axis is None else f"{name}[{':, ' * axis}i]"
            for name, axis in zip(names, combination, strict=True)
        )
        refused, recording = _lengths(names, shapes, combination), None
        if not refused:
            try:
                recording = record(function, *args, in_axes=combination, axis_name=axis_name)
            except Exception as error:
                lines = str(error).strip().splitlines() or [""]
                said = lines[0] if len(lines[0]) <= 200 else lines[0][:199] + "…"
                refused = f"{_one_example(names, shapes, combination)} {type(error).__name__}: {said}"
        found.append(Choice(combination, takes, recording, refused))
    return Choices(names, options, axes, tuple(found))


def _one_example(names, shapes, axes):
    """What the function is given for one example, in words."""
    given = []
    for name, each, axis in zip(names, shapes, axes, strict=True):
        left = [shape if axis is None else shape[:axis] + shape[axis + 1 :] for shape in each]
        given.append(f"{name} of {', '.join(map(str, left)) or 'no shape'}")
    return f"the function cannot take what it gets for one example: {', '.join(given)}."


def _names(function, count):
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return tuple(names[i] if i < len(names) else f"argument {i + 1}" for i in range(count))


def _lengths(names, shapes, axes):
    """Why ``vmap`` itself refuses these axes: none is mapped, or they are not equally long."""
    mapped = [
        (name, shape[axis])
        for name, each, axis in zip(names, shapes, axes, strict=True)
        if axis is not None
        for shape in each
    ]
    if not mapped:
        return "no argument is mapped, so there are no examples. vmap needs at least one axis."
    if len({length for _, length in mapped}) > 1:
        said = ", ".join(f"{length} in {name}" for name, length in dict.fromkeys(mapped))
        return f"the mapped axes must be equally long, one entry for each example. Their lengths: {said}."
    return ""


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
