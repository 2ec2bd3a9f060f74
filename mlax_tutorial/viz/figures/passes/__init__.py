"""``viz.passes``: the forward and the backward pass of a function, with the values that wait in between.

`record` asks ``jax.vjp`` for the two programs that reverse mode makes of a function: one that computes the result
and the values that are to be kept, and one that takes these, and the slope at the end, back to the arguments. Then it notes for each
equation which values are held while it runs. What stands inside ``jax.checkpoint`` and does not depend on a slope is
computed a second time. `Passes` shows the result; the markup is made in `page`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.viz.figures.notation import Names, letters, literal, type_of
from mlax_tutorial.viz.figures.passes import page

MOST = 200  # equations that are shown of each pass

_INLINED = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", *jaxprs.CHECKPOINT}


@dataclasses.dataclass(frozen=True)
class Value:
    """Something that is held: its name, type and size.

    Attributes:
      given: it is an argument or a constant, which is there in any case and costs nothing.
    """

    name: str
    type: str
    bytes: int
    given: bool = False


@dataclasses.dataclass(frozen=True)
class Step:
    """One equation.

    Attributes:
      text: the equation; for one that holds others, these follow in ``inner``.
      inner: pairs of text and whether it is a second computation.
      stored: names of the values that it makes and that the backward pass needs.
      used: names of the stored values that it takes.
      again: it computes a second time what the forward pass had computed.
      kept: bytes of stored values that are held while it runs.
      remade: bytes of values held that were computed again.
    """

    text: str
    inner: tuple[tuple[str, bool], ...] = ()
    stored: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    again: bool = False
    kept: int = 0
    remade: int = 0


@dataclasses.dataclass(frozen=True)
class Recording:
    """The two passes of a function.

    Attributes:
      name: of the function.
      inputs: the arguments, as ``a:f32[3]``.
      stored: the values that wait between the passes, those given included.
      forward, backward: the equations.
      outputs, slopes, gradients: names of what is returned, of the slopes that the backward pass starts from,
        and of the gradients that it ends with.
      left_out: equations that are not shown.
    """

    name: str
    inputs: tuple[str, ...]
    stored: tuple[Value, ...]
    forward: tuple[Step, ...]
    backward: tuple[Step, ...]
    outputs: tuple[str, ...]
    slopes: tuple[str, ...]
    gradients: tuple[str, ...]
    left_out: int = 0

    @property
    def kept(self) -> int:
        """The bytes that wait between the passes, arguments and constants not counted."""
        return sum(value.bytes for value in self.stored if not value.given)

    @property
    def peak(self) -> int:
        """The most bytes held at once, stored or computed again."""
        return max((step.kept + step.remade for step in self.forward + self.backward), default=0)

    @property
    def again(self) -> int:
        """How many equations compute something a second time."""
        return sum(
            step.again + (not step.again) * sum(again for _, again in step.inner) for step in self.backward
        )


class Passes:
    """A recording; a notebook shows it as a figure to step through, a terminal as a listing."""

    def __init__(self, recording: Recording):
        self.recording = recording

    def _repr_html_(self):
        return page.write(self.recording)

    def __repr__(self):
        return page.listing(self.recording)


def passes(function: Callable, *args: Any, argnums: Any = 0, parameters: bool = False) -> Passes:
    """Show what the gradient of a function stores on the way forward, uses on the way back, and computes again.

    Nothing is computed: arguments may be ``jax.ShapeDtypeStruct``, too. The bytes are those that JAX's two programs ask for, run equation
    by equation; XLA may fuse values away, and sometimes computes one again rather than store it.

    Args:
      function: what is differentiated, with or without ``jax.checkpoint`` in it. A result that is no scalar is
        allowed; the backward pass then starts from a slope for each entry.
      *args: pytrees of arrays.
      argnums: as for ``jax.grad``. Leaves that are not floating are left alone.
      parameters: whether equations show ``dimension_numbers``, ``precision`` and ``preferred_element_type``, too.

    Returns:
      A `Passes`: as the last expression of a cell it is a figure to step through by buttons or arrow keys.

    Raises:
      TypeError: if there is nothing to differentiate, or nothing that has a slope comes out.
      ValueError: as ``jax.grad`` does, where there is no reverse mode.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> def wave(x):
      ...     return jnp.sin(jnp.sin(x))
      >>> viz.passes(wave, 1.0)
      passes of wave, given a:f32[]
      forward                            held
        b:f32[] = sin a
        c:f32[] = cos a                   4 B  stored
        d:f32[] = sin b                   4 B
        e:f32[] = cos b                   8 B  stored
      returns d, stores 8 B: c e
      backward, from the slope f
        g:f32[] = mul f e                 8 B  uses e
        h:f32[] = mul g c                 4 B  uses c
      gradient h; at most 8 B held, 0 equations computed again
      >>> viz.passes(jax.checkpoint(wave), 1.0).recording.kept
      0
    """
    return Passes(record(function, *args, argnums=argnums, parameters=parameters))


def record(function: Callable, *args: Any, argnums: Any = 0, parameters: bool = False) -> Recording:
    """As `passes`, but returns the bare `Recording`."""
    program, way_back, kept, count = _programs(function, args, argnums)
    constants = [_Variable(v.aval) for v in program.constvars]
    inputs = [_Variable(v.aval) for v in program.invars]
    env = dict(zip([*program.constvars, *program.invars], [*constants, *inputs], strict=True))
    forward, results = _flat(program, env)
    residuals = results[len(results) - kept :]
    forward = _needed(forward, results)

    slopes = [_Variable(v.aval, depends=True) for v in way_back.invars[kept:]]
    outside = [_Variable(v.aval) for v in way_back.constvars]
    env = dict(zip(way_back.constvars, outside, strict=True))
    env |= dict(zip(way_back.invars, [*residuals, *slopes], strict=True))
    backward, gradients = _flat(way_back, env, backward=True)
    backward = _needed(backward, gradients)

    names = _Letters()
    names.give(inputs + constants)
    names.give([out for row in forward for out in row.outputs if out.needed])
    names.give(slopes + outside)
    names.give([out for row in backward for out in row.outputs if out.needed])

    given = {*inputs, *constants, *outside}
    stored = list(dict.fromkeys(r for r in residuals if isinstance(r, _Variable)))
    forward_steps, backward_steps = _steps(forward, backward, stored, given, gradients, parameters)
    return Recording(
        name=getattr(function, "__name__", type(function).__name__),
        inputs=tuple(v.typed() for v in inputs)
        + tuple(f"{v.typed()} (a constant from outside)" for v in constants),
        stored=tuple(Value(v.name, type_of(v.aval), _bytes(v.aval), v in given) for v in stored),
        forward=tuple(forward_steps[:MOST]),
        backward=tuple(backward_steps[:MOST]),
        outputs=tuple(map(_said, results[:count])),
        slopes=tuple(map(_said, slopes)),
        gradients=tuple(map(_said, gradients)),
        left_out=max(0, len(forward) - MOST) + max(0, len(backward) - MOST),
    )


def _programs(function, args, argnums):
    """The jaxpr of the forward pass, whose last results are what is kept, and that of the backward pass."""
    places = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    leaves, structure = jax.tree.flatten(args)
    numbers = jax.tree.unflatten(structure, range(len(leaves)))
    chosen = [i for place in places for i in jax.tree.leaves(numbers[place]) if _differentiable(leaves[i])]
    if not chosen:
        raise TypeError("there is nothing to differentiate: the argument holds no floating numbers")
    pullbacks, sizes = [], []

    def forward(leaves):
        def of_chosen(*values):
            full = list(leaves)
            for i, value in zip(chosen, values, strict=True):
                full[i] = value
            results = jax.tree.leaves(function(*jax.tree.unflatten(structure, full)))
            results = [jnp.asarray(x) for x in results]
            sizes.append(len(results))
            return [x for x in results if _differentiable(x)], [x for x in results if not _differentiable(x)]

        results, pullback, others = jax.vjp(of_chosen, *[leaves[i] for i in chosen], has_aux=True)
        if not results:
            raise TypeError(
                "the function returns no floating numbers, so that there is no slope to start from"
            )
        kept, tree = jax.tree.flatten(pullback)
        pullbacks.append(tree)
        return results, others, kept

    program, (results, _, kept) = jax.make_jaxpr(forward, return_shape=True)(leaves)

    def backward(kept, slopes):
        return jax.tree.unflatten(pullbacks[0], kept)(slopes)

    way_back = jax.make_jaxpr(backward)(kept, results)
    return jaxprs._open(program)[0], jaxprs._open(way_back)[0], len(kept), sizes[0]


def _differentiable(leaf):
    return jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)


class _Variable:
    """A value of the flattened program."""

    def __init__(self, aval, depends=False):
        self.aval, self.depends, self.name, self.needed = aval, depends, "_", False

    def typed(self):
        return f"{self.name}:{type_of(self.aval)}"


class _Letters:
    """Names values a, b, c, … in the order in which they are given."""

    def __init__(self):
        self.count = 0

    def give(self, variables):
        for variable in variables:
            variable.name = letters(self.count)
            self.count += 1


@dataclasses.dataclass
class _Row:
    """An equation of the flattened program; ``inner`` holds the rows of the programs inside it, by name."""

    equation: Any
    inputs: list
    outputs: list
    again: bool
    inner: list

    def text(self, parameters):
        """The equation, and the lines of what is inside it."""
        names = Names(parameters)
        for variable, value in zip(self.equation.invars, self.inputs, strict=True):
            if not hasattr(variable, "val"):
                names.known[variable] = _said(value)
        for variable, value in zip(self.equation.outvars, self.outputs, strict=True):
            names.known[variable] = value.name
        first = names.equation(self.equation).split("\n")[0]
        lines = []
        for name, given, rows, results in self.inner:
            labels = _Letters()
            labels.give(given)
            labels.give([out for row in rows for out in row.outputs if out.needed])
            lines.append((f"  {name}: {' '.join(v.typed() for v in given)}", False))
            for row in rows:
                text, inside = row.text(parameters)
                lines += [(f"    {text}", row.again), *((f"    {line}", again) for line, again in inside)]
            lines.append((f"    gives {' '.join(map(_said, results)) or 'nothing'}", False))
        return first, tuple(lines)


def _said(value):
    return value.name if isinstance(value, _Variable) else literal(value)


def _flat(jaxpr, env, backward=False, inside=False):
    """The rows of a program, with those of inner programs in their place, and its results.

    Args:
      env: from the program's inputs and constants to values.
      backward: what depends on no slope may be a second computation.
      inside: of the rows, whether they stand in a ``jax.checkpoint``.
    """

    def read(atom):
        return atom if hasattr(atom, "val") else env[atom]

    rows = []
    for equation in jaxpr.eqns:
        inputs = [read(atom) for atom in equation.invars]
        held = list(jaxprs.subjaxprs(equation))
        name = equation.primitive.name
        if name in _INLINED and held:
            opened, consts = jaxprs._open(held[0][1])
            scope = {v: _Variable(v.aval) for v in opened.constvars}
            scope |= dict(zip(opened.invars, inputs, strict=True))
            more, results = _flat(opened, scope, backward, inside or backward and name in jaxprs.CHECKPOINT)
            rows += more
            env.update(zip(equation.outvars, results, strict=True))
            continue
        depends = any(isinstance(value, _Variable) and value.depends for value in inputs)
        outputs = [_Variable(v.aval, depends) for v in equation.outvars]
        again = backward and inside and not depends
        inner = [
            (label, *_inside(equation, label, jaxpr, inputs, backward and not again, inside))
            for label, jaxpr in held
            if label != "call_jaxpr" or name != "custom_jvp_call"
        ]
        rows.append(_Row(equation, inputs, outputs, again, inner))
        env.update(zip(equation.outvars, outputs, strict=True))
    return rows, [read(atom) for atom in jaxpr.outvars]


def _inside(equation, label, jaxpr, inputs, backward, inside):
    """The inputs, rows and results of a program that is held by an equation, a loop's body say."""
    opened, _ = jaxprs._open(jaxpr)
    depends = [isinstance(value, _Variable) and value.depends for value in inputs]
    params, carry = equation.params, 0
    if equation.primitive.name == "cond":
        depends = depends[1:]
    elif equation.primitive.name == "while":
        first, second = params["cond_nconsts"], params["body_nconsts"]
        consts = depends[:first] if label == "cond_jaxpr" else depends[first : first + second]
        depends, carry = consts + depends[first + second :], len(depends) - first - second
    elif equation.primitive.name == "scan":
        carry = sum(len(v.aval.shape) == len(i.aval.shape) for v, i in zip(equation.outvars, opened.outvars))
    if len(depends) != len(opened.invars):  # of another kind: nothing is said of it
        depends = [True] * len(opened.invars)
    while True:
        given = [_Variable(v.aval, flag) for v, flag in zip(opened.invars, depends, strict=True)]
        scope = {v: _Variable(v.aval) for v in opened.constvars} | dict(
            zip(opened.invars, given, strict=True)
        )
        rows, results = _flat(opened, scope, backward, inside)
        after = list(depends)
        if (
            carry and label != "cond_jaxpr"
        ):  # what a loop hands on depends on slopes, once it did in any round
            start = _first_carried(equation, len(depends), carry)
            for i, result in enumerate(results[:carry]):
                after[start + i] |= isinstance(result, _Variable) and result.depends
        if after == depends:
            return given, _needed(rows, results), results
        depends = after


