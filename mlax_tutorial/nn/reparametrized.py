"""A layer whose kernels are computed from other variables before it uses them: ``WeightNorm``, ``SpectralNorm``, ``LoRA``."""

import math
import re
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.arrays import accumulator
from mlax_tutorial.nn.conv import Conv, ConvTranspose
from mlax_tutorial.nn.errors import located
from mlax_tutorial.nn.hyperparameters import hyperparameter, optional
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.linear import Linear, lecun_normal
from mlax_tutorial.nn.multi_head_attention import MultiHeadAttention
from mlax_tutorial.nn.rules import Positive, Size, names
from mlax_tutorial.nn.surgery import replace


def _holder(value) -> Layer:
    """What holds a kernel."""
    if not isinstance(value, (Linear, Conv, ConvTranspose)):
        raise ValueError("must be a Linear, a Conv or a ConvTranspose: wrap each of these in a larger model")
    return value


def _axes(layer, name) -> str:
    """A letter for each axis of a kernel, O for those of what flows out."""
    if isinstance(layer, MultiHeadAttention):
        return "IIO" if name == "out_kernel" else "IOO"
    if isinstance(layer, Linear):
        return "OI" if layer.transposed_kernel else "IO"
    return layer._specs[1]


_KERNELS = names("must be names of kernels, such as ('query_kernel', 'value_kernel')")


class _Reparametrized(Layer):
    """What all share: ``_compute`` makes the trainables that ``layer`` is then applied with."""

    layer: Any = hyperparameter(_holder)
    decodes = property(lambda self: self.layer.decodes)
    needs_key = property(lambda self: self.layer.needs_key)
    inputs = property(lambda self: self.layer.inputs)

    def init(self, key, x, **inputs):
        self.check_init_key(key)
        layer_key, key = jax.random.split(key)
        with located(".layer", self.layer):
            trainables, _ = self.layer.init(layer_key, x, **inputs)
        return self._begin(key, trainables)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        self.check_inference_mode(inference_mode)
        computed, non_trainables = self._compute(trainables, non_trainables, inference_mode)
        with located(".layer", self.layer):
            y, _ = self.layer.fwd(x, computed, (), key=key, inference_mode=inference_mode, **inputs)
        return y, non_trainables

    def observe(self, x, trainables, non_trainables, **options):
        return self.layer.observe(x, self._computed(trainables, non_trainables), (), **options)

    def decode(self, x, trainables, non_trainables, cache, **inputs):
        with located(".layer", self.layer):
            return self.layer.decode(x, self._computed(trainables, non_trainables), (), cache, **inputs)

    def _build_cache(self, records, path, length):
        with located(".layer", self.layer):
            return self.layer._build_cache(records, path, length)

    def merge(self, trainables: Any, non_trainables: Any = ()) -> Any:
        """The trainables of ``layer`` alone, with which it does in inference what this one does; kernels of half precision are rounded."""
        stored = trainables.get("layer", trainables)
        computed = self._computed(trainables, non_trainables)
        return {name: leaf.astype(stored[name].dtype) for name, leaf in computed.items()}

    def _computed(self, trainables, non_trainables):
        return self._compute(trainables, non_trainables, True)[0]

    def _matrix(self, trainables, name="kernel"):
        """A kernel as a matrix with a row for each feature of the output, in float32 at least; and the way back."""
        axes = _axes(self.layer, name)
        given = {name: trainables[name]} if name in trainables else trainables
        self.check_variables(given, {name: (None,) * len(axes)})
        order = sorted(range(len(axes)), key=lambda axis: axes[axis] != "O")
        moved = trainables[name].transpose(order)
        rows = moved.reshape(math.prod(moved.shape[: axes.count("O")]), -1)
        back = sorted(order, key=order.__getitem__)
        return rows.astype(accumulator(rows.dtype)), lambda rows: rows.reshape(moved.shape).transpose(back)


class WeightNorm(_Reparametrized):
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

    def _begin(self, key, trainables):
        length = _length(self._matrix(trainables)[0], 1)
        return {"layer": trainables, "scale": length[:, 0].astype(trainables["kernel"].dtype)}, ()

    def _compute(self, trainables, non_trainables, inference_mode):
        self.check_names(trainables, ("layer", "scale"))
        matrix, back = self._matrix(trainables["layer"])
        self.check_variables({"scale": trainables["scale"]}, {"scale": matrix.shape[:1]})
        rows = matrix / _length(matrix, 1) * trainables["scale"].astype(matrix.dtype)[:, None]
        return {"kernel": back(rows)}, non_trainables


class SpectralNorm(_Reparametrized):
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

    def _begin(self, key, trainables):
        matrix, _ = self._matrix(trainables)
        vector = jax.random.normal(key, matrix.shape[:1], accumulator(matrix.dtype)).astype(matrix.dtype)
        return trainables, {"vector": _iterate(matrix, vector, 15)}

    def _compute(self, trainables, non_trainables, inference_mode):
        self.check_names(trainables, ("kernel",))
        matrix, back = self._matrix(trainables)
        self.check_variables(non_trainables, {"vector": matrix.shape[:1]}, "non_trainables")
        u = non_trainables["vector"]
        matrix = matrix.astype(u.dtype)
        if not inference_mode:
            u = _iterate(lax.stop_gradient(matrix), u, self.iterations)
        sigma = _length(u @ matrix)  # u @ matrix is sigma v
        return {"kernel": back(matrix / sigma)}, {"vector": u}


