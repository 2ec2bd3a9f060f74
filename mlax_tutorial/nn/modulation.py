"""Layers that are steered by a further input, ``condition``: ``FiLM``, ``AdaptiveNorm``; and ``TimeEmbedding``, a usual condition."""

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import accumulator, canonical, is_floating, is_real
from mlax_tutorial.nn.composite import Composite
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.linear import affine, multiply
from mlax_tutorial.nn.rules import Dtype, Initializer, Positive, Size


class TimeEmbedding(Layer):
    r"""Sines and cosines of a number, a time or a noise level, say: ``(...) -> (..., features)``, integers or floating.

    .. math::
        y &= (\sin \omega_0 t, \dots, \sin \omega_{n-1} t, \cos \omega_0 t, \dots) \\
        \omega_i &= \text{max\_period}^{-i / n}, \quad n = \text{features} / 2

    Frequencies and angles are float32, and the result has the dtype of a floating input, otherwise ``dtype``. Times that
    half precision cannot tell apart (999 and 1000 in bfloat16) come as integers or in float32.

    Args:
      features: size of the new axis; even.
      max_period: the angles of the slowest sine are those of ``t / max_period``, nearly.
      dtype: of the result for integers.

    Raises:
      LayerError: if ``features`` is odd, or the input is no array of real numbers.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> nn.TimeEmbedding(4).fwd(jnp.array([0, 1]), (), ())[0].round(2).tolist()[0]
      [0.0, 0.0, 1.0, 1.0]

    References: Vaswani et al., *Attention Is All You Need* (2017), section 3.5; Ho, Jain and Abbeel, *Denoising Diffusion
    Probabilistic Models* (2020), whose order of sines and cosines this is.
    """

    features: Size
    max_period: Positive = 10_000.0
    dtype: Dtype = jnp.dtype("float32")
    decodes = True

    def __post_init__(self):
        super().__post_init__()
        if self.features % 2:
            self.refuse(f"features must be even, half sines and half cosines, got {self.features}.")

    def check_input(self, x):
        x = self.check_array(x)
        return x if is_real(x.dtype) else self.expects("x", "real numbers", x, "pass times or noise levels")

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x, count = self.check_input(x), self.features // 2
        dtype = x.dtype if is_floating(x) else self.dtype
        steps = jnp.arange(count, dtype=accumulator(dtype)) / count
        frequencies = jnp.exp(-jnp.log(jnp.asarray(self.max_period, steps.dtype)) * steps)
        angles = x[..., None].astype(steps.dtype) * frequencies.reshape((1,) * x.ndim + (-1,))
        return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1).astype(dtype), non_trainables


class FiLM(Layer):
    r"""Scale and shift each feature by what a linear map makes of a further input: ``(..., features)``, the same out.

    .. math:: y = x \, (1 + \gamma) + \beta, \quad (\beta, \gamma) = \text{condition} \, W + b

    ``fwd(x, …, condition=c)`` with ``c`` of shape ``(..., in)``: its axes before the last are the leading ones of ``x``, and
    where ``x`` has more, as images ``(batch, height, width, features)`` have, all places get the same. The kernel begins as
    zeros, so that at first nothing changes. Half precision is scaled and shifted in float32.

    Args:
      kernel_initializer: ``(key, shape, dtype) -> array`` for the shape ``(in, 2 * features)``: shifts, then scales.
      param_dtype: of kernel and bias; by default the input's.

    Raises:
      LayerError: if ``x`` or ``condition`` is not floating, the two do not fit each other, or the trainables do not fit them.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x, c = nn.FiLM(), jnp.ones((2, 5, 5, 3)), jnp.ones((2, 4))
      >>> trainables, _ = layer.init(jax.random.key(0), x, condition=c)
      >>> jax.tree.map(jnp.shape, trainables), layer.fwd(x, trainables, (), condition=c)[0].shape
      ({'bias': (6,), 'kernel': (4, 6)}, (2, 5, 5, 3))

    Reference: Perez et al., *FiLM: Visual Reasoning with a General Conditioning Layer* (2018).
    """

    kernel_initializer: Initializer = jax.nn.initializers.zeros
    param_dtype: Dtype | None = None
    decodes = True

    def init(self, key, x, *, condition):
        self.check_init_key(key)
        x, _, shapes = self._look(x, condition)
        dtype = self.param_dtype or x.dtype
        kernel = self.initialize("kernel_initializer", key, shapes["kernel"], dtype)
        return {"kernel": kernel, "bias": jnp.zeros(shapes["bias"], dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, condition, key=None, inference_mode=False):
        x, condition, shapes = self._look(x, condition)
        self.check_variables(trainables, shapes, x=condition)
        wide = accumulator(x.dtype)
        both = multiply(condition.astype(x.dtype), trainables["kernel"], (0,)).astype(wide)
        both = affine(both, wide, bias=trainables["bias"])
        places = tuple(range(both.ndim - 1, x.ndim - 1))
        shift, scale = jnp.split(jnp.expand_dims(both, places), 2, axis=-1)
        return (x.astype(wide) * (1 + scale) + shift).astype(x.dtype), non_trainables

    def _look(self, x, condition):
        x, condition = self.check_floating(x, minimum_ndim=1), canonical(condition)
        batch, features = condition.shape[:-1], 2 * x.shape[-1]
        if not is_floating(condition) or condition.ndim not in range(1, x.ndim + 1):
            wanted = f"floating-point numbers of at most {x.ndim} axes, as x has"
            self.expects("condition", wanted, condition, "convert it, or take axes away")
        if any(one not in (1, size) for one, size in zip(batch, x.shape)):
            mend = f"its leading axes must be those of x, {describe(x)}"
            self.expects("condition", f"leading axes {x.shape[: len(batch)]}", condition, mend)
        return x, condition, {"kernel": (condition.shape[-1], features), "bias": (features,)}


class AdaptiveNorm(Composite):
    r"""A normalization whose scale and bias are made from a further input: shapes as those of ``norm`` and :class:`FiLM`.

    The layer of diffusion models that tells the network the time: adaptive layer norm, group norm, batch norm, with
    ``nn.LayerNorm()``, ``nn.GroupNorm(32, axes=3)``, ``nn.BatchNorm()`` as ``norm``. At first it is ``norm`` alone.

    Args:
      norm: any layer that gives ``(..., features)``; one without ``affine=True``.

    Raises:
      LayerError: whatever ``norm`` and :class:`FiLM` find wrong, with its place.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x, time = nn.AdaptiveNorm(nn.LayerNorm()), jnp.array([[1.0, 3.0]]), jnp.ones((1, 8))
      >>> variables = layer.init(jax.random.key(0), x, condition=time)
      >>> layer.fwd(x, *variables, condition=time)[0].round(2)
      Array([[-1.,  1.]], dtype=float32)

    References: Dhariwal and Nichol, *Diffusion Models Beat GANs on Image Synthesis* (2021), section 3.1; Peebles and Xie,
    *Scalable Diffusion Models with Transformers* (2023), for the zeros.
    """

    norm: Layer
    decodes = True

    def children(self):
        return {"film": FiLM()}

    def forward(self, call, x, *, condition):
        return call.film(call.norm(x), condition=condition)
