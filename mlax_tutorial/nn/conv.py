"""``Conv`` and its transpose: one kernel at every place, along any number of axes."""

import functools
import math
import string
from typing import Any

import jax
from jax import lax

from mlax_tutorial.nn import windows
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import hyperparameter, show
from mlax_tutorial.nn.kinds import Dtype, Initializer, Precision, Size
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.linear import lecun_normal
from mlax_tutorial.nn.windows import CONTINUED, SAME, EachAxis, Window, each, each_axis, pads

WORDS = *windows.PADDINGS, *CONTINUED, "CAUSAL"


class _Convolution(Layer):
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

    def __post_init__(self):
        super().__post_init__()
        input_spec = self._settle_spec("input_spec", self._letters + "C")
        kernel_spec = self._settle_spec("kernel_spec", "O" + input_spec.replace("C", "I"))
        vars(self)["_specs"] = input_spec, kernel_spec
        windows.settle(self, len(self.filter_shape), "strides", "padding", "dilation")
        if self.out_channels % self.groups:
            self.refuse(f"groups must divide out_channels, {self.out_channels}, got {self.groups}.")

    def _settle_spec(self, name, usual):
        """A layout, or the usual one: channels last, and the kernel's like the input's; that is written in one way, ``None``."""
        spec = getattr(self, name)
        if spec is not None and (not isinstance(spec, str) or sorted(spec) != sorted(usual)):
            self.refuse(f"{name} must be made of the letters of {usual!r}, each once, got {show(spec)}.")
        vars(self)[name] = None if spec == usual else spec
        return spec or usual

    @property
    def _letters(self):
        """A letter for each axis of the window, in the order of ``filter_shape``."""
        count = len(self.filter_shape)
        return "DHW"[3 - count :] if count <= 3 else string.ascii_lowercase[:count]

    def init(self, key, x):
        self.check_init_key(key)
        channels, _ = self._look(x)
        # Initializers look for (..., in, out): all axes but the last are what flows into a unit.
        shape = (*self.filter_shape, channels // self.groups, self.out_channels)
        kernel = self.initialize("kernel_initializer", key, shape, self.param_dtype or x.dtype)
        order = self._letters + "IO"
        return {"kernel": kernel.transpose([order.index(letter) for letter in self._specs[1]])}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        channels, lengths = self._look(x)
        sizes = dict(zip(self._letters, self.filter_shape), O=self.out_channels, I=channels // self.groups)
        self.check_variables(trainables, {"kernel": tuple(sizes[letter] for letter in self._specs[1])}, x=x)
        return self._apply(x, trainables["kernel"], lengths), non_trainables

    def _look(self, x):
        """The number of channels, and the lengths of the axes along which the window moves."""
        spec = self._specs[0]
        self.check_floating(x, minimum_ndim=len(spec))
        shape = dict(zip(spec, x.shape[-len(spec) :]))
        if shape["C"] % self.groups:
            self.refuse(f"groups={self.groups} must divide the channels, {shape['C']} in {describe(x)}.")
        return shape["C"], tuple(shape[letter] for letter in self._letters)


class Conv(_Convolution):
    r"""Convolve along any axes: ``(..., height, width, in) -> (..., height', width', out)``.

    .. math:: y_{p, o} = \sum_{k, i} x_{s p + d k - b,\, i} \; W_{o, k, i}

    with strides :math:`s`, dilation :math:`d` and :math:`b` elements of padding before. (That is
    what all libraries call a convolution; strictly it is a correlation, since the kernel is not
    turned round.) As many axes are convolved as ``filter_shape`` has numbers. Add a :class:`Bias`
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
        or a pair ``(before, after)`` an axis. Not with zeros: ``"CIRCULAR"``, as if the axis began
        anew at its end, and ``"REFLECT"``, as if it were mirrored at its ends, both as many
        elements as ``"SAME"`` with strides of 1. ``"CAUSAL"``, for sequences: with zeros before the
        first element only, so that no output depends on later inputs.
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
        plain = self.strides == 1 and self.padding in WORDS and self.input_spec is None
        return plain and set(self.filter_shape) == {1}

    def _apply(self, x, kernel, lengths):
        rims = pads(self.padding, lengths, self.filter_shape, self.strides, self.dilation)
        symbolic = not all(isinstance(length, int) for length in lengths)  # in an export
        if self.padding in CONTINUED or symbolic:
            spec = self._specs[0]
            for letter, rim in zip(self._letters, rims):
                x = windows.extend(x, spec.index(letter) - len(spec), rim, self.padding)
            rims, lengths = ((0, 0),) * len(rims), self._look(x)[1]
        windows.check_room(self, x, lengths, self.filter_shape, rims, self.dilation)
        return _convolve(self, rims, x, kernel)


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

    def __post_init__(self):
        super().__post_init__()
        count = len(self.filter_shape)
        windows.settle(self, count, "output_padding")
        extra, strides = self.output_padding, each(self.strides, count)
        if any(more and more >= stride for more, stride in zip(each(extra, count), strides)):
            self.refuse(f"output_padding must be less than strides, {self.strides}, got {show(extra)}.")
        if extra and self.padding in SAME:
            self.refuse(f"output_padding is settled by padding={self.padding!r}, got {extra}: leave it out.")

    def _apply(self, x, kernel, lengths):
        count, wide = len(lengths), windows.spans(self.filter_shape, self.dilation)
        strides, more = each(self.strides, count), each(self.output_padding, count)
        if self.padding in SAME:  # if a Conv would skip some, they come back
            more = tuple(max(stride - span, 0) for stride, span in zip(strides, wide))
        # What a Conv would be given for an input that is so many times longer is cut off here.
        longer = tuple(length * stride for length, stride in zip(lengths, strides))
        cut = pads(self.padding, longer, self.filter_shape, self.strides, self.dilation)
        ends = zip(wide, cut, more)
        rims = tuple((span - 1 - left, span - 1 - right + extra) for span, (left, right), extra in ends)
        sizes = zip(lengths, strides, wide, rims)
        got = tuple((length - 1) * stride + 2 + sum(rim) - span for length, stride, span, rim in sizes)
        if min(got) < 1 or min(lengths) < 1:
            self.refuse(f"of {describe(x)} nothing is left, {got} along the window's axes: use less padding.")
        return _convolve(self, rims, x, kernel)


# As in linear.py: a function of its own, which JAX traces once for all layers alike.
@functools.partial(jax.jit, static_argnums=(0, 1), inline=True)
def _convolve(layer, padding, x, kernel):
    transposed, count = isinstance(layer, ConvTranspose), len(layer.filter_shape)
    batch, rest = x.shape[: x.ndim - count - 1], x.shape[x.ndim - count - 1 :]
    # To convert first loses nothing: in float32, the product of two halves is exact.
    dtype = layer.accum_dtype or x.dtype
    kernel = kernel.astype(x.dtype).astype(dtype)
    specs = zip(("N" + layer._specs[0], layer._specs[1]), ("NC" + layer._letters, "OI" + layer._letters))
    x_axes, kernel_axes = (tuple(map(spec.index, letters)) for spec, letters in specs)
    strides = each(layer.strides, count)
    if transposed:
        kernel = lax.rev(kernel, kernel_axes[2:])
    y = lax.conv_general_dilated(
        x.astype(dtype).reshape(math.prod(batch), *rest),
        kernel,
        window_strides=(1,) * count if transposed else strides,
        padding=padding,
        lhs_dilation=strides if transposed else None,
        rhs_dilation=each(layer.dilation, count),
        dimension_numbers=lax.ConvDimensionNumbers(x_axes, kernel_axes, x_axes),
        feature_group_count=layer.groups,
        precision=layer.precision,
    )
    return y.astype(x.dtype).reshape(*batch, *y.shape[1:])
