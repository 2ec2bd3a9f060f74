"""``WeightNorm`` and ``SpectralNorm``: a layer whose kernel is normalized before it is used."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.conv import Conv, ConvTranspose
from mlax_tutorial.nn.errors import located
from mlax_tutorial.nn.hyperparameters import hyperparameter
from mlax_tutorial.nn.kinds import Size
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.linear import Linear
from mlax_tutorial.nn.numeric import accumulator


def _with_kernel(value) -> Layer:
    if not isinstance(value, (Linear, Conv, ConvTranspose)):
        raise ValueError("must be a Linear, a Conv or a ConvTranspose: wrap each of these in a larger model")
    return value


class _Normalized(Layer):
    """What the two share: the kernel of another layer as a matrix, a row for each feature of the output."""

    layer: Any = hyperparameter(_with_kernel)
    decodes = property(lambda self: self.layer.decodes)

    def _matrix(self, trainables):
        if isinstance(self.layer, Linear):
            axis, ndim = (0 if self.layer.transposed_kernel else 1), 2
        else:
            axis, ndim = self.layer._specs[1].index("O"), len(self.layer._specs[1])
        self.check_variables(trainables, {"kernel": (None,) * ndim})
        matrix = jnp.moveaxis(trainables["kernel"], axis, 0)

        def back(rows):
            return jnp.moveaxis(rows.reshape(matrix.shape), 0, axis)

        return matrix.reshape(matrix.shape[0], -1), back

    def _init_layer(self, key, x):
        with located(".layer", self.layer):
            trainables, _ = self.layer.init(key, x)
        return trainables, self._matrix(trainables)[0]

    def _apply(self, x, kernel):
        with located(".layer", self.layer):
            return self.layer.fwd(x, {"kernel": kernel}, ())[0]


class WeightNorm(_Normalized):
    r"""Learn the length and the direction of each unit's weights apart: shapes as those of ``layer``.

    .. math:: w = g \, v / \lVert v \rVert

    for the weights :math:`w` that flow into each feature of the output. The trainables are ``{"layer": {"kernel": v}, "scale":
    g}``; at first :math:`g` is the length of :math:`v`, so that nothing changes. Weights that are all zero stay so: their
    length counts as 1, here and at first in :math:`g`, so that they have a gradient.

    Args:
      layer: a :class:`Linear`, :class:`Conv` or :class:`ConvTranspose`.

    Raises:
      ValueError: if ``layer`` is another one.
      LayerError: if the variables are those of another model, of ``layer`` alone, say.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.WeightNorm(nn.Linear(3)), jnp.ones((2, 4))
      >>> trainables, _ = layer.init(jax.random.key(0), x)
      >>> jax.tree.map(jnp.shape, trainables)
      {'layer': {'kernel': (4, 3)}, 'scale': (3,)}

    Reference: Salimans and Kingma, *Weight Normalization* (2016).
    """

    def init(self, key, x):
        trainables, matrix = self._init_layer(key, x)
        length = _length(matrix.astype(accumulator(matrix.dtype)), 1)
        return {"layer": trainables, "scale": length[:, 0].astype(matrix.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        self.check_names(trainables, ("layer", "scale"))
        matrix, back = self._matrix(trainables["layer"])
        self.check_variables({"scale": trainables["scale"]}, {"scale": matrix.shape[:1]})
        wide = matrix.astype(accumulator(matrix.dtype))
        rows = wide / _length(wide, 1) * trainables["scale"].astype(wide.dtype)[:, None]
        return self._apply(x, back(rows)), non_trainables


class SpectralNorm(_Normalized):
    r"""Divide a kernel by its largest singular value, so that the layer is 1-Lipschitz: shapes as those of ``layer``.

    .. math:: \bar W = W / \sigma, \quad \sigma = u^T W v

    The singular vectors :math:`u` and :math:`v` are found by power iteration, a little further in each training step:
    :math:`u` is the non-trainable, ``{"vector": u}``. Gradients take it as a constant. Trainables are those of ``layer``.
    A convolution's kernel counts as a matrix with a row for each channel of the output, as in PyTorch. A kernel of zeros
    stays as it is.

    Args:
      layer: a :class:`Linear`, :class:`Conv` or :class:`ConvTranspose`.
      iterations: how many steps of the power iteration in each training step.

    Raises:
      ValueError: if ``layer`` is another one.
      LayerError: if ``inference_mode`` is traced, or the variables are those of another model.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.SpectralNorm(nn.Linear(3)), jnp.eye(4)
      >>> trainables, non_trainables = layer.init(jax.random.key(0), x)
      >>> y, _ = layer.fwd(x, trainables, non_trainables)  # the normalized kernel itself
      >>> bool(jnp.linalg.svd(y, compute_uv=False)[0].round(2) == 1)
      True

    Reference: Miyato, Kataoka, Koyama and Yoshida, *Spectral Normalization for Generative Adversarial Networks* (2018).
    """

    iterations: Size = 1

    def init(self, key, x):
        key, vector_key = jax.random.split(key)
        trainables, matrix = self._init_layer(key, x)
        matrix = matrix.astype(accumulator(matrix.dtype))
        vector = jax.random.normal(vector_key, matrix.shape[:1], matrix.dtype)
        return trainables, {"vector": _iterate(matrix, vector, 15)}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        self.check_inference_mode(inference_mode)
        matrix, back = self._matrix(trainables)
        self.check_variables(non_trainables, {"vector": matrix.shape[:1]}, "non_trainables")
        matrix, u = matrix.astype(non_trainables["vector"].dtype), non_trainables["vector"]
        if not inference_mode:
            u = _iterate(lax.stop_gradient(matrix), u, self.iterations)
        sigma = _length(u @ matrix)  # u @ matrix is sigma v
        return self._apply(x, back(matrix / sigma)), {"vector": u}


def _length(array, axis=None):
    """The lengths along an axis, which stays, or of a vector; 1 in place of 0, so that zeros divided by it are zeros, with
    gradients."""
    square = jnp.sum(jnp.square(array), axis=axis, keepdims=axis is not None)
    return jnp.sqrt(square + (square == 0).astype(square.dtype))


def _unit(vector):
    return vector / _length(vector)


def _iterate(matrix, u, times):
    for _ in range(times):
        found = _unit(matrix @ _unit(matrix.T @ u))
        u = found + u * jnp.all(found == 0).astype(u.dtype)  # from a zero vector, it would never come back
    return u
