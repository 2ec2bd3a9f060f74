"""``viz.descent``: the paths of optimizers over a function of two numbers, step by step.

`descent` runs each optimizer and keeps where it went; `Descent` shows it: in a notebook as contour lines and paths to step
through, in a terminal as a listing. The markup is made in `page`.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.optim import SGD
from mlax_tutorial.viz.figures.descent import page

GRID = 81  # points in a row at which the function is evaluated for the contour lines


YOURS = "yours"  # the path that the figure's sliders set


@dataclasses.dataclass(frozen=True)
class Quadratic:
    """A function of two numbers that the page computes itself: ``constant + slope @ w + w @ curvature @ w / 2``.

    Attributes:
      rate, momentum: those of gradient descent with which the figure begins.
    """

    constant: float
    slope: np.ndarray
    curvature: np.ndarray
    rate: float
    momentum: float


@dataclasses.dataclass(frozen=True)
class Path:
    """Where an optimizer went.

    Attributes:
      name: of the optimizer.
      points: float64, ``(steps + 1, 2)``, the start first.
      losses: the function there, ``(steps + 1,)``.
      ended: the first step after which a point or its loss is not finite; None if all are.
    """

    name: str
    points: np.ndarray
    losses: np.ndarray
    ended: int | None


class Descent:
    """What `descent` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      name: of the function.
      paths: a `Path` for each optimizer.
      window: ``((left, right), (low, high))``, what the figure shows of the plane.
    """

    def __init__(self, name: str, paths: list[Path], window, heights: np.ndarray, tuned=None):
        self.name, self.paths, self.window, self._heights, self._tuned = name, paths, window, heights, tuned

    @property
    def losses(self) -> dict[str, np.ndarray]:
        """The function along each path, by the optimizer's name."""
        return {path.name: path.losses for path in self.paths}

    def _repr_html_(self):
        return page.write(self, self._heights, self._tuned)

    def __repr__(self):
        return page.listing(self)


def descent(
    function: Callable,
    optimizers: Any,
    start: Sequence[float],
    *,
    steps: int = 50,
    window: Any = None,
    tune: tuple[float, float] | None = None,
) -> Descent:
    """Show how optimizers go down a function of two numbers.

    Args:
      function: of two numbers, or of one array of shape ``(2,)``; it returns one number. Anything that ``jax.grad`` differentiates.
      optimizers: one, a sequence, or a dict from names. Each has ``init`` and ``step``, as those of ``mlax_tutorial.optim`` and your
        own, or ``init`` and ``update``, as those of Optax. The weights are one array of shape ``(2,)``, and updates are added to it.
      start: the two numbers to begin with.
      steps: how many steps each optimizer takes.
      window: ``((left, right), (low, high))``, the part of the plane to show; by default what the paths cover as they descend.
      tune: a learning rate and a momentum. A further path, `yours`, is that of gradient descent with them, and two sliders of the
        figure set them; the page itself computes the path, without a kernel. So the function must be a quadratic.

    Returns:
      A `Descent`: as the last expression of a cell it is a figure of contour lines and paths with a button for each step. It
      has ``losses`` and ``paths``, too.

    Raises:
      TypeError: if the function does not return one number, or an optimizer has no such methods.
      ValueError: if ``start``, ``steps``, ``window`` or ``tune`` make no sense, there is no optimizer, or a function to ``tune`` is no quadratic.

    Example:
      >>> from mlax_tutorial import optim, viz
      >>> viz.descent(lambda x, y: x**2 + 4 * y**2, [optim.SGD(0.125)], (2.0, 1.0), steps=2)
      <lambda> from (2, 1), 2 steps
        SGD(0.125)  8 -> 1.27 at (1.12, 0)
    """
    named = _named(optimizers)
    if steps != int(steps) or steps < 1:
        raise ValueError(f"viz.descent: steps must be a whole number of at least 1, got {steps!r}")
    begin = _pair(start)
    loss = _of_array(function, begin)
    tuned = None if tune is None else _quadratic(loss, begin, tune)
    if tuned is not None:
        if YOURS in named:
            raise ValueError(
                f"viz.descent: {YOURS!r} names the path of the sliders; give the optimizer another name"
            )
        named |= {YOURS: SGD(tuned.rate, momentum=tuned.momentum)}
    paths = [_path(name, optimizer, loss, begin, int(steps)) for name, optimizer in named.items()]
    window = _window(paths) if window is None else _checked(window)
    name = getattr(function, "__name__", type(function).__name__)
    return Descent(name, paths, window, _heights(loss, window), tuned)


def _quadratic(loss, begin, tune) -> Quadratic:
    """The numbers of a quadratic, found at 0 and held against the function at other places."""
    try:
        rate, momentum = (float(number) for number in tune)
    except (TypeError, ValueError):
        rate, momentum = np.nan, np.nan
    if not (0 < rate < np.inf and 0 <= momentum < 1):
        raise ValueError(
            f"viz.descent: tune must be a rate above 0 and a momentum of at least 0 and below 1, got {tune!r}"
        )
    zero, gradient = jnp.zeros(2), jax.grad(loss)
    constant, slope, curvature = (np.asarray(f(zero), float) for f in (loss, gradient, jax.hessian(loss)))
    places = [begin, -begin, begin[::-1] + 1, np.array([1.0, -2.0], np.float32)]
    for place in places:
        found, wanted = np.asarray(gradient(jnp.asarray(place)), float), slope + curvature @ place
        if not np.allclose(found, wanted, rtol=1e-4, atol=1e-4 * max(np.abs(wanted).max(), 1e-30)):
            raise ValueError(
                "viz.descent: tune needs a quadratic, whose gradient is a line in each weight; this function's is not"
            )
    if not np.linalg.eigvalsh(curvature).max() > 0:
        raise ValueError(
            "viz.descent: tune needs a quadratic that rises somewhere; this function's curvature is nowhere above 0"
        )
    return Quadratic(float(constant), slope, curvature, rate, momentum)


