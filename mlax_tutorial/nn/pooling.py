"""``MaxPool``, ``AvgPool`` and ``SumPool``: one number for each window; and ``Upsample``, the other way."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.nn.arrays import accumulator
from mlax_tutorial.nn.hyperparameters import hyperparameter, optional, show
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.rules import Dtype, Switch, axes_from_the_end, choice
from mlax_tutorial.nn.windows import SAME, EachAxis, Sliding, Window, padding


def _ascending(value):
    """Negative integers, in the order in which the numbers of the window are."""
    axes = axes_from_the_end(value)
    if isinstance(value, (tuple, list)) and tuple(value) != axes:
        raise ValueError("must be in ascending order, which is that of the window")
    return axes


class _Pool(Sliding):
    """What the three share: which windows there are."""

    window_shape: Window
    strides: EachAxis | None = None
    padding: Any = hyperparameter(padding, default="VALID")
    axes: tuple[int, ...] | None = hyperparameter(optional(_ascending), default=None)

    def __post_init__(self):
        super().__post_init__()
        window = self.window_shape
        self._resolve(window, "strides", "padding")
        axes = self.axes or tuple(range(-len(window) - 1, -1))
        vars(self).update(_axes=axes, _strides=self._strides or window, _wide=window)
        if len(axes) != len(window):
            self.refuse(f"axes must be {len(window)}, as many as the window has, got {show(axes)}.")
        if self._padding not in SAME and any(max(pad) >= size for pad, size in zip(self._pads(()), window)):
            why = f"the window, {window}, or a window would hold nothing else"
            self.refuse(f"padding must be less than {why}, got {show(self.padding)}.")

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x = self.check_floating(x, minimum_ndim=-self._axes[0])
        lengths = tuple(x.shape[axis] for axis in self._axes)
        pads = self._pads(lengths)
        self._check_room(x, lengths, pads)
        moved = dict(zip(self._axes, zip(self.window_shape, self._strides, pads)))
        # As jax.lax.reduce_window wants them, sizes, strides and padding for every axis of the input.
        windows = tuple(zip(*[moved.get(axis, (1, 1, (0, 0))) for axis in range(-x.ndim, 0)]))
        return _pool(self, windows, x), non_trainables

    decodes = property(lambda self: -2 not in self._axes)


class MaxPool(_Pool):
    """Take the largest element of each window: ``(..., h, w, channels) -> (..., h', w', channels)``.

    As many axes are pooled as ``window_shape`` has numbers; by default those before the last one,
    the channels. Where several elements are the largest, the gradient flows to the first of them.

    Args:
      window_shape: the size of the window along each axis, a tuple: ``(2, 2)`` for images, ``(2,)`` for sequences.
      strides: how far the window moves each time; by default its own size, so that windows do not
        overlap.
      padding: with minus infinity, which is never the largest: ``"VALID"``, ``"SAME"``,
        ``"SAME_LOWER"``, a number for all sides, or a number or a pair ``(before, after)`` an axis;
        as for :class:`Conv`.
      axes: which axes are pooled, counted from the end and in ascending order: ``(-2, -1)`` are
        those of channel-first images.

    Raises:
      LayerError: if ``x`` is not floating, has too few axes, or too few elements for the window.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> x = jnp.arange(16.0).reshape(4, 4, 1)
      >>> nn.MaxPool((2, 2)).fwd(x, (), ())[0][..., 0]
      Array([[ 5.,  7.],
             [13., 15.]], dtype=float32)

    Reference: Boureau, Ponce and LeCun, *A Theoretical Analysis of Feature Pooling in Visual
    Recognition* (2010), which compares maxima with averages.
    """

    def _reduce(self, x, windows):
        return lax.reduce_window(x, np.asarray(-np.inf, x.dtype), lax.max, *windows)


class SumPool(_Pool):
    """Add up each window: ``(..., h, w, channels) -> (..., h', w', channels)``.

    Args:
      window_shape, strides, axes: as for :class:`MaxPool`.
      padding: with zeros, otherwise as for :class:`MaxPool`.
      accum_dtype: in which the sums are taken; ``None`` is float32 for half precision, otherwise
        the input's.

    Raises:
      LayerError: if ``x`` is not floating, has too few axes, or too few elements for the window.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> nn.SumPool((2,), strides=1).fwd(jnp.array([[1.0], [2.0], [4.0]]), (), ())[0]
      Array([[3.],
             [6.]], dtype=float32)
    """

    accum_dtype: Dtype | None = None

    def _reduce(self, x, windows):
        return _sums(x, self.accum_dtype or accumulator(x.dtype), windows).astype(x.dtype)


class AvgPool(_Pool):
    """Average each window: ``(..., h, w, channels) -> (..., h', w', channels)``.

    Args:
      window_shape, strides, axes: as for :class:`MaxPool`.
      padding: with zeros, otherwise as for :class:`MaxPool`.
      count_include_pad: whether padding counts: either each sum is divided by the size of the
        window, or by how many elements of the input are in it.
      accum_dtype: in which the averages are taken; ``None`` is float32 for half precision,
        otherwise the input's.

    Raises:
      LayerError: if ``x`` is not floating, has too few axes, or too few elements for the window.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> x = jnp.array([[2.0], [4.0], [6.0]])
      >>> nn.AvgPool((2,), padding="SAME").fwd(x, (), ())[0]
      Array([[3.],
             [3.]], dtype=float32)
      >>> nn.AvgPool((2,), padding="SAME", count_include_pad=False).fwd(x, (), ())[0]
      Array([[3.],
             [6.]], dtype=float32)
    """

    count_include_pad: Switch = True
    accum_dtype: Dtype | None = None

    def _reduce(self, x, windows):
        dtype = self.accum_dtype or accumulator(x.dtype)
        sums, count = _sums(x, dtype, windows), jnp.asarray(math.prod(self.window_shape), dtype)
        if not self.count_include_pad:
            sizes = [size if window > 1 else 1 for size, window in zip(x.shape, windows[0])]
            count = _sums(jnp.ones(sizes, dtype), dtype, windows)  # a constant of the program
        return (sums / jnp.broadcast_to(count, sums.shape)).astype(x.dtype)


class Upsample(Layer):
    """Make images, or the like, larger by whole factors: ``(..., h, w, channels) -> (..., f * h, g * w, channels)``.

    Args:
      factors: how many times longer each axis before the channels becomes, a tuple: ``(2, 2)`` for images.
      method: ``"nearest"`` repeats each element; ``"linear"`` and ``"cubic"`` interpolate, as ``jax.image.resize`` does, in
        float32 for half precision.

    Raises:
      LayerError: if ``x`` is not floating or has too few axes.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> nn.Upsample((2,)).fwd(jnp.array([[1.0], [2.0]]), (), ())[0][:, 0]
      Array([1., 1., 2., 2.], dtype=float32)

    Reference: Odena, Dumoulin and Olah, *Deconvolution and Checkerboard Artifacts* (2016), for why before a convolution.
    """

    factors: Window
    method: str = hyperparameter(choice("nearest", "linear", "cubic"), default="nearest")

    def check_input(self, x):
        return self.check_floating(x, minimum_ndim=len(self.factors) + 1)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x = self.check_input(x)
        axes = range(x.ndim - 1 - len(self.factors), x.ndim - 1)
        longer = dict(zip(axes, self.factors))
        if self.method == "nearest":
            for axis, factor in longer.items():
                x = jnp.repeat(x, factor, axis)
            return x, non_trainables
        shape = tuple(size * longer.get(axis, 1) for axis, size in enumerate(x.shape))
        wide = x.astype(accumulator(x.dtype))
        # jax.image.resize, but for numbers that are float64 under jax_enable_x64, whatever the dtype of x.
        scale = jnp.asarray(self.factors, wide.dtype)
        y = jax.image.scale_and_translate(wide, shape, axes, scale, jnp.zeros_like(scale), self.method)
        return y.astype(x.dtype), non_trainables


# As in linear.py: a function of its own, which JAX traces and differentiates once for all layers
# alike.
@functools.partial(jax.jit, static_argnums=(0, 1), inline=True)
def _pool(layer, windows, x):
    return layer._reduce(x, windows)


def _sums(x, dtype, windows):
    # NumPy's zero: JAX knows a sum, and its gradient, by a number that it can look at.
    return lax.reduce_window(x.astype(dtype), np.zeros((), dtype), lax.add, *windows)