class LoRA(_Reparametrized):
    r"""Adapt a trained layer by a product of low rank, and leave its kernels as they are: shapes as those of ``layer``.

    .. math:: W' = W + \frac{\alpha}{r} A B

    with :math:`A`, ``down``, of shape ``(in, rank)``, drawn as kernels are, and :math:`B`, ``up``, of shape ``(rank, out)``, zeros at
    first, so that nothing changes. The trainables are ``{"layer": those of layer, "lora": {name: {"down": …, "up": …}}}``. The
    optimizer is told what is frozen: ``optim.Freeze(optimizer, where=lambda path: "['lora']" not in path)``. :meth:`merge` gives
    the trainables of ``layer`` alone, :func:`merge_lora` those of a whole model.

    The sum is formed in float32, but rounded to the input's dtype before it is used: keep half-precision base weights for storage,
    not for small changes.

    Args:
      layer: a :class:`Linear`, :class:`Conv`, :class:`ConvTranspose` or :class:`MultiHeadAttention`.
      rank: of the product.
      alpha: the change is multiplied by ``alpha / rank``; ``None`` is ``rank``.
      kernels: names of the kernels; ``None`` is ``("kernel",)``, or for attention ``("query_kernel", "value_kernel")``.

    Raises:
      ValueError: if ``layer`` is another one.
      LayerError: if the variables are those of another model, or have no such kernels.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, x = nn.Series(nn.Linear(8), nn.MultiHeadAttention(2)), jnp.ones((5, 4))
      >>> model = nn.replace(model, lambda path, layer: nn.LoRA(layer, rank=1) if isinstance(layer, nn.MultiHeadAttention) else layer)
      >>> trainables, _ = model.init(jax.random.key(0), x)
      >>> jax.tree.map(jnp.shape, trainables[1]["lora"]["query_kernel"])
      {'down': (8, 1), 'up': (1, 8)}

    Reference: Hu et al., *LoRA: Low-Rank Adaptation of Large Language Models* (2021).
    """

    layer: Any = hyperparameter(
        lambda value: value if isinstance(value, MultiHeadAttention) else _holder(value)
    )
    rank: Size
    alpha: Positive | None = None
    kernels: tuple[str, ...] | None = hyperparameter(optional(_KERNELS), default=None)

    @property
    def _adapted(self):
        attention = isinstance(self.layer, MultiHeadAttention)
        return self.kernels or (("query_kernel", "value_kernel") if attention else ("kernel",))

    def _begin(self, key, trainables):
        products = {}
        for name, one in zip(self._adapted, jax.random.split(key, len(self._adapted))):
            (out, flat), dtype = self._matrix(trainables, name)[0].shape, trainables[name].dtype
            down = lecun_normal(one, (flat, self.rank), accumulator(dtype)).astype(dtype)  # rounded once
            products[name] = {"down": down, "up": jnp.zeros((self.rank, out), dtype)}
        return {"layer": trainables, "lora": products}, ()

    def _compute(self, trainables, non_trainables, inference_mode):
        self.check_names(trainables, ("layer", "lora"))
        self.check_names(trainables["lora"], self._adapted)
        computed = dict(trainables["layer"])
        for name, product in trainables["lora"].items():
            matrix, back = self._matrix(computed, name)
            self.check_variables(
                product, {"down": (matrix.shape[1], self.rank), "up": (self.rank, matrix.shape[0])}
            )
            down, up = (product[part].astype(matrix.dtype) for part in ("down", "up"))
            factor = jnp.asarray((self.alpha or self.rank) / self.rank, matrix.dtype)
            computed[name] = back(matrix + factor * (down @ up).T)
        return computed, non_trainables


def merge_lora(model: Layer, trainables: Any) -> tuple[Layer, Any]:
    """The model without its :class:`LoRA`, and its trainables with their products added: as fast as before, and saved as before.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, x = nn.Series(nn.LoRA(nn.Linear(3), rank=2), nn.Bias()), jnp.ones((1, 4))
      >>> merged, trainables = nn.merge_lora(model, model.init(jax.random.key(0), x)[0])
      >>> merged, jax.tree.map(jnp.shape, trainables)
      (Series(Linear(3), Bias()), ({'kernel': (4, 3)}, {'bias': (3,)}))
    """
    adapted = {}

    def change(path, layer):
        if not isinstance(layer, LoRA):
            return layer
        key, merge = re.sub(r"\.(\w+)", r"['\1']", path.replace("[…]", "")), layer.merge
        for _ in range(path.count("[…]")):  # a layer of a Stack or a Vmap has its copies along a leading axis
            merge = jax.vmap(merge)
        adapted[key] = merge
        return layer.layer

    merged = replace(model, change)

    def is_adapted(node):
        return isinstance(node, dict) and node.keys() == {"layer", "lora"}

    def one(path, node):
        return adapted[jax.tree_util.keystr(path)](node) if is_adapted(node) else node

    return merged, jax.tree_util.tree_map_with_path(one, trainables, is_leaf=is_adapted)


def _length(array, axis=None):
    """The lengths along an axis, which stays, or of a vector; 1 for zeros, which stay zeros divided by it, with gradients."""
    square = jnp.sum(jnp.square(array), axis=axis, keepdims=axis is not None)
    return jnp.sqrt(square + (square == 0).astype(square.dtype))


def _iterate(matrix, u, times):
    for _ in range(times):
        v = matrix.T @ u
        found = matrix @ (v / _length(v))
        found = found / _length(found)
        u = found + u * jnp.all(found == 0).astype(u.dtype)  # from a zero vector, it would never come back
    return u