def _named(optimizers) -> dict[str, Any]:
    """Optimizers by name. One of Optax is a tuple, too, of two functions."""
    if _callables(optimizers):
        optimizers = [optimizers]
    if not isinstance(optimizers, Mapping):
        names = [_name(optimizer) for optimizer in optimizers]
        seen = {name: names.count(name) for name in names}
        numbered = [name if seen[name] == 1 else f"{name} {i}" for i, name in enumerate(names, 1)]
        optimizers = dict(zip(numbered, optimizers))
    if not optimizers:
        raise ValueError("viz.descent: there is no optimizer to follow")
    for name, optimizer in optimizers.items():
        if not _callables(optimizer):
            wanted = "init and step, or init and update as in Optax"
            raise TypeError(f"viz.descent: {name} must have {wanted}, got {type(optimizer).__name__}")
    return {str(name): optimizer for name, optimizer in optimizers.items()}


def _callables(optimizer) -> bool:
    moves = getattr(optimizer, "step", None) or getattr(optimizer, "update", None)
    return (
        callable(getattr(optimizer, "init", None)) and callable(moves) and not isinstance(optimizer, Mapping)
    )


def _name(optimizer) -> str:
    text = " ".join(repr(optimizer).split())
    return text if len(text) <= 48 and " at 0x" not in text else type(optimizer).__name__


def _pair(start) -> np.ndarray:
    try:
        begin = np.asarray(start, np.float32)
    except (TypeError, ValueError):
        begin = np.zeros(0)
    if begin.shape != (2,) or not np.isfinite(begin).all():
        raise ValueError(f"viz.descent: start must be two finite numbers, got {start!r}")
    return begin


def _of_array(function, begin) -> Callable:
    """The function as one of an array ``(2,)``, whichever way it takes its numbers."""
    try:
        inspect.signature(function).bind(0, 0)
        loss = lambda w: function(w[0], w[1])  # noqa: E731
    except (TypeError, ValueError):
        loss = function
    shape = np.shape(loss(jnp.asarray(begin)))
    if shape != ():
        raise TypeError(f"viz.descent: the function must return one number, got an array of shape {shape}")
    return lambda w: jnp.asarray(loss(w), jnp.float32)


def _path(name, optimizer, loss, begin, steps) -> Path:
    advance = optimizer.step if callable(getattr(optimizer, "step", None)) else optimizer.update

    def step(carry, _):
        weights, state = carry
        updates, state = advance(jax.grad(loss)(weights), state, weights)
        weights = weights + jnp.reshape(jnp.asarray(updates, weights.dtype), weights.shape)
        return (weights, state), weights

    carry = jnp.asarray(begin), optimizer.init(jnp.asarray(begin))
    try:
        _, points = jax.jit(lambda carry: jax.lax.scan(step, carry, length=steps))(carry)
        points = np.asarray(points)
    except Exception:  # what Python decides by values, or a state that changes its type, runs step by step
        points = []
        for _ in range(steps):
            carry, weights = step(carry, None)
            points.append(np.asarray(weights))
    points = np.concatenate([begin[None], np.asarray(points, np.float32)]).astype(float)
    losses = _mapped(loss, points)
    wrong = np.flatnonzero(~np.isfinite(points).all(axis=1) | ~np.isfinite(losses))
    return Path(name, points, losses, int(wrong[0]) if wrong.size else None)


def _mapped(loss, points) -> np.ndarray:
    points = jnp.asarray(points, jnp.float32)
    try:
        return np.asarray(jax.jit(jax.vmap(loss))(points), float)
    except Exception:  # as above
        return np.asarray([float(loss(point)) for point in points])


def _window(paths):
    """What the points cover that lie about as low as the start; at least a little around it."""
    points = np.concatenate([path.points[: path.ended] for path in paths] + [paths[0].points[:1]])
    losses = np.concatenate([path.losses[: path.ended] for path in paths] + [paths[0].losses[:1]])
    first = losses[-1]
    low = points[losses <= first + 0.5 * (first - losses.min())] if np.isfinite(first) else points[-1:]
    low = np.concatenate([low, points[-1:]])
    low = low[np.isfinite(low).all(axis=1)]
    center, size = (low.max(axis=0) + low.min(axis=0)) / 2, np.ptp(low, axis=0)
    if size.max() == 0:
        size = np.full(2, max(1.0, abs(low).max()))
    if size.max() <= 20 * size.min() or size.min() <= 1e-3 * size.max():  # one scale for both axes
        size = np.maximum(size, size.max() * np.array([0.8, 0.6]))
    half = 0.6 * size
    return tuple((float(c - h), float(c + h)) for c, h in zip(center, half))


def _checked(window):
    try:
        edges = np.asarray(window, float)
    except (TypeError, ValueError):
        edges = np.zeros(0)
    if edges.shape != (2, 2) or not np.isfinite(edges).all() or not (edges[:, 0] < edges[:, 1]).all():
        raise ValueError(f"viz.descent: window must be ((left, right), (low, high)), got {window!r}")
    return tuple((float(low), float(high)) for low, high in edges)


def _heights(loss, window) -> np.ndarray:
    """The function on a grid over the window, a row for each y."""
    count = GRID
    try:
        jax.eval_shape(loss, jax.ShapeDtypeStruct((2,), jnp.float32))
    except Exception:
        count = 25  # it is called once for each point
    x, y = (np.linspace(low, high, count) for low, high in window)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return _mapped(loss, points).reshape(count, count)
