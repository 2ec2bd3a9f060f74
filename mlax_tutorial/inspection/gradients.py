"""Do the derivatives that JAX computes fit the function? Measured by small steps, in both modes.

The chapter *Autodiff* derives it. Three ideas carry it:

1. *One direction is enough.* Instead of one slope for each of a million inputs, one slope along a direction that
   moves all of them is measured: a wrong entry of the gradient shows in it, unless two errors cancel. So
   there is a second direction.
2. *A ladder of steps.* A large step measures a chord, a small one measures rounding. The slope is taken at several
   steps and extrapolated to a step of zero, after Ridders (1982), which also says how far to trust it.
3. *Both modes.* ``jax.jvp`` and ``jax.grad`` must agree with the measurement, and so with each other.

`check` raises where they do not fit, `compare` only reports.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

RUNGS = 4  # steps of the ladder, each half of the one before, from which one extrapolates
MOST = 12  # steps in all, if the function swings so fast that the first ones say nothing


class GradientError(AssertionError):
    """A derivative does not fit its function."""


@dataclasses.dataclass(frozen=True)
class Slope:
    """The slope of a function along one direction, found in three ways.

    Attributes:
      measured, uncertainty: by small steps.
      forward, reverse: by ``jax.jvp`` and ``jax.grad``; None where JAX has no such derivative.
      tolerance: how far these may be from what was measured.
      kink: whether the slopes on both sides of the point differ, however near one comes.
    """

    measured: float
    uncertainty: float
    forward: float | None
    reverse: float | None
    tolerance: float
    kink: bool = False

    @property
    def ok(self) -> bool:
        found = [slope for slope in (self.forward, self.reverse) if slope is not None]
        return all(abs(slope - self.measured) <= self.tolerance for slope in found)


@dataclasses.dataclass(frozen=True)
class Report:
    """What `compare` found: one `Slope` for each direction. It prints as a table.

    Attributes:
      refused: for a mode that JAX refuses, what it says.
    """

    slopes: tuple[Slope, ...]
    refused: dict[str, str]

    @property
    def ok(self) -> bool:
        return all(slope.ok for slope in self.slopes)

    def __repr__(self):
        head = f"{'measured':>21}  {'forward':>9}  {'reverse':>9}"
        lines = [head]
        for slope in self.slopes:
            measured = f"{slope.measured:.4g} ± {slope.uncertainty:.1g}"
            modes = [_said(value) for value in (slope.forward, slope.reverse)]
            verdict = "agree" if slope.ok else "at a kink" if slope.kink else "DIFFER"
            lines.append(f"{measured:>21}  {modes[0]:>9}  {modes[1]:>9}  {verdict}")
        lines += [f"no {mode} mode: {reason}" for mode, reason in self.refused.items()]
        return "\n".join(lines)


def _said(value):
    return "none" if value is None else f"{value:.4g}"


def check(function, *args, argnums=0, directions=2) -> Report:
    """Checks the derivatives of ``function(*args)`` in forward and in reverse mode.

    For second derivatives, check the gradient: ``check(jax.grad(f), x)``.

    Args:
      function: takes and returns pytrees of arrays. Its results need not be scalars.
      *args: where the slopes are measured. Keep away from kinks: a ``relu`` has two slopes at 0.
      argnums: the argument, or a tuple of arguments, for which it is differentiated. Leaves that are not floating
        (or complex) stay as they are.
      directions: along how many directions.

    Returns:
      A `Report`, which prints as a table.

    Raises:
      GradientError: where a derivative is not within the tolerance of what was measured: two digits in float32,
        five in float64, and none to speak of in bfloat16.
      TypeError, ValueError: where JAX refuses both modes: what it says of the reverse mode.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial.inspection import gradients
      >>> gradients.check(jnp.sin, 0.0).ok
      True
      >>> @jax.custom_jvp
      ... def cube(x):
      ...     return x**3
      >>> cube.defjvp(lambda x, t: (cube(*x), 2 * x[0] ** 2 * t[0]))
      <function <lambda> at ...>
      >>> gradients.check(cube, 1.0, directions=1)
      Traceback (most recent call last):
          ...
      mlax_tutorial.inspection.gradients.GradientError: the derivatives do not fit the function:
      ...

    Reference: C. J. F. Ridders, *Accurate computation of F'(x) and F'(x) F''(x)*, Advances in Engineering Software
    4(2), 1982.
    """
    report = compare(function, *args, argnums=argnums, directions=directions)
    if not report.ok:
        hint = ""
        if any(slope.kink for slope in report.slopes):
            hint = (
                "\nThe slopes on both sides differ here: a kink has no slope to compare with. Move the point."
            )
        raise GradientError(f"the derivatives do not fit the function:\n{report}{hint}")
    return report


def compare(function, *args, argnums=0, directions=2) -> Report:
    """As `check`, but a derivative that does not fit is only reported.

    >>> import jax.numpy as jnp
    >>> compare(jnp.abs, 0.0, directions=1).slopes[0].kink
    True
    """
    slopes, refused, errors = [], {}, {}
    with jax.default_matmul_precision("highest"):
        for turn in range(1, directions + 1):
            direction = direction_of(args, argnums, turn)
            measured, uncertainty, kink = slope(function, args, direction, argnums)
            found, scale = {}, 0.0
            for mode, derive in (("reverse", _reverse), ("forward", _forward)):
                found[mode] = None
                if mode in refused:
                    continue
                try:
                    found[mode], size = derive(function, args, direction, argnums)
                    scale = max(scale, size)
                except (TypeError, ValueError, NotImplementedError) as error:
                    refused[mode] = str(error).strip().split("\n")[0]
                    errors[mode] = error
            if len(refused) == 2:
                raise errors["reverse"]
            tolerance = _tolerance(args, argnums) * max(scale, abs(measured)) + 4 * uncertainty
            slopes.append(Slope(measured, uncertainty, found["forward"], found["reverse"], tolerance, kink))
    return Report(tuple(slopes), refused)


def direction_of(args, argnums=0, turn=1):
    """A direction that moves every entry of some arguments by about its own size: a tuple of trees, one for each.

    >>> [float(entry) for entry in direction_of((np.float32([2.0, 0.0]),))[0]]
    [1.682941..., 1.285940...]
    """

    def of_leaf(leaf):
        if not _moves(leaf):
            return None
        size = np.abs(np.asarray(leaf, complex if jnp.iscomplexobj(leaf) else float))
        typical = np.sqrt(np.mean(size**2)) if size.size else 1.0
        typical = typical if typical > 0 else 1.0
        size = np.where(size > 1e-12 * typical, size, typical)
        phase = (turn + np.arange(size.size)).reshape(size.shape)
        signs = np.sin(phase)
        if jnp.iscomplexobj(leaf):
            signs = signs + 1j * np.cos(2 * phase)
        return (signs * size).astype(jnp.result_type(leaf))

    return tuple(jax.tree.map(of_leaf, args[i]) for i in _tuple(argnums))


def slope(function, args, direction, argnums=0):
    """The slope along a direction, by steps to both sides: ``(measured, uncertainty, kink)``.

    Of a result that is not a scalar, all entries are summed, with the weights of `weighted_sum`.
    """
    first = step = _first_step(args, argnums)
    result = function(*args)
    here = _leaves(result)
    epsilon = max([_epsilon(args, argnums), *map(_rounding, filter(_moves, jax.tree.leaves(result)))])
    size = sum(float(np.abs(leaf).sum()) for leaf in here)
    chords, sides, best = [], [], (np.nan, np.inf)
    while len(chords) < MOST and step > first / 2**24:
        ahead = _leaves(function(*_moved(args, direction, argnums, step)))
        behind = _leaves(function(*_moved(args, direction, argnums, -step)))
        chord = _weighted_difference(ahead, behind) / (2 * step)
        if np.isfinite(chord):  # else the step has left the domain: a logarithm's, say
            chords.append(chord)
            sides.append((_weighted_difference(ahead, here) - _weighted_difference(here, behind)) / step)
        if len(chords) >= RUNGS:
            measured, uncertainty = _extrapolated(chords[-RUNGS:])
            uncertainty += epsilon * (size + abs(measured)) / (step * 2 ** (RUNGS - 1))
            best = min(best, (measured, uncertainty), key=lambda pair: pair[1])
            if uncertainty <= 0.1 * _tolerance(args, argnums) * abs(measured):
                break
        step /= 2
    measured, uncertainty = best
    if len(chords) < RUNGS:
        return np.nan, np.nan, False
    bend = np.abs(sides[:RUNGS])  # of a smooth function it shrinks with the step, rounding makes it grow
    kink = bend.min() > 0.6 * bend.max() and bend.min() > 0.1 * abs(measured) + 8 * uncertainty
    return measured, uncertainty, bool(kink)


def along(gradient, direction) -> float:
    """The slope that a gradient (a tuple of trees) says there is along a direction.

    >>> along((np.float32([1.0, 2.0]),), (np.float32([3.0, 4.0]),))
    11.0
    """
    return sum(_products(gradient, direction))


def weighted_sum(function):
    """The function followed by a weighted sum of all entries, so that each counts by itself; real, where it is complex."""

    def scalar(*args):
        return _weighed([leaf for leaf in jax.tree.leaves(function(*args)) if _moves(leaf)])

    return scalar


@jax.jit  # one program, and not one for each operation
def _weighed(leaves):
    weights = [np.asarray(w, jnp.result_type(leaf)) for w, leaf in zip(_weights(leaves), leaves, strict=True)]
    with jax.numpy_dtype_promotion("standard"):
        return sum(jnp.sum(jnp.real(leaf * w)) for leaf, w in zip(leaves, weights, strict=True))


def _weights(leaves):
    """For each leaf its weights: of either sign, none near 0, no two leaves alike; that of a scalar is 1."""
    ends = np.cumsum([np.size(leaf) for leaf in leaves])
    for leaf, end in zip(leaves, ends, strict=True):
        waves = np.cos(np.arange(end - np.size(leaf), end)).reshape(np.shape(leaf))
        weights = (waves + np.copysign(0.5, waves)) / 1.5
        yield weights * (1 - 0.5j) if jnp.iscomplexobj(leaf) else weights


def _products(gradient, direction):
    for one, other in zip(gradient, direction, strict=True):
        for t, g in zip(*(jax.tree.leaves(tree, is_leaf=_none) for tree in (other, one)), strict=True):
            if t is not None:
                wide = [np.asarray(leaf, complex if jnp.iscomplexobj(leaf) else float) for leaf in (g, t)]
                yield float(np.real(np.sum(wide[0] * wide[1])))


def _none(leaf):
    return leaf is None


def _moves(leaf):
    if isinstance(leaf, str) or callable(leaf):  # of a tree that holds more than arrays
        return False
    return jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)


def _tuple(argnums):
    return tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)


def _moved(args, direction, argnums, by):
    moved = list(args)
    for place, tree in zip(_tuple(argnums), direction, strict=True):
        moved[place] = jax.tree.map(
            lambda t, x: x if t is None else x + np.asarray(by * t, jnp.result_type(x)),
            tree,
            moved[place],
            is_leaf=_none,
        )
    return moved


def _leaves(result):
    """Floating results, as wide NumPy arrays: their differences shall not be rounded again."""
    return [
        np.asarray(leaf, complex if jnp.iscomplexobj(leaf) else float)
        for leaf in jax.tree.leaves(result)
        if _moves(leaf)
    ]


def _weighted_difference(ahead, behind):
    return sum(
        float(np.real(np.sum((one - two) * weights)))
        for one, two, weights in zip(ahead, behind, _weights(ahead), strict=True)
    )


def _extrapolated(chords):
    """From slopes at steps that halve to the slope at step zero, and how far to trust it (Ridders' tableau)."""
    best, error, before = chords[0], abs(chords[1] - chords[0]), [chords[0]]
    for chord in chords[1:]:
        row = [chord]
        for power, old in enumerate(before, start=1):
            row.append(row[-1] + (row[-1] - old) / (4**power - 1))
            spread = max(abs(row[-1] - row[-2]), abs(row[-1] - old))
            if spread <= error:
                best, error = row[-1], spread
        before = row
    return best, error


def _epsilon(args, argnums):
    """The rounding of the coarsest floating leaf that is moved."""
    leaves = [leaf for place in _tuple(argnums) for leaf in jax.tree.leaves(args[place]) if _moves(leaf)]
    if not leaves:
        raise TypeError("there is nothing to differentiate: the arguments hold no floating numbers")
    return max(map(_rounding, leaves))


def _rounding(leaf):
    return float(jnp.finfo(jnp.result_type(leaf)).eps)


def _first_step(args, argnums):
    return min(0.25, 8 * _epsilon(args, argnums) ** (1 / 3))


def _tolerance(args, argnums):
    return _epsilon(args, argnums) ** (1 / 3)


def _apart(function, args, argnums):
    """The function of those leaves alone that can be moved, and these leaves."""
    places = _tuple(argnums)
    trees = [jax.tree.flatten(args[place]) for place in places]
    moving = [[x for x in leaves if _moves(x)] for leaves, _ in trees]

    def of_moving(moving):
        full = list(args)
        for place, (leaves, structure), given in zip(places, trees, moving, strict=True):
            given = iter(given)
            full[place] = jax.tree.unflatten(structure, [next(given) if _moves(x) else x for x in leaves])
        return function(*full)

    return of_moving, [[jnp.asarray(x) for x in leaves] for leaves in moving]


def _reverse(function, args, direction, argnums):
    of_moving, moving = _apart(function, args, argnums)
    gradient = jax.grad(weighted_sum(of_moving))(moving)
    tangent = [jax.tree.leaves(tree) for tree in direction]
    return along(gradient, tangent), sum(map(abs, _products(gradient, tangent)))


def _forward(function, args, direction, argnums):
    of_moving, moving = _apart(function, args, argnums)
    tangents = [jax.tree.leaves(tree) for tree in direction]
    total = float(jax.jvp(weighted_sum(of_moving), (moving,), (tangents,))[1])
    return total, abs(total)
