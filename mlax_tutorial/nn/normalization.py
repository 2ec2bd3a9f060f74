"""Normalization: subtract the mean, divide by the standard deviation. The layers differ in what they average over.

As a ``Linear`` is followed by a ``Bias``, so a normalization is followed by a ``Scale`` and a ``Bias``, where the next layer
does not undo them anyway. Each of them holds both itself if it is told ``affine=True``: the same map, rounded once. ::

    nn.Series(nn.Linear(256), nn.LayerNorm(affine=True), nn.F(jax.nn.relu))
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.nn.arrays import accumulator
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import hyperparameter, optional
from mlax_tutorial.nn.layer import Layer, abstract
from mlax_tutorial.nn.linear import affine
from mlax_tutorial.nn.rules import Axis, Dtype, Epsilon, Probability, Size, Switch, names

_AXIS_NAME = optional(names("must be the name of a mapped axis, a tuple of names, or None", keep=True))


class _Norm(Layer):
    """What all share: the dtype of the statistics; and a scale and a bias, if they are asked for, of the shape ``_features``."""

    _leaves = {"scale": jnp.ones, "bias": jnp.zeros}

    def init(self, key, x):
        x, names = self.check_input(x), self._leaves if self.affine else ()
        dtype = self.param_dtype or x.dtype
        return {name: self._leaves[name](self._features(x), dtype) for name in names} or (), ()

    def _features(self, x):
        return (x.shape[self.channel_axis],)

    def _affine(self, x, trainables):
        """Scale and bias, checked, if the layer holds them, or else none."""
        trainables, names = (trainables, self._leaves) if self.affine else ({}, ())
        self.check_variables(trainables, dict.fromkeys(names, self._features(x)))
        return trainables

    def _per_channel(self, x, trainables, dtype, shape, others):
        """The same in ``dtype``, of ``shape``, with axes of size 1 at ``others``."""
        parts = self._affine(x, trainables).items()
        return {name: jnp.expand_dims(leaf.astype(dtype).reshape(shape), others) for name, leaf in parts}

    def _widen(self, x):
        """The input in the dtype of the statistics, in which epsilon must be more than 0: a constant would be 0 / 0, or its gradient,
        which has the third power of 1 / sqrt(epsilon).
        """
        dtype = jnp.dtype(self.accum_dtype or accumulator(x.dtype))
        largest = float(jnp.finfo(accumulator(dtype)).max)
        if np.asarray(self.epsilon, dtype) == 0 or self.epsilon < largest ** (-2 / 3):
            mend = "make it larger, or accum_dtype=jnp.float32"
            self.refuse(f"epsilon={self.epsilon} is as good as 0 in {dtype}, accum_dtype: {mend}.")
        return x.astype(dtype)

    def _check_count(self, x, count, of, mend):
        """Refuse the statistics of a single value: whatever it is, it would become 0."""
        if count == 1:
            self.expects("x", f"more than one value for each {of}", x, mend)


class BatchNorm(_Norm):
    r"""Normalize each channel over the batch and all other axes: ``(..., channels) -> (..., channels)``.

    .. math:: y = (x - \mu) / \sqrt{\sigma^2 + \epsilon}

    In training, :math:`\mu` and :math:`\sigma^2` are the mean and the biased variance (the sum of squares divided by the
    number of values :math:`n`, not by :math:`n - 1`) of what is normalized, and running averages follow them, ``momentum *
    running + (1 - momentum) * batch``. Inference uses the running averages, so there each example is on its own. They
    start as mean 0 and variance 1, and are the non-trainables, ``{"mean": …, "variance": …}``.

    The running variance averages biased ones, as in Flax and Haiku. The paper and PyTorch multiply by :math:`n / (n - 1)`
    first; PyTorch's ``momentum`` is ``1 - momentum`` here. An empty batch changes nothing. One value for each channel is
    refused in training, as in PyTorch: it would become 0, whatever it is, and the running variance would shrink.

    In training this layer mixes examples, so it departs from the rule for batches. Under ``vmap``, or on the shards of
    ``shard_map``, each example or shard is normalized alone and has running averages of its own, unless ``axis_name`` says
    over which axes to average. (Under ``jit``, a batch that lies on several devices is still one batch.)

    A bias in front of it is lost, since the mean is subtracted. For one behind it, and a scale, let a :class:`Scale` and a
    :class:`Bias` follow, or ask for ``affine=True``: the same numbers, but the scale joins the factor :math:`1 / \sigma` of its
    channel before either meets the data. That saves passes over memory, mostly backward; the training step of a small
    residual network took 0.85 of the time on a CPU.

    Args:
      epsilon: added to the variance; between 0 and 1.
      momentum: of the running averages, in [0, 1]: how much of the old ones stays.
      channel_axis: which axis holds the channels, counted from the end: ``-3`` for channel-first images.
      axis_name: of a ``vmap`` or a ``shard_map``, or several: average over these as well.
      affine: multiply each channel by a scale and add a bias. They start as 1 and 0, and are the trainables,
        ``{"scale": …, "bias": …}``; otherwise there are none.
      accum_dtype: dtype of the statistics, running ones included, and of the normalization up to its result; ``None``
        is float32 for half precision, otherwise the input's. (In bfloat16, an average that moves by a tenth of the
        difference stops two percent short.)
      param_dtype: of scale and bias; by default the input's. ``fwd`` converts them to the dtype of the statistics.

    Raises:
      LayerError: if ``x`` is not floating, has too few axes, or in training one value for each channel; if ``epsilon`` is as good as 0 in
        ``accum_dtype``, the running averages or the trainables do not fit ``x``, ``inference_mode`` is traced, or there is
        no axis called ``axis_name``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.BatchNorm(momentum=0.5), jnp.array([[1.0, 10.0], [3.0, 30.0]])
      >>> trainables, non_trainables = layer.init(jax.random.key(0), x)
      >>> y, non_trainables = layer.fwd(x, trainables, non_trainables)
      >>> y.round(2)
      Array([[-1., -1.],
             [ 1.,  1.]], dtype=float32)
      >>> non_trainables["mean"]
      Array([ 1., 10.], dtype=float32)

    Reference: Ioffe and Szegedy, *Batch Normalization: Accelerating Deep Network Training by Reducing Internal
    Covariate Shift* (2015).
    """

    epsilon: Epsilon = 1e-5
    momentum: Probability = 0.9
    channel_axis: Axis = -1
    axis_name: str | tuple[str, ...] | None = hyperparameter(_AXIS_NAME, default=None)
    affine: Switch = False
    accum_dtype: Dtype | None = None
    param_dtype: Dtype | None = None

    def init(self, key, x):
        self.check_init_key(key)
        x = self.check_input(x)
        shape, dtype = self._features(x), self.accum_dtype or accumulator(x.dtype)
        running = {"mean": jnp.zeros(shape, dtype), "variance": jnp.ones(shape, dtype)}
        return super().init(key, x)[0], running

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x = self.check_input(x)
        self.check_inference_mode(inference_mode)
        averages = dict.fromkeys(("mean", "variance"), self._features(x))
        self.check_variables(non_trainables, averages, "non_trainables")
        axes, wide = (
            tuple(axis for axis in range(x.ndim) if axis != x.ndim + self.channel_axis),
            self._widen(x),
        )
        affine = self._per_channel(x, trainables, wide.dtype, -1, axes)
        if inference_mode or x.size == 0:
            running = (non_trainables[name].astype(wide.dtype) for name in averages)
            mean, variance = (jnp.expand_dims(value, axes) for value in running)
        else:
            mean, variance = self._moments(wide, axes)
            batch = {"mean": jnp.squeeze(mean, axes), "variance": jnp.squeeze(variance, axes)}
            non_trainables = {name: self._follow(non_trainables[name], batch[name]) for name in batch}
        return standardize(wide, mean, variance, self.epsilon, **affine).astype(x.dtype), non_trainables

    decodes = property(lambda self: self.channel_axis != -2)

    def check_input(self, x):
        return self.check_floating(x, minimum_ndim=-self.channel_axis)

    def _moments(self, x, axes):
        try:
            shards = 1 if self.axis_name is None else lax.axis_size(self.axis_name)
        except NameError as error:
            mend = "train inside jax.vmap(…, axis_name=…) or jax.shard_map over an axis of its name, or leave it out"
            self.refuse(f"axis_name={self.axis_name!r} names no axis here ({error}): {mend}.")
        mend = "give a larger batch, average over a mapped one by axis_name, or set inference_mode=True"
        count = shards * math.prod(x.shape[axis] for axis in axes)
        self._check_count(x, count, "channel in training", mend)
        return moments(x, axes, self.axis_name)

    def _follow(self, running, batch):
        # One rounded coefficient. Of two, momentum and 1 - momentum, the sum need not be 1 in low precision, and the
        # average would drift. The gradient is stopped because a Stack would carry it along for nothing.
        wide = running.astype(batch.dtype)
        step = jnp.asarray(1 - self.momentum, batch.dtype) * (lax.stop_gradient(batch) - wide)
        return (wide + step).astype(running.dtype)

    def _outline(self, records, path, key, x):
        # Sizes are inferred outside of the vmap or shard_map that axis_name belongs to, so without fwd.
        records[path] = abstract(x), {}
        return x, *self.init(key, x)


class _OverFeatures(_Norm):
    """What LayerNorm and RMSNorm share."""

    _no_argument = "how many features there are is no argument, init reads it off"
    _: dataclasses.KW_ONLY  # for (2,), 2 features, would be read as 2 axes
    axes: Size = 1
    epsilon: Epsilon = 1e-5
    accum_dtype: Dtype | None = None
    affine: Switch = False
    param_dtype: Dtype | None = None

    def check_input(self, x):
        mend = f"axes={self.axes} is over how many axes the features lie; {self._no_argument}"
        return self.check_floating(x, self.axes, mend=mend)

    def _features(self, x):
        return x.shape[len(x.shape) - self.axes :]

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x = self.check_input(x)
        y = self._normalize(self._widen(x), tuple(range(x.ndim - self.axes, x.ndim)))
        return affine(y, y.dtype, **self._affine(x, trainables)).astype(x.dtype), non_trainables

    decodes = property(lambda self: self.axes == 1)


class LayerNorm(_OverFeatures):
    r"""Normalize each example over its trailing axes: ``(..., *features) -> (..., *features)``.

    .. math:: y = (x - \mu) / \sqrt{\sigma^2 + \epsilon}

    with the mean and the biased variance over the features. Training and inference are the same, and examples do not
    mix.

    Args:
      axes: how many trailing axes hold the features.
      epsilon: added to the variance; between 0 and 1.
      accum_dtype: dtype of the statistics, and of the normalization up to its result; ``None`` is float32 for half
        precision, otherwise the input's.
      affine: multiply each feature by a scale and add a bias, before the result is rounded. They start as 1 and 0, and are the trainables,
        ``{"scale": …, "bias": …}``; otherwise there are none.
      param_dtype: of scale and bias; by default the input's.

    Raises:
      LayerError: if ``x`` is not floating, has fewer than ``axes`` axes or one feature alone, ``epsilon`` is as good as 0 in
        ``accum_dtype``, or the trainables do not fit ``x``.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> nn.LayerNorm().fwd(jnp.array([[1.0, 3.0], [10.0, 30.0]]), (), ())[0].round(2)
      Array([[-1.,  1.],
             [-1.,  1.]], dtype=float32)

    Reference: Ba, Kiros and Hinton, *Layer Normalization* (2016).
    """

    def _normalize(self, x, axes):
        mend = "leave it out, or normalize over more axes"
        self._check_count(x, math.prod(self._features(x)), "example", mend)
        return standardize(x, *moments(x, axes), self.epsilon)


class RMSNorm(_OverFeatures):
    r"""Divide each example by the root mean square of its trailing axes: ``(..., *features) -> (..., *features)``.

    .. math:: y = x / \sqrt{\overline{x^2} + \epsilon}

    A :class:`LayerNorm` that leaves the mean alone, which saves one pass over the data.

    Args:
      axes: how many trailing axes hold the features.
      epsilon: added to the mean square; between 0 and 1.
      accum_dtype: dtype of the mean square, and of the normalization up to its result; ``None`` is float32 for half
        precision, otherwise the input's. (In float16 the square of 256 is infinite.)
      affine: multiply each feature by a scale, before the result is rounded. It starts as 1, and is the trainables,
        ``{"scale": …}``; otherwise there are none.
      param_dtype: of the scale; by default the input's.

    Raises:
      LayerError: if ``x`` is not floating or has fewer than ``axes`` axes, ``epsilon`` is as good as 0 in ``accum_dtype``, or the
        trainables do not fit ``x``.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> nn.RMSNorm().fwd(jnp.array([[3.0, -3.0], [0.0, 0.0]]), (), ())[0].round(2)
      Array([[ 1., -1.],
             [ 0.,  0.]], dtype=float32)

    Reference: Zhang and Sennrich, *Root Mean Square Layer Normalization* (2019).
    """

    _leaves = {"scale": jnp.ones}

    def _normalize(self, x, axes):
        return x * _factor(_average(jnp.square(x), axes), self.epsilon)


class GroupNorm(_Norm):
    r"""Normalize each example over its places and over groups of channels: ``(..., *places, channels)``, the same out.

    .. math:: y = (x - \mu) / \sqrt{\sigma^2 + \epsilon}

    The channels fall into ``groups`` of neighbors, and each group has a mean and a biased variance, over all places.
    One group for each channel is *instance normalization*, one group in all a :class:`LayerNorm` over ``axes``. Training
    and inference are the same, and examples do not mix. Let a :class:`Scale` and a :class:`Bias` follow, or ask for
    ``affine=True``: the same numbers, but the scale joins the factor :math:`1 / \sigma` of its channel before either meets the data,
    which saves passes over memory: a training step on 32 images of 28 x 28 x 32 makes 16 in place of 22 on a CPU.

    Args:
      groups: how many; must divide the number of channels.
      axes: how many trailing axes make an example: 3 for images, ``(height, width, channels)``. (With any number of
        batch axes in front, the shape alone does not tell.)
      channel_axis: which of these holds the channels, counted from the end: ``-3`` for channel-first images.
      epsilon: added to the variance; between 0 and 1.
      accum_dtype: dtype of the statistics, and of the normalization up to its result; ``None`` is float32 for half
        precision, otherwise the input's.
      affine: multiply each channel by a scale and add a bias, as in :class:`BatchNorm`; otherwise there are no trainables.
      param_dtype: of scale and bias; by default the input's.

    Raises:
      LayerError: if ``x`` is not floating, has fewer than ``axes`` axes, or one value in each group; if ``groups`` does not
        divide its channels, ``epsilon`` is as good as 0 in ``accum_dtype``, or the trainables do not fit ``x``.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> nn.GroupNorm(2, axes=1).fwd(jnp.array([1.0, 3.0, 10.0, 30.0]), (), ())[0].round(2)
      Array([-1.,  1., -1.,  1.], dtype=float32)

    References: Wu and He, *Group Normalization* (2018); Ulyanov, Vedaldi and Lempitsky, *Instance Normalization: The
    Missing Ingredient for Fast Stylization* (2016).
    """

    groups: Size
    _: dataclasses.KW_ONLY  # for (4, 8), 4 groups of 8 channels, would be read as 8 axes
    axes: Size
    channel_axis: Axis = -1
    epsilon: Epsilon = 1e-5
    accum_dtype: Dtype | None = None
    affine: Switch = False
    param_dtype: Dtype | None = None

    def __post_init__(self):
        super().__post_init__()
        if -self.channel_axis > self.axes:
            self.refuse(f"channel_axis must be one of {self.axes} trailing axes, got {self.channel_axis}.")

    decodes = property(lambda self: self.axes == 1)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x = self.check_input(x)
        axis = x.ndim + self.channel_axis
        channels = self.groups, x.shape[axis] // self.groups
        wide = self._widen(x).reshape(*x.shape[:axis], *channels, *x.shape[axis + 1 :])
        axes = tuple(other for other in range(x.ndim - self.axes, wide.ndim) if other != axis)
        self._check_count(x, math.prod(wide.shape[axis] for axis in axes), "group", "make fewer groups")
        others = tuple(other for other in range(wide.ndim) if other not in (axis, axis + 1))
        affine = self._per_channel(x, trainables, wide.dtype, channels, others)
        y = standardize(wide, *moments(wide, axes), self.epsilon, **affine)
        return y.reshape(x.shape).astype(x.dtype), non_trainables

    def check_input(self, x):
        x = self.check_floating(x, minimum_ndim=self.axes)
        if (channels := x.shape[self.channel_axis]) % self.groups:
            got = f"the {channels} channels (axis {self.channel_axis}), got {describe(x)}"
            self.refuse(f"groups={self.groups} must divide {got}: choose a divisor, or another channel_axis.")
        return x


# Traced and differentiated once for all layers of one shape, like the functions of Linear.
@functools.partial(jax.jit, static_argnames=("axes", "axis_name"), inline=True)
def moments(x, axes: tuple[int, ...], axis_name=None) -> tuple[Any, Any]:
    """The mean and the biased variance over ``axes``, which stay as axes of size 1.

    Two passes over the data: the mean first, then the mean square of what differs from it. The textbook's single
    pass, the mean square minus the square of the mean, cancels: on 1,024 float32 numbers with standard deviation 1
    and mean 1000 its variance was up to 50 percent off (twelve seeds), that of two passes less than 0.00002 percent. On a CPU
    a whole training step took the same time either way, within a tenth.

    Args:
      x: floating.
      axes: over which to average.
      axis_name: of a ``vmap`` or ``shard_map``, or several, over which to average as well.

    Example:
      >>> import jax.numpy as jnp
      >>> moments(jnp.array([[1.0, 3.0]]), (1,))
      (Array([[2.]], dtype=float32), Array([[1.]], dtype=float32))
    """

    # For any constant c, the variance is the mean of (x - c)**2 minus (mean - c)**2. With the mean itself as that constant the
    # second term is zero, and matters only for second derivatives. But the first one's gradient need not go through
    # the mean, which saves the backward pass a sum over the data.
    mean = _average(x, axes, axis_name)
    constant = lax.stop_gradient(mean)
    return mean, _average(jnp.square(x - constant), axes, axis_name) - jnp.square(mean - constant)


@functools.partial(jax.jit, static_argnames="epsilon", inline=True)
def standardize(x, mean, variance, epsilon: float, scale=None, bias=None):
    """``(x - mean) / sqrt(variance + epsilon)``, times ``scale``, plus ``bias``, if there are.

    Example:
      >>> import jax.numpy as jnp
      >>> standardize(jnp.array([1.0, 3.0]), jnp.array([2.0]), jnp.array([3.0]), epsilon=1.0)
      Array([-0.5,  0.5], dtype=float32)
    """
    factor = _factor(variance, epsilon)
    if scale is not None:
        factor = factor * scale  # both are small: x is read once for the two, and so is its gradient
    y = (x - mean) * factor
    return y if bias is None else y + bias


def _factor(variance, epsilon):
    """``1 / sqrt(variance + epsilon)``, in float32 at least: in float16 the derivative would overflow where the variance is 0."""
    wide = variance.astype(accumulator(variance.dtype))
    return lax.rsqrt(wide + jnp.asarray(epsilon, wide.dtype)).astype(variance.dtype)


def _average(x, axes, axis_name=None):
    # Not jnp.mean, which sums half precision in float32, even where accum_dtype asks for less.
    total = jnp.expand_dims(lax.reduce_sum(x, axes), axes)
    mean = total / jnp.asarray(math.prod(x.shape[axis] for axis in axes), x.dtype)
    return mean if axis_name is None else lax.pmean(mean, axis_name)
