"""``viz.gates``: what happens inside of a recurrent cell while it reads one sequence, step by step.

`gates` runs the cell and keeps gates and states of all steps; `Gates` shows them: in a notebook as maps to step through, in a
terminal as a listing. The markup is made in `page`.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.viz.figures.gates import page

LONGEST = 64  # steps in one figure


class Gates:
    """What `gates` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      name: of the cell.
      labels: of the steps, as strings.
      values: gates and parts of the state by name, each ``(steps, size)``.
      influence: ``(steps, steps)``: in row ``t``, how much the size of the output at step ``t`` depends on each input, as the length
        of a gradient. Inputs that come later have 0.
    """

    def __init__(self, name, labels, values, gate_names, influence):
        self.name, self.labels, self.values, self.influence = name, labels, values, influence
        self._gate_names = gate_names

    def _repr_html_(self):
        return page.write(self, self._gate_names)

    def __repr__(self):
        return page.listing(self)


def gates(
    cell: Any,
    trainables: Any,
    x: Any,
    *,
    labels: Sequence | None = None,
    gates: Sequence[str] | None = None,
) -> Gates:
    """Show the gates and the state of a recurrent cell while it reads a sequence.

    Gates are what the cell's ``step`` passes through ``jax.nn.sigmoid``, so those of a cell of your own are found, too. A
    sigmoid over several gates side by side is cut into blocks of the size of the state.

    Args:
      cell: ``nn.LSTMCell``, ``nn.GRUCell``, ``nn.RNNCell``, any object with ``init_carry`` and ``step`` as `nn.Cell` has them, or an
        `nn.Recurrent` around one.
      trainables: the cell's, as its ``init`` makes them, or training.
      x: one sequence, ``(time, in)``, floating, of at most 64 steps.
      labels: a string or a sequence with one label for each step, such as the text; by default the steps are numbered.
      gates: names for the gates, in the order in which ``step`` computes them. By default those of the package's cells, and
        numbers for others.

    Returns:
      A `Gates`: as the last expression of a cell it is a figure with a button for each step. It has ``values`` and
      ``influence``, too.

    Raises:
      TypeError: if the cell has no ``init_carry`` and ``step``.
      ValueError: if ``x`` is not one floating sequence, or labels or names are not as many as steps and gates.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, viz
      >>> cell, x = nn.LSTMCell(4), jnp.ones((3, 2))
      >>> trainables, _ = cell.init(jax.random.key(0), x[0])
      >>> figure = viz.gates(cell, trainables, x, labels="abc")
      >>> figure.values["f"].shape, figure.influence.shape
      ((3, 4), (3, 3))
    """
    cell, backwards = _cell(cell)
    x = _sequence(x)
    names = _labels(labels, len(x))
    if backwards:
        x, names = x[::-1], names[::-1]
    start = cell.init_carry(x[0])
    leaves = jax.tree.leaves(start)
    size = max((leaf.shape[-1] for leaf in leaves if jnp.ndim(leaf)), default=1)
    program, shapes = jax.make_jaxpr(cell.step, return_shape=True)(start, x[0], trainables)

    def step(carry, x_t):
        opened = []
        flat = _run(program.jaxpr, program.consts, jax.tree.leaves((carry, x_t, trainables)), opened)
        new, _ = jax.tree.unflatten(jax.tree.structure(shapes), flat)
        blocks = [jnp.ravel(block) for gate in opened for block in _blocks(gate, size)]
        return new, (blocks, [jnp.ravel(leaf) for leaf in jax.tree.leaves(new)])

    opened, states = jax.jit(lambda start, x: jax.lax.scan(step, start, x)[1])(start, x)
    opened, states = ([np.asarray(each, float) for each in part] for part in (opened, states))
    gate_names = _gate_names(cell, gates, len(opened))
    values = dict(
        zip([*gate_names, *_state_names(cell, start, len(states))], [*opened, *states], strict=True)
    )
    return Gates(type(cell).__name__, names, values, gate_names, _influence(cell, trainables, start, x))


def _cell(cell):
    backwards = False
    if isinstance(cell, nn.Recurrent):
        cell, backwards = cell.cell, cell.reverse
    if isinstance(cell, type) or not all(
        callable(getattr(cell, name, None)) for name in ("init_carry", "step")
    ):
        got = f"the class {cell.__name__}" if isinstance(cell, type) else type(cell).__name__
        raise TypeError(
            f"viz.gates: the first argument must be a cell with init_carry and step, such as nn.LSTMCell(8), or nn.Recurrent around one, got {got}"
        )
    return cell, backwards


def _sequence(x):
    x = jnp.asarray(x)
    if x.ndim != 2 or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(
            f"viz.gates: x must be one sequence, floating, of shape (time, in), got {x.dtype}{list(x.shape)}: take one of "
            "a batch, and embed integers first"
        )
    if not 1 <= len(x) <= LONGEST:
        raise ValueError(
            f"viz.gates: x must have 1 to {LONGEST} steps, got {len(x)}: show a part, x[:{LONGEST}]"
        )
    return x


def _labels(labels, count):
    names = [str(label) for label in (range(1, count + 1) if labels is None else labels)]
    if len(names) != count:
        raise ValueError(f"viz.gates: there are {count} steps and {len(names)} labels")
    return names


def _gate_names(cell, given, count):
    if given is not None:
        names = [str(name) for name in given]
        if len(names) != count or len(set(names)) != count:
            raise ValueError(
                f"viz.gates: {type(cell).__name__}.step has {count} gates (sigmoids), got {len(names)} names: {names}"
            )
        return names
    known = {nn.LSTMCell: ["f", "i", "o"], nn.GRUCell: ["r", "z"]}.get(type(cell))
    return known if known and len(known) == count else [f"gate {i}" for i in range(1, count + 1)]


def _state_names(cell, start, count):
    if type(cell) is not nn.Cell and count == 2 and isinstance(start, tuple) and len(start) == 2:
        return ["h", "c"]
    if count == 1 and not isinstance(start, dict):
        return ["h"]
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(start)]
    return [f"state{path}" for path in paths]


def _blocks(gate, size):
    """A sigmoid of several gates side by side, cut into gates."""
    width = gate.shape[-1] if gate.ndim else 1
    if width > size and width % size == 0:
        return jnp.split(gate, width // size, axis=-1)
    return [gate]


def _run(jaxpr, consts, arguments, opened):
    """Evaluate a jaxpr, and collect what comes out of each sigmoid."""
    known = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, arguments))

    def value(atom):
        return atom.val if hasattr(atom, "val") else known[atom]

    for equation in jaxpr.eqns:
        inputs = list(map(value, equation.invars))
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        if inner is not None and equation.primitive.name not in ("scan", "while", "cond"):
            closed = hasattr(inner, "consts")
            body, constants = (inner.jaxpr, inner.consts) if closed else (inner, ())
            outputs = _run(body, constants, inputs, opened)
        else:
            parameters = equation.primitive.get_bind_params(equation.params)
            # Positional functions come with them before jax 0.12.
            functions, parameters = parameters if isinstance(parameters, tuple) else ((), parameters)
            with equation.ctx.manager:
                outputs = equation.primitive.bind(*functions, *inputs, **parameters)
            outputs = outputs if equation.primitive.multiple_results else [outputs]
        if equation.primitive.name == "logistic":
            opened.append(outputs[0])
        known.update(zip(equation.outvars, outputs))
    return list(map(value, jaxpr.outvars))


def _influence(cell, trainables, start, x):
    """Row ``t``: the length of the gradient of the output's size at step ``t``, for each input."""

    def outputs(x):
        step = lambda carry, x_t: cell.step(carry, x_t, trainables)  # noqa: E731
        return jax.lax.scan(step, start, x)[1]

    @jax.jit
    def lengths(x):
        y, pull_back = jax.vjp(outputs, x)
        steps = jnp.eye(len(x), dtype=y.dtype).reshape(len(x), len(x), *[1] * (y.ndim - 1))
        sizes = jnp.sqrt(jnp.sum(y * y, axis=tuple(range(1, y.ndim)), keepdims=True))
        directions = steps * (y / jnp.maximum(sizes, jnp.finfo(y.dtype).tiny))
        gradients = jax.vmap(lambda direction: pull_back(direction)[0])(directions)
        return jnp.sqrt(jnp.sum(gradients.astype(jnp.float32) ** 2, axis=-1))

    found = np.asarray(lengths(x), float)
    return np.where(np.tri(len(x), dtype=bool), found, 0.0)
