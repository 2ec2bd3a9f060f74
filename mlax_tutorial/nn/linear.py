"""``Linear`` and ``Bias``, the two halves of the affine map, and ``Scale``, the bias that multiplies."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.arrays import accumulator
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.rules import Dtype, Initializer, Precision, Size, Switch, TrailingSizes


@functools.partial(jax.jit, static_argnums=(1, 2), inline=True)
def lecun_normal(key, shape, dtype):
    """Draw from a truncated normal distribution with variance ``1 / fan_in``. (A named function, unlike what
    ``jax.nn.initializers.lecun_normal()`` returns, so that models pickle.)"""
    if 0 in shape:  # older JAX would divide by it
        return jnp.zeros(shape, dtype)
    return jax.nn.initializers.lecun_normal()(key, shape, dtype)


class Linear(Layer):
    r"""Multiply by a kernel: ``(..., in) -> (..., out)``, :math:`y = x W`. Add a :class:`Bias` for the rest.

    The kernel has shape ``(in, out)``; ``in`` is read off the input of ``init``. The default initializer
    draws with variance ``1 / in``, which keeps the variance of what passes through (LeCun et al. 1998).

    Args:
      out_features: size of the last axis of the output.
      kernel_initializer: ``(key, shape, dtype) -> array``, as in ``jax.nn.initializers``. The shape is ``(in, out)``
        in either case, so that initializers find ``in`` and ``out`` where they look for them. The dtype is float32 at least:
        weights of half precision are drawn in float32, and rounded once, in every layer.
      transposed_kernel: store the kernel as ``(out, in)``, as PyTorch does: :math:`y = x W^T`. The same key gives the
        transpose of the same numbers. Use it to take over such weights; the plain one is at least as fast.
      precision: of the product, see ``jax.lax.Precision``; ``None`` is the device's default.
      accum_dtype: dtype of the product before it is rounded to the input's. ``None`` leaves it to XLA, which
        sums products of half precision in float32 on a CPU, a GPU and a TPU alike.
      param_dtype: of the kernel; by default the input's. ``fwd`` converts the kernel to the input's dtype.

    Raises:
      LayerError: if ``x`` is not floating or has no axis, or the kernel does not fit it.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.Linear(3), jnp.ones((2, 4))
      >>> trainables, non_trainables = layer.init(jax.random.key(0), x)
      >>> y, _ = layer.fwd(x, trainables, non_trainables)
      >>> trainables["kernel"].shape, y.shape
      ((4, 3), (2, 3))

    Reference: LeCun, Bottou, Orr and Müller, *Efficient BackProp* (1998), section 4.6.
    """

    out_features: Size
    kernel_initializer: Initializer = lecun_normal
    transposed_kernel: Switch = False
    precision: Precision | None = None
    accum_dtype: Dtype | None = None
    param_dtype: Dtype | None = None
    decodes = True

    def init(self, key, x):
        self.check_init_key(key)
        x = self.check_floating(x, minimum_ndim=1)
        shape = x.shape[-1], self.out_features
        kernel = self.initialize("kernel_initializer", key, shape, self.param_dtype or x.dtype)
        return {"kernel": kernel.T if self.transposed_kernel else kernel}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x = self.check_floating(x, minimum_ndim=1)
        shape = x.shape[-1], self.out_features
        self.check_variables(trainables, {"kernel": shape[::-1] if self.transposed_kernel else shape}, x=x)
        axes = (1,) if self.transposed_kernel else (0,)  # the kernel's axis that meets the input's last one
        return multiply(x, trainables["kernel"], axes, self.precision, self.accum_dtype), non_trainables


class _PerFeature(Layer):
    """What :class:`Bias` and :class:`Scale` share: the trailing axes that their one array spans."""

    in_features: TrailingSizes = (-1,)
    decodes = property(lambda self: self.in_features[-2:-1] in ((), (1,)))  # the same for every step

    def init(self, key, x):
        self.check_init_key(key)
        x, shape = self._span(x)
        name = f"{self._leaf}_initializer"
        return {self._leaf: self.initialize(name, key, shape, self.param_dtype or x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x, shape = self._span(x)
        self.check_variables(trainables, {self._leaf: shape})
        return affine(x, self.accum_dtype or accumulator(x.dtype), **trainables), non_trainables

    def _span(self, x):
        """The input ``x``, checked, and the shape of the array."""
        x = self.check_floating(x, minimum_ndim=len(self.in_features))
        sizes = x.shape[len(x.shape) - len(self.in_features) :]
        shape = tuple(size if wanted == -1 else wanted for size, wanted in zip(sizes, self.in_features))
        if any(wanted not in (1, size) for size, wanted in zip(sizes, shape)):
            mend = "use -1 where the size should come from the input"
            self.expects(f"in_features={self.in_features}", f"trailing axes {shape}", x, mend)
        return x, shape


class Bias(_PerFeature):
    """Add a bias to the trailing axes: ``(..., *features) -> (..., *features)``.

    Args:
      in_features: the trailing axes that the bias spans: one number or a tuple. ``-1`` stands for the size of
        the input's axis, ``1`` for one bias shared along it, any other number must be the axis' size. ``-1``
        is a bias per feature; ``(-1, 1, 1)`` one per channel of channel-first images.
      bias_initializer: ``(key, shape, dtype) -> array``; zeros by default, since the kernel's random
        numbers already tell the units apart.
      accum_dtype: in which the gradient of the bias is summed over the batch; ``None`` is float32 for half
        precision, otherwise the input's. (In bfloat16 a sum of ones stops growing at 256.)
      param_dtype: of the bias; by default the input's. ``fwd`` converts the bias to the input's dtype.

    Raises:
      LayerError: if ``x`` is not floating, or has too few or other axes than ``in_features`` says.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> trainables, _ = nn.Bias().init(jax.random.key(0), jnp.ones((2, 4)))
      >>> trainables
      {'bias': Array([0., 0., 0., 0.], dtype=float32)}
    """

    bias_initializer: Initializer = jax.nn.initializers.zeros
    accum_dtype: Dtype | None = None
    param_dtype: Dtype | None = None
    _leaf = "bias"


class Scale(_PerFeature):
    """Multiply the trailing axes by a scale: ``(..., *features) -> (..., *features)``.

    The twin of :class:`Bias`; both together undo what a normalization took away, where that is of use; norms take ``affine=True`` for the two.

    Args:
      in_features: the trailing axes that the scale spans, as for :class:`Bias`: ``-1`` is a scale per feature,
        ``(-1, 1, 1)`` one per channel of channel-first images.
      scale_initializer: ``(key, shape, dtype) -> array``; ones by default.
      accum_dtype: in which the gradient of the scale is summed over the batch; ``None`` is float32 for half
        precision, otherwise the input's.
      param_dtype: of the scale; by default the input's. ``fwd`` converts the scale to the input's dtype.

    Raises:
      LayerError: if ``x`` is not floating, or has too few or other axes than ``in_features`` says.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> trainables, _ = nn.Scale().init(jax.random.key(0), jnp.ones((2, 4)))
      >>> trainables
      {'scale': Array([1., 1., 1., 1.], dtype=float32)}
    """

    scale_initializer: Initializer = jax.nn.initializers.ones
    accum_dtype: Dtype | None = None
    param_dtype: Dtype | None = None
    _leaf = "scale"


# Functions of their own, so that JAX traces and differentiates each once for all layers of one shape: that halves the
# time to trace a deep model. The compiled program is the same.


@functools.partial(jax.jit, static_argnums=(2, 3, 4), inline=True)
def multiply(x, kernel, axes, precision=None, accum_dtype=None):
    """Sum the products of the last axes of ``x`` and ``axes`` of the kernel, as many."""
    summed = tuple(range(x.ndim - len(axes), x.ndim)), axes
    product = lax.dot_general(x, kernel.astype(x.dtype), (summed, ((), ())), precision, accum_dtype)
    return product.astype(x.dtype)


@functools.partial(jax.jit, static_argnums=1, inline=True)
def affine(x, accum_dtype, scale=None, bias=None):
    """``x * scale + bias``, or what there is of it, along the trailing axes; gradients are summed in ``accum_dtype``."""

    def spread(parameter):
        # Broadcast in accum_dtype: the transpose of broadcasting is the sum that makes the parameter's gradient. Were the
        # parameter rounded to the input's dtype before, so would be that sum, and in float16 a large one would be infinite.
        axes = range(x.ndim - parameter.ndim, x.ndim)
        return lax.broadcast_in_dim(parameter.astype(accum_dtype), x.shape, axes).astype(x.dtype)

    y = x if scale is None else x * spread(scale)
    return y if bias is None else y + spread(bias)
