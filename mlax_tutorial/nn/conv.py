"""``Conv`` and its transpose: one kernel at every place, along any number of axes."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn import windows
from mlax_tutorial.nn.arrays import is_floating
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import hyperparameter, show
from mlax_tutorial.nn.linear import lecun_normal
from mlax_tutorial.nn.rules import Dtype, Initializer, Precision, Size
from mlax_tutorial.nn.windows import CONTINUED, SAME, EachAxis, Window, each_axis

WORDS = *windows.PADDINGS, *CONTINUED, "CAUSAL"


class _Convolution(windows.Sliding):
    """What :class:`Conv` and :class:`ConvTranspose` share: layouts, the kernel, checks."""

    out_channels: Size
    filter_shape: Window
    strides: EachAxis = 1
    padding: Any = hyperparameter(windows.padding, default="VALID")
    dilation: EachAxis = 1
    groups: Size = 1
    input_spec: str | None = None
    kernel_spec: str | None = None
    kernel_initializer: Initializer = lecun_normal
    precision: Precision | None = None
    accum_dtype: Dtype | None = None
    param_dtype: Dtype | None = None

    _each = "strides", "padding", "dilation"

    def __post_init__(self):
        super().__post_init__()
        self._resolve(self.filter_shape, *self._each)
        letters = "abcdefDHW"[-len(self.filter_shape) :]  # one for each axis of the window
        input_spec = self._spec("input_spec", letters + "C")
        kernel_spec = self._spec("kernel_spec", "O" + input_spec.replace("C", "I"))
        wide = tuple((size - 1) * step + 1 for size, step in zip(self.filter_shape, self._dilation))
        vars(self).update(_letters=letters, _specs=(input_spec, kernel_spec), _wide=wide)
        if self.out_channels % self.groups:
            self.refuse(f"groups must divide out_channels, {self.out_channels}, got {self.groups}.")

    def _spec(self, name, usual):
        """A layout, or the usual one: channels last, and the kernel's like the input's."""
        spec = getattr(self, name) or usual
        if not isinstance(spec, str) or sorted(spec) != sorted(usual):
            self.refuse(f"{name} must be made of the letters of {usual!r}, each once, got {show(spec)}.")
        return spec

    def init(self, key, x):
        self.check_init_key(key)
        _, shape, order = self._look(x)
        kernel = self.initialize("kernel_initializer", key, shape, self.param_dtype or x.dtype)
        return {"kernel": kernel.transpose(order)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x, pads = self._pad(x, self._check(x, trainables))
        return _convolve(self, pads, x, trainables["kernel"]), non_trainables

    def _check(self, x, trainables):
        """The lengths of the axes along which the window moves, if the kernel fits."""
        lengths, shape, order = self._look(x)
        self.check_variables(trainables, {"kernel": tuple(shape[axis] for axis in order)}, x=x)
        return lengths

    def _look(self, x):
        """The lengths along the window's axes, the shape that initializers see, and the order of ``kernel_spec`` in it."""
        input_spec, kernel_spec = self._specs
        self.check_floating(x, minimum_ndim=len(input_spec))
        sizes = dict(zip(input_spec, x.shape[-len(input_spec) :]))
        if sizes["C"] % self.groups:
            self.refuse(f"groups={self.groups} must divide the channels, {sizes['C']} in {describe(x)}.")
        # Initializers look for (..., in, out): all axes but the last are what flows into a unit.
        shape = (*self.filter_shape, sizes["C"] // self.groups, self.out_channels)
        order = tuple(map((self._letters + "IO").index, kernel_spec))
        return tuple(sizes[letter] for letter in self._letters), shape, order


class Conv(_Convolution):
    r"""Convolve along any axes: ``(..., height, width, in) -> (..., height', width', out)``.

    .. math:: y_{p, o} = \sum_{k, i} x_{s p + d k - b,\, i} \; W_{o, k, i}

    with strides :math:`s`, dilation :math:`d` and :math:`b` elements of padding before. (That is
    what all libraries call a convolution; strictly it is a correlation, since the kernel is not
    flipped.) As many axes are convolved as ``filter_shape`` has numbers. Add a :class:`Bias`
    for the rest, ``Bias((-1, 1, 1))`` for channel-first images.

    Along an axis of length :math:`n` the output has
    :math:`\lfloor (n + b + a - d (k - 1) - 1) / s \rfloor + 1` elements, where :math:`a` is the
    padding after, and :math:`k` the size of the filter.

    Args:
      out_channels: the number of channels of the output.
      filter_shape: the size of the window along each axis, a tuple: ``(3, 3)`` for images, ``(3,)`` for sequences.
      strides: how far the window moves each time; one number, or one an axis.
      padding: with zeros: ``"VALID"``, none; ``"SAME"``, so many that with strides of 1 the size
        remains, the odd one after (``"SAME_LOWER"``: before); a number for all sides; or a number
        or a pair ``(before, after)`` an axis. Not with zeros: ``"CIRCULAR"``, as if the axis started
        again at its end, and ``"REFLECT"``, as if it were mirrored at its ends, both as many
        elements as ``"SAME"`` with strides of 1. ``"CAUSAL"``, for sequences: with zeros before the
        first element only, so that no output depends on later inputs; with strides of 1 it decodes.
      dilation: distance between the elements of the input that the window sees; one number, or one
        an axis.
      groups: cuts the channels of input and output into so many groups, each convolved by itself;
        as many as the input has channels is a depthwise convolution.
      input_spec: the layout of the last axes of input and output, for images ``"HWC"``, channels
        last, by default; ``"CHW"`` is channels first.
      kernel_spec: the layout of the kernel, by default like the input's: ``"OHWI"`` (output
        channels, height, width, input channels) for ``"HWC"``, and ``"OIHW"``, as in PyTorch, for
        ``"CHW"``. Another is ``"HWIO"``. Sequences have the letter W alone, volumes D, H and W.
      kernel_initializer: ``(key, shape, dtype) -> array``, as in ``jax.nn.initializers``. The shape
        is ``(*filter_shape, in // groups, out)`` in any layout, so that initializers find what
        flows in where they look for it: by default the variance is
        ``1 / (in // groups * prod(filter_shape))`` (LeCun et al. 1998).
      precision: of the products, see ``jax.lax.Precision``; ``None`` is the device's default.
      accum_dtype: in which products are computed and summed; ``None`` leaves it to XLA, which sums
        products of half precision in float32.
      param_dtype: of the kernel; by default the input's. ``fwd`` converts the kernel to the input's
        dtype.

    Raises:
      LayerError: if ``x`` is not floating, has too few axes, or too few elements for the window, or
        the kernel does not fit it.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.Conv(8, (3, 3), strides=2, padding="SAME"), jnp.ones((5, 28, 28, 1))
      >>> trainables, non_trainables = layer.init(jax.random.key(0), x)
      >>> y, _ = layer.fwd(x, trainables, non_trainables)
      >>> trainables["kernel"].shape, y.shape
      ((8, 3, 3, 1), (5, 14, 14, 8))

    Reference: LeCun, Bottou, Bengio and Haffner, *Gradient-based learning applied to document
    recognition* (1998); Dumoulin and Visin, *A guide to convolution arithmetic for deep learning*
    (2016).
    """

    padding: Any = hyperparameter(functools.partial(windows.padding, words=WORDS), default="VALID")

    def __post_init__(self):
        super().__post_init__()
        if self.padding == "CAUSAL" and len(self.filter_shape) > 1:
            window = f"a window of one axis, got {self.filter_shape}"
            self.refuse(f"padding='CAUSAL' is for sequences, {window}: give pairs (before, after) instead.")

    @property
    def decodes(self):
        if set(self._strides) != {1} or self._specs[0][-1] != "C":
            return False
        return self.padding == "CAUSAL" or (self.padding in WORDS and set(self.filter_shape) == {1})

    def build_cache(self, x, length):
        """The inputs that the next step's window sees besides: ``(..., (k - 1) d, in)``."""
        if self.padding != "CAUSAL":
            return ()
        return jnp.zeros(self._cache_shape(x), x.dtype)

    def _cache_shape(self, x):
        return *x.shape[:-2], self._wide[0] - 1, x.shape[-1]

    def decode(self, x, trainables, non_trainables, cache):
        if self.padding != "CAUSAL":
            return super().decode(x, trainables, non_trainables, cache)
        self._check(x, trainables)
        if not is_floating(cache) or cache.shape != self._cache_shape(x):
            mend = "pass what init_cache made for this batch, or the last decode returned"
            self.expects("cache", f"floating-point numbers of shape {self._cache_shape(x)}", cache, mend)
        x = jnp.concatenate([cache, x], axis=-2)
        y = _convolve(self, ((0, 0),), x, trainables["kernel"])
        return y, x[..., x.shape[-2] - cache.shape[-2] :, :]

    def _pad(self, x, lengths):
        """``x``, and the zeros that the convolution is to put round it: the rest is there already."""
        pads, spec = self._pads(lengths), self._specs[0]
        symbolic = not all(isinstance(length, int) for length in lengths)  # in an export
        if self.padding in CONTINUED or symbolic:
            for letter, pad in zip(self._letters, pads):
                x = windows.extend(x, spec.index(letter) - len(spec), pad, self.padding)
            lengths, pads = self._look(x)[0], ((0, 0),) * len(pads)
        self._check_room(x, lengths, pads)
        return x, pads


class ConvTranspose(_Convolution):
    r"""The transpose of a convolution: ``(..., height, width, in) -> (..., height', width', out)``.

    What the gradient of a :class:`Conv` with the same window, strides, padding and dilation does:
    each element of the input puts a copy of the kernel into the output, weighted by itself. It
    turns the sizes of such a ``Conv`` back, so it enlarges where that one shrinks. Along an axis of
    length :math:`n` the output has :math:`(n - 1) s + d (k - 1) + 1 - b - a` elements, plus
    ``output_padding``; with ``"SAME"`` it has :math:`n s`. (So in PyTorch.
    ``jax.lax.conv_transpose`` differs where the stride is longer than the window.)

    Args:
      out_channels: the number of channels of the output.
      filter_shape: the size of the window along each axis, a tuple: ``(3, 3)`` for images, ``(3,)`` for sequences.
      strides: how far the copies lie apart; one number, or one an axis.
      padding: what the ``Conv`` would put round its input, and is cut off here: ``"VALID"``,
        ``"SAME"``, ``"SAME_LOWER"``, a number for all sides, or a number or a pair
        ``(before, after)`` an axis.
      dilation: distance between the elements of a copy; one number, or one an axis.
      groups: cuts the channels of input and output into so many groups, each by itself.
      input_spec: the layout of the last axes of input and output, as for :class:`Conv`.
      kernel_spec: the layout of the kernel, as for :class:`Conv`: ``O`` are the channels of this
        layer's output. (PyTorch's is ``"IOHW"``, if there is one group.)
      kernel_initializer, precision, accum_dtype, param_dtype: as for :class:`Conv`.
      output_padding: elements more at the end of each axis, less than the stride: several sizes
        lead to the same size under a ``Conv`` with strides, and this says which of them comes back.
        Not with ``"SAME"``.

    Raises:
      LayerError: if ``x`` is not floating, has too few axes, or nothing would be left of it, or the
        kernel does not fit it.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer = nn.ConvTranspose(1, (3, 3), strides=2, padding="SAME")
      >>> x = jnp.ones((5, 14, 14, 8))
      >>> trainables, non_trainables = layer.init(jax.random.key(0), x)
      >>> layer.fwd(x, trainables, non_trainables)[0].shape
      (5, 28, 28, 1)

    Reference: Dumoulin and Visin, *A guide to convolution arithmetic for deep learning* (2016),
    chapter 4.
    """

    output_padding: int | tuple[int, ...] = hyperparameter(functools.partial(each_axis, minimum=0), default=0)

    _each = *_Convolution._each, "output_padding"

    def __post_init__(self):
        super().__post_init__()
        got = f"got {show(self.output_padding)}"
        if any(more and more >= stride for more, stride in zip(self._output_padding, self._strides)):
            self.refuse(f"output_padding must be less than strides, {self.strides}, {got}.")
        if any(self._output_padding) and self.padding in SAME:
            self.refuse(f"output_padding is settled by padding={self.padding!r}, {got}: leave it out.")

    def _pad(self, x, lengths):
        """``x``, and the zeros that lead to the size of which a ``Conv`` would make that of ``x``."""
        strides, wide, more = self._strides, self._wide, self._output_padding
        if self.padding in SAME:  # if a Conv would skip some, they come back
            more = tuple(max(stride - span, 0) for stride, span in zip(strides, wide))
        # What a Conv would be given for an input that is so many times longer is cut off here.
        cut = self._pads(tuple(length * stride for length, stride in zip(lengths, strides)))
        pads = tuple((span - 1 - b, span - 1 - a + extra) for span, (b, a), extra in zip(wide, cut, more))
        sizes = zip(lengths, strides, wide, pads)
        got = tuple((length - 1) * stride + 2 + sum(pad) - span for length, stride, span, pad in sizes)
        if min(got) < 1 or min(lengths) < 1:
            self.refuse(f"of {describe(x)} nothing is left, {got} along the window's axes: use less padding.")
        return x, pads


# As in linear.py: a function of its own, which JAX traces once for all layers alike.
@functools.partial(jax.jit, static_argnums=(0, 1), inline=True)
def _convolve(layer, pads, x, kernel):
    transposed, count = isinstance(layer, ConvTranspose), len(layer.filter_shape)
    input_spec, kernel_spec = layer._specs
    x_axes = tuple(map(f"N{input_spec}".index, f"NC{layer._letters}"))
    kernel_axes = tuple(map(kernel_spec.index, f"OI{layer._letters}"))
    batch, rest = x.shape[: x.ndim - count - 1], x.shape[x.ndim - count - 1 :]
    # To convert first loses nothing: in float32, the product of two halves is exact.
    dtype = layer.accum_dtype or x.dtype
    kernel = kernel.astype(x.dtype).astype(dtype)
    y = lax.conv_general_dilated(
        x.astype(dtype).reshape(math.prod(batch), *rest),
        lax.rev(kernel, kernel_axes[2:]) if transposed else kernel,
        window_strides=(1,) * count if transposed else layer._strides,
        padding=pads,
        lhs_dilation=layer._strides if transposed else None,
        rhs_dilation=layer._dilation,
        dimension_numbers=lax.ConvDimensionNumbers(x_axes, kernel_axes, x_axes),
        feature_group_count=layer.groups,
        precision=layer.precision,
    )
    return y.astype(x.dtype).reshape(*batch, *y.shape[1:])