def _first_carried(equation, count, carry):
    if equation.primitive.name == "while":
        return count - carry
    if "num_consts" in equation.params:  # before jax 0.12
        return equation.params["num_consts"]
    whole = [len(atom.aval.shape) for atom in equation.invars]
    inner = [len(v.aval.shape) for v in jaxprs._open(equation.params["jaxpr"])[0].invars]
    sliced = sum(one != other for one, other in zip(whole, inner, strict=True))
    return count - sliced - carry


def _needed(rows, results):
    """The rows without those that nothing needs. XLA drops these, too."""
    for result in results:
        if isinstance(result, _Variable):
            result.needed = True
    left = []
    for row in reversed(rows):
        if any(out.needed for out in row.outputs) or row.equation.effects:
            left.append(row)
            for value in row.inputs:
                if isinstance(value, _Variable):
                    value.needed = True
    return left[::-1]


def _steps(forward, backward, stored, given, gradients, parameters):
    """The rows as steps, each with what is held while it runs."""
    rows = forward + backward
    made = {out: i for i, row in enumerate(rows) for out in row.outputs}
    last = {value: i for i, row in enumerate(rows) for value in row.inputs if isinstance(value, _Variable)}
    last |= {value: len(rows) for value in gradients if isinstance(value, _Variable)}
    kept = [value for value in stored if value not in given]
    remade = [out for row in backward if row.again for out in row.outputs if out.needed]
    steps = []
    for i, row in enumerate(rows):
        text, inner = row.text(parameters)
        back = i >= len(forward)
        steps.append(
            Step(
                text=text,
                inner=inner,
                stored=tuple(out.name for out in row.outputs if out in kept and not back),
                used=tuple(v.name for v in stored if back and v in row.inputs),
                again=row.again,
                kept=sum(_bytes(v.aval) for v in kept if made[v] <= i <= last.get(v, len(forward) - 1)),
                remade=sum(_bytes(v.aval) for v in remade if made[v] <= i <= last[v]) + _remade_inside(row),
            )
        )
    return steps[: len(forward)], steps[len(forward) :]


def _remade_inside(row):
    """The most bytes of values computed again that are held at once in a round of a loop, or in a branch."""
    most = 0
    for _, _, rows, results in row.inner:
        last = {value: i for i, r in enumerate(rows) for value in r.inputs if isinstance(value, _Variable)}
        last |= {value: len(rows) for value in results if isinstance(value, _Variable)}
        made = {out: i for i, r in enumerate(rows) if r.again for out in r.outputs if out.needed}
        for i, inner in enumerate(rows):
            here = sum(_bytes(out.aval) for out, at in made.items() if at <= i <= last.get(out, at))
            most = max(most, here + _remade_inside(inner))
    return most


def _bytes(aval):
    try:
        return int(np.prod(aval.shape)) * aval.dtype.itemsize
    except (AttributeError, TypeError):
        return 0
