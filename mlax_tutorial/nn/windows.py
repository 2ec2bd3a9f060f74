"""What convolution and pooling share: windows that slide along some axes."""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import Canonical, show
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.rules import integer, integers

SAME = "SAME", "SAME_LOWER"
PADDINGS = "VALID", *SAME
CONTINUED = {"CIRCULAR": "wrap", "REFLECT": "reflect"}  # what jnp.pad calls them


def sizes(value) -> tuple[int, ...]:
    """The sizes of a window, one an axis."""
    if not isinstance(value, (tuple, list)):  # of 3, PyTorch's Conv2d makes (3, 3)
        ways = "such as (3, 3) for images or (3,) for sequences"
        raise ValueError(f"must be a tuple with a size for each axis, {ways}")
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


class Sliding(Layer):
    """Base of what slides a window over its input: strides and padding for each axis of the window."""

    def _resolve(self, window, *names):
        """Keep each of these hyperparameters as one value an axis, ``strides`` as ``_strides``, or as a word of padding."""
        for name in names:
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != len(window):
                wanted = f"for {len(window)} axes, as many as the window has"
                self.refuse(f"{name} must be {wanted}, got {show(value)}.")
            if isinstance(value, int):
                value = ((value, value) if name == "padding" else value,) * len(window)
            vars(self)[f"_{name}"] = value

    def _pads(self, lengths):
        """How many elements are put before and after each axis, for windows that span ``_wide``."""
        if self._padding in SAME:
            found = lax.padtype_to_pads(lengths, self._wide, self._strides, self._padding)
            plain = jax.tree.map(lambda size: size.item() if isinstance(size, np.generic) else size, found)
            return tuple(plain)  # in older JAX, they are NumPy's
        if self._padding in CONTINUED:
            return tuple(((span - 1) // 2, span // 2) for span in self._wide)
        if self._padding == "CAUSAL":
            return tuple((span - 1, 0) for span in self._wide)
        return ((0, 0),) * len(self._wide) if self._padding == "VALID" else self._padding

    def _check_room(self, x, lengths, pads):
        """Refuse an input into which not a single window fits."""
        for length, span, pad in zip(lengths, self._wide, pads):
            # In an export, a length may be symbolic.
            if isinstance(length, int) and (length + sum(pad) < span or not length):
                where = f"{describe(x)}, which is {lengths} along the axes of the window, with padding {pads}"
                self.refuse(f"a window that spans {self._wide} does not fit into {where}: use more padding.")


def extend(x, axis: int, pad, word):
    """Put elements round an axis: zeros, or what the word says."""
    before, after, length = *pad, x.shape[axis]
    if isinstance(length, int) or word not in CONTINUED:
        widths = [pad if place == axis % x.ndim else (0, 0) for place in range(x.ndim)]
        return jnp.pad(x, widths, CONTINUED.get(word, "constant"))
    places = jnp.arange(length + before + after) - before  # jnp.pad does not know symbolic lengths
    mirrored = length - 1 - jnp.abs(length - 1 - jnp.abs(places))
    return jnp.take(x, places % length if word == "CIRCULAR" else mirrored, axis)
