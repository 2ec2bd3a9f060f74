"""What convolution and pooling share: windows that slide along some axes."""

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import Canonical, canonicalize_fields, show
from mlax_tutorial.nn.kinds import integer, integers
from mlax_tutorial.nn.layer import Layer

SAME = "SAME", "SAME_LOWER"
PADDINGS = "VALID", *SAME
CONTINUED = {"CIRCULAR": "wrap", "REFLECT": "reflect"}  # what jnp.pad calls them


def sizes(value) -> tuple[int, ...]:
    """The sizes of a window, one an axis."""
    if not isinstance(value, (tuple, list)):  # of 3, PyTorch's Conv2d makes (3, 3)
        raise ValueError(
            "must be a tuple with a size for each axis, such as (3, 3) for images or (3,) for sequences"
        )
    if not value:
        raise ValueError("must name at least one axis")
    return integers(value)


def each_axis(value, minimum: int = 1) -> int | tuple[int, ...]:
    """One integer, or a tuple of them, one an axis."""
    return (integers if isinstance(value, (tuple, list)) else integer)(value, minimum)


def padding(value, words=PADDINGS) -> str | int | tuple[tuple[int, int], ...]:
    """A word, one number for all sides, or a pair of numbers an axis."""
    if isinstance(value, str) and value.upper() in words:
        return value.upper()
    try:
        if not isinstance(value, (tuple, list)):
            return integer(value, minimum=0)
        pairs = [item if isinstance(item, (tuple, list)) else (item, item) for item in value]
        return tuple((integer(before, 0), integer(after, 0)) for before, after in pairs)
    except ValueError:
        ways = "an integer of at least 0, or one such or a pair (before, after) for each axis"
        raise ValueError(f"must be {', '.join(map(repr, words))}, {ways}") from None


Window = Annotated[tuple[int, ...], Canonical(sizes)]
EachAxis = Annotated[int | tuple[int, ...], Canonical(each_axis)]


def settle(layer: Layer, count: int, *names: str) -> None:
    """Refuse fields not of ``count`` axes; write those that say the same for all in one way."""
    for name in names:
        value = getattr(layer, name)
        if not isinstance(value, tuple):
            continue
        if len(value) != count:
            layer.refuse(f"{name} must be for {count} axes, as many as the window has, got {show(value)}.")
        numbers = {number for item in value for number in each(item, 1)}
        if len(numbers) == 1:
            vars(layer)[name] = numbers.pop()
    if layer.padding == 0:
        vars(layer)["padding"] = "VALID"
    canonicalize_fields(layer)  # their values count


def each(value, count: int) -> tuple[Any, ...]:
    """One value an axis, from the canonical form."""
    return value if isinstance(value, tuple) else (value,) * count


def spans(window, dilation=1) -> tuple[int, ...]:
    """How many elements lie between the first and the last of a window, both included."""
    return tuple((size - 1) * step + 1 for size, step in zip(window, each(dilation, len(window))))


def pads(padding, lengths, window, strides, dilation=1) -> tuple[tuple[int, int], ...]:
    """How many elements are put before and after each axis."""
    count, wide = len(window), spans(window, dilation)
    if padding in SAME:
        found = lax.padtype_to_pads(lengths, wide, each(strides, count), padding)
        return tuple((_dimension(before), _dimension(after)) for before, after in found)
    if padding in CONTINUED:
        return tuple(((span - 1) // 2, span // 2) for span in wide)
    if padding == "CAUSAL":
        return tuple((span - 1, 0) for span in wide)
    if isinstance(padding, tuple):
        return padding
    return ((0 if padding == "VALID" else padding,) * 2,) * count


def extend(x, axis: int, rim, word):
    """Put elements round an axis: zeros, or what the word says."""
    before, after, length = *rim, x.shape[axis]
    if isinstance(length, int) or word not in CONTINUED:
        widths = [rim if place == axis % x.ndim else (0, 0) for place in range(x.ndim)]
        return jnp.pad(x, widths, CONTINUED.get(word, "constant"))
    places = jnp.arange(length + before + after) - before  # jnp.pad does not know symbolic lengths
    mirrored = length - 1 - jnp.abs(length - 1 - jnp.abs(places))
    return jnp.take(x, places % length if word == "CIRCULAR" else mirrored, axis)


def check_room(layer: Layer, x, lengths, window, padding, dilation=1) -> None:
    """Refuse an input into which not a single window fits."""
    for length, span, (before, after) in zip(lengths, spans(window, dilation), padding):
        known = isinstance(length, int)  # or symbolic, in an export
        if known and (length + before + after < span or not length):
            where = f"{describe(x)}, which is {tuple(lengths)} along the axes of the window, with padding {padding}"
            wide = spans(window, dilation)
            layer.refuse(f"a window that spans {wide} does not fit into {where}: use more padding.")


def _dimension(size):
    # NumPy's, in older JAX; it may be symbolic, too.
    return int(size) if isinstance(size, np.integer) else size
