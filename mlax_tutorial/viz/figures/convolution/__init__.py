"""``viz.convolution``: which inputs each output of a layer sees, through one layer or a series of them.

Nothing is known of the layers but what they do: one part of the input after the other is made NaN, infinite, and minus infinite (a
maximum may pass by the first and the last), and an output that changes has seen it. So a layer of the reader's own is shown as the package's are. The markup is made in `page`.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.viz.figures.convolution import page

MOST = 4096  # places of a grid
MOST_TUNED = 1024  # places of an input with which the page computes: so the figure stays under 60 kB


@dataclasses.dataclass(frozen=True)
class Stage:
    """A layer along whose axes something moves or mixes.

    Attributes:
      name: the layer in words.
      given, returned: shapes without channels, ``(height, width)`` or ``(length,)``.
      channels: how many go in, and how many come out.
      window: how many elements of its own input lie between the first and the last that one output sees, along each axis, at most.
      field: the same of the model's input: the receptive field.
      groups: how many groups of channels there are that do not mix; None if they mix in another way.
      places: for each axis a matrix ``(in, out)`` of what is seen; or one matrix for all places at once, where rows and columns
        do not go apart.
    """

    name: str
    given: tuple[int, ...]
    returned: tuple[int, ...]
    channels: tuple[int, int]
    window: tuple[int, ...]
    field: tuple[int, ...]
    groups: int | None
    places: tuple[np.ndarray, ...]

    def back(self, ways: np.ndarray) -> np.ndarray:
        """In how many ways each input leads to what outputs count for."""
        if len(self.places) == len(self.given) == 2:
            return self.places[0].astype(float) @ ways @ self.places[1].T.astype(float)
        return (self.places[0].astype(float) @ ways.ravel()).reshape(self.given)


@dataclasses.dataclass(frozen=True)
class Window:
    """A window without padding, the same along each axis, with which the reader begins; its output is the mean of what it sees.

    Attributes:
      size, stride, dilation: as of a convolution.
      values: the input, a mean over its channels, of its shape without channels.
    """

    size: int
    stride: int
    dilation: int
    values: np.ndarray


class Sight:
    """What `convolution` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      name: of the model.
      stages: a `Stage` for each layer that is shown.
      rest: names of the layers at the end that no longer have places, such as ``Flatten(3)``.
    """

    def __init__(self, name: str, stages: list[Stage], rest: list[str], window: Window | None = None):
        self.name, self.stages, self.rest, self._window = name, stages, rest, window

    @property
    def fields(self) -> list[tuple[int, ...]]:
        """The receptive field behind each stage, along each axis."""
        return [stage.field for stage in self.stages]

    def sees(self, *output: int) -> np.ndarray:
        """In how many ways each place of the input leads to an output, of the input's shape without channels.

        Args:
          *output: the place of the output, an index for each axis.
        """
        last = self.stages[-1]
        if len(output) != len(last.returned) or not all(0 <= i < n for i, n in zip(output, last.returned)):
            raise ValueError(f"viz.convolution: outputs are {last.returned}, got the place {output}")
        ways = np.zeros(last.returned)
        ways[output] = 1
        for stage in self.stages[::-1]:
            ways = stage.back(ways)
        return ways

    def _repr_html_(self):
        return page.write(self, self._window)

    def __repr__(self):
        return page.listing(self)


def convolution(model: Any, x: Any, *, channel_axis: int = -1, tune: bool = False) -> Sight:
    """Show which inputs each output of a convolution or a pooling sees.

    Args:
      model: a layer with ``init`` and ``fwd``, the package's or your own, or an ``nn.Series`` of them. It is called in inference mode.
      x: one example, ``(length, channels)`` or ``(height, width, channels)``, or a batch of images, of which the first is taken; an
        array or a ``jax.ShapeDtypeStruct``. Its numbers do not matter, but to ``tune``.
      channel_axis: where the channels are, counted from the end: ``-3`` for ``(channels, height, width)``.
      tune: whether the figure gets sliders for kernel size, stride and dilation, which begin with those of the model. The page itself
        computes the windows, the size of the output and its values, without a kernel: those of a convolution without padding whose
        weights are all equal and sum to 1, so each output is the mean of what it sees, over all channels. So the model must be one
        such layer, with a window that is the same along each axis, and ``x`` an array of at most 1,024 places.

    Returns:
      A `Sight`: as the last expression of a cell it is a figure with the grids of all layers and a slider through the outputs. It has
      ``stages``, ``fields`` and ``sees``, too.

    Raises:
      TypeError: if ``model`` has no ``init`` and ``fwd``.
      ValueError: if ``x`` is no such example or has more than 4,096 places, ``model`` returns no places, or it returns NaN of
        its own; or if ``model`` or ``x`` do not fit ``tune``.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn, viz
      >>> viz.convolution(nn.Conv(8, (3, 3), strides=2), jnp.ones((9, 9, 1)))
      Conv(8, (3, 3), strides=2) on 9 x 9 x 1: an output sees up to 3 x 3
        Conv(8, (3, 3), strides=2)  4 x 4 x 8  window 3 x 3  field 3 x 3

      With sliders that begin at a kernel size of 3, a stride of 2 and a dilation of 1:

      >>> figure = viz.convolution(nn.Conv(8, (3, 3), strides=2), jnp.ones((9, 9, 1)), tune=True)
    """
    for method in ("init", "fwd"):
        if not callable(getattr(model, method, None)) or isinstance(model, type):
            raise TypeError(
                f"viz.convolution: model must be a layer with init and fwd, got {_name(model)[:60]}"
            )
    shape, dtype = _example(x, channel_axis)
    stages, rest, reached, last = [], [], None, None
    first, _ = _split(shape, channel_axis)
    with jax.debug_nans(False):
        for layer in _layers(model):
            found = None if rest else _look(layer, shape, dtype, channel_axis)
            if found is None:
                rest.append(_name(layer))
                continue
            places, mixing, returned = found
            given, size = _split(shape, channel_axis)
            after, out = _split(returned, channel_axis)
            reached = _through(reached, places)
            last = Stage(
                _name(layer), given, after, (size, out), _spans(places, given), _spans(reached, first), _groups(mixing), places
            )  # fmt: skip
            if not _pointwise(places):
                stages.append(last)
            shape = returned
    if last is None:
        raise ValueError(
            f"viz.convolution: {rest[0]} returns no places: what goes in as (height, width, channels) must come out so"
        )
    stages = stages or [last]
    # What lies between the stages shown changes no place, so the shapes of places fit together.
    name = _name(model)
    window = _window(stages, x, channel_axis) if tune else None
    return Sight(name if len(name) <= 60 else type(model).__name__, stages, rest, window)


def _window(stages, x, channel_axis) -> Window:
    """The window of a model of one layer, and the numbers in which the reader moves it."""
    found = set()
    for axis in stages[0].places if len(stages) == 1 else ():
        seen = [np.flatnonzero(column) for column in axis.T]
        size, first = (len(seen[0]), seen[0][0]) if len(seen) and len(seen[0]) else (0, 0)
        dilation = int(seen[0][1] - first) if size > 1 else 1
        stride = int(seen[1][0] - first) if len(seen) > 1 and len(seen[1]) else 1
        fits = size > 0 and stride > 0 and np.array_equal(axis, _slid(len(axis), size, stride, dilation))
        found.add((size, stride, dilation) if fits else None)
    if len(found) != 1 or None in found or len(stages[0].places) < len(stages[0].given):
        raise ValueError(
            "viz.convolution: tune needs one layer without padding, whose window is the same along each axis, "
            f"such as nn.Conv(1, (3, 3)); got {', '.join(stage.name for stage in stages)[:100]}"
        )
    if isinstance(x, jax.ShapeDtypeStruct):
        raise ValueError("viz.convolution: tune needs the numbers of x, got a jax.ShapeDtypeStruct")
    x = np.asarray(x, np.float32)
    values = (x[0] if x.ndim == 4 else x).mean(axis=channel_axis)
    if values.size > MOST_TUNED or not np.isfinite(values).all():
        raise ValueError(
            f"viz.convolution: tune needs finite numbers at no more than {MOST_TUNED:,} places, got {values.size:,} places"
        )
    return Window(*found.pop(), values)


def _slid(length, size, stride, dilation):
    """The matrix ``(in, out)`` of what a window without padding sees."""
    first = np.arange(max((length - dilation * (size - 1) - 1) // stride + 1, 0)) * stride
    seen = np.zeros((length, len(first)), bool)
    for tap in range(size):
        seen[first + tap * dilation, np.arange(len(first))] = True
    return seen


def _example(x, channel_axis):
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if shape is None or dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError("viz.convolution: x must be an array of floats, or a jax.ShapeDtypeStruct")
    shape = shape[1:] if len(shape) == 4 else shape
    if len(shape) not in (2, 3) or not -len(shape) <= channel_axis < 0:
        wanted = "one example, (length, channels) or (height, width, channels)"
        raise ValueError(f"viz.convolution: x must be {wanted}, got the shape {tuple(x.shape)}")
    places = np.prod(_split(shape, channel_axis)[0])
    if not 0 < places <= MOST:
        raise ValueError(
            f"viz.convolution: x must have from 1 to {MOST:,} places, got {int(places):,}: show a smaller one"
        )
    return tuple(shape), dtype


def _layers(model):
    """The layers of a series, and of series in it; anything else is one layer."""
    from mlax_tutorial import nn

    if type(model) is nn.Series:
        return [layer for child in model.layers for layer in _layers(child)]
    return [model]


def _name(layer) -> str:
    text = " ".join(repr(layer).split())
    return text if len(text) <= 200 and " at 0x" not in text else type(layer).__name__


def _split(shape, channel_axis):
    """The shape without channels, and how many channels there are."""
    places = list(shape)
    size = places.pop(channel_axis)
    return tuple(places), size


def _look(layer, shape, dtype, channel_axis):
    """What each output sees: matrices of places, a matrix of channels, and the shape of the output. None without places."""
    key = jax.random.key(0)
    variables = layer.init(key, jax.ShapeDtypeStruct((1, *shape), dtype))
    base = np.sin(1.3 * np.arange(np.prod(shape)) + 0.5).reshape(shape).astype(np.float32)

    def call(batch):
        batch = jnp.asarray(batch, dtype)
        try:
            y, _ = layer.fwd(batch, *variables, inference_mode=True)
            fits = y.shape[:1] == batch.shape[:1]
        except (TypeError, ValueError):
            fits = False
        if not fits:  # a layer that takes no batch
            y = jax.vmap(lambda x: layer.fwd(x, *variables, inference_mode=True)[0])(batch)
        return np.asarray(y, np.float32)

    def notices(batch):
        """Where the outputs of a batch, in which NaN marks what is probed, differ from those of the numbers without."""
        usual, marked = call(base[None]), np.isnan(batch)
        if not np.isfinite(usual).all():
            raise ValueError(
                f"viz.convolution: {_name(layer)} returns NaN or infinity for ordinary numbers, so nothing can be told"
            )
        seen = False
        for value in (np.nan, np.inf, -np.inf):
            y = call(np.where(marked, np.float32(value), batch))
            with np.errstate(invalid="ignore"):
                seen |= ~(np.abs(y - usual) <= 1e-2 * (1 + np.abs(usual)))
        return seen

    channel = channel_axis % len(shape)
    spatial = [axis for axis in range(len(shape)) if axis != channel]
    probes = [(axis, i) for axis in (*spatial, channel) for i in range(shape[axis])]
    batch = np.repeat(base[None], len(probes), axis=0)
    for row, (axis, i) in enumerate(probes):
        batch[(row, *[slice(None)] * axis, i)] = np.nan
    seen = notices(batch)
    if seen.ndim != len(shape) + 1:
        return None
    returned = seen.shape[1:]
    if np.prod([returned[axis] for axis in spatial]) > MOST:
        raise ValueError(
            f"viz.convolution: {_name(layer)} returns more than {MOST:,} places: show a smaller x"
        )
    matrices, start = [], 0
    for axis in (*spatial, channel):
        others = tuple(other + 1 for other in range(len(shape)) if other != axis)
        matrices.append(seen[start : start + shape[axis]].any(axis=others))
        start += shape[axis]
    places, mixing = tuple(matrices[:-1]), matrices[-1]
    if len(spatial) == 2 and not _apart(notices, base, places, spatial, channel):
        places = (_all_places(notices, base, spatial, channel),)
    return places, mixing, returned


def _apart(notices, base, places, spatial, channel):
    """Whether an output sees a place if it sees its row and its column, tried at a few."""
    tried = [tuple(round(part * (base.shape[axis] - 1)) for part, axis in zip(parts, spatial))
             for parts in ((0, 0), (1, 0), (0.5, 0.5), (0.3, 0.7), (0.6, 0.4), (1, 1))]  # fmt: skip
    seen = _at(notices, base, tried, spatial, channel)
    return all(np.array_equal(got, np.outer(places[0][i], places[1][j])) for got, (i, j) in zip(seen, tried))


def _at(notices, base, tried, spatial, channel):
    batch = np.repeat(base[None], len(tried), axis=0)
    for row, place in enumerate(tried):
        index = [slice(None)] * base.ndim
        for axis, i in zip(spatial, place):
            index[axis] = i
        batch[(row, *index)] = np.nan
    return notices(batch).any(axis=channel + 1)


def _all_places(notices, base, spatial, channel):
    """A matrix over all places, where rows and columns do not go apart."""
    size = [base.shape[axis] for axis in spatial]
    everywhere = list(np.ndindex(*size))
    if len(everywhere) > MOST // 4:
        raise ValueError(
            f"viz.convolution: a layer that is no window needs at most {MOST // 4:,} places, got {len(everywhere):,}: show a smaller x"
        )
    seen = _at(notices, base, everywhere, spatial, channel)
    return seen.reshape(len(everywhere), -1)


def _pointwise(places):
    return all(
        matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(len(matrix), dtype=bool))
        for matrix in places
    )


def _through(before, places):
    """From the model's input to the output of the next layer."""
    if before is None:
        return places
    if len(before) != len(places):
        before, places = _whole(before), _whole(places)
    return tuple((one.astype(np.int64) @ two.astype(np.int64)) > 0 for one, two in zip(before, places))


def _whole(places):
    return (np.kron(*places),) if len(places) == 2 else places


def _spans(places, given) -> tuple[int, ...]:
    """From the first to the last that one output sees, at most, along each axis."""
    if len(places) < len(given):  # one matrix for all
        seen = places[0].reshape(*given, -1)
        places = (seen.any(axis=1), seen.any(axis=0))
    return tuple(
        max((int(np.ptp(np.flatnonzero(column))) + 1 for column in matrix.T if column.any()), default=0)
        for matrix in places
    )


def _groups(mixing) -> int | None:
    """Into how many equal blocks the channels fall apart."""
    inputs, outputs = mixing.shape
    for groups in range(np.gcd(inputs, outputs), 0, -1):
        block = np.ones((inputs // groups, outputs // groups), bool)
        if np.array_equal(mixing, np.kron(np.eye(groups, dtype=bool), block)):
            return int(groups)
    return None
