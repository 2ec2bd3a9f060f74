"""``MultiHeadAttention``: queries, keys and values from one input or two, and a cache for decoding."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.attention import attend, attend_in_chunks, both, causal_mask, misfit, rotary
from mlax_tutorial.nn.errors import LayerError, describe
from mlax_tutorial.nn.hyperparameters import (
    boolean,
    floating_dtype,
    function,
    hyperparameter,
    integer,
    optional,
    wavelength,
)
from mlax_tutorial.nn.layer import Layer, abstract
from mlax_tutorial.nn.linear import lecun_normal, multiply


class MultiHeadAttention(Layer):
    r"""Let every place look at every other: ``(..., length, features) -> (..., length, features)``.

    Each head has queries, keys and values of its own, :math:`y = \mathrm{softmax}(q k^T / \sqrt{d}) v`, and a last
    kernel mixes the heads. The trainables are four kernels, ``query`` of shape ``(features, heads, head_dim)``, ``key`` and
    ``value`` of shape ``(features, kv_heads, head_dim)``, and ``out`` of shape ``(heads, head_dim, features)``: the heads are
    an axis of their own, along which the kernels may be sharded.

    Further inputs, of ``init`` and ``fwd`` alike:

    * ``context``, ``(..., keys, context_features)``: what to look at instead of ``x`` (cross attention);
    * ``mask``, ``(..., length, keys)``, Boolean: ``True`` where a place may be looked at. For padding, give
      ``present[..., None, :]``, of shape ``(..., 1, keys)``.

    Args:
      heads: how many heads of queries.
      head_dim: features of a head; by default those of ``x`` divided by ``heads``.
      kv_heads: how many heads of keys and values; each serves ``heads / kv_heads`` heads of queries. By default ``heads``.
      causal: whether a place may look only at itself and earlier ones.
      rotary_base: base of the wavelengths of rotary positions, for instance 10,000; ``None`` is no positions.
      chunk_size: keys at a time, which bounds the memory (see :func:`attend_in_chunks`); ``None`` is all at once.
      kernel_initializer: ``(key, shape, dtype) -> array`` for a kernel of shape ``(in, out)``.
      precision: of the products, see ``jax.lax.Precision``.
      accum_dtype: dtype of logits and softmax; ``None`` is float32 for half precision, otherwise the input's.
      param_dtype: of the kernels; by default the input's.

    Raises:
      LayerError: if shapes do not fit, a mask is not Boolean, or a causal layer is given a context.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.MultiHeadAttention(heads=4, causal=True), jnp.ones((2, 10, 32))
      >>> trainables, _ = layer.init(jax.random.key(0), x)
      >>> trainables["query"].shape, layer.fwd(x, trainables, ())[0].shape
      ((32, 4, 8), (2, 10, 32))

    One step after the other, with what came before in a cache:

      >>> cache, whole = layer.init_cache(x[:, :1], length=10), layer.fwd(x, trainables, ())[0]
      >>> for step in range(3):
      ...     y, cache = layer.decode(x[:, step : step + 1], trainables, (), cache)
      >>> bool(jnp.allclose(y[:, 0], whole[:, 2], atol=1e-5))
      True

    References: Vaswani et al., *Attention Is All You Need* (2017); Ainslie et al., *GQA* (2023), for ``kv_heads``; Su et
    al., *RoFormer* (2021), for rotary positions.
    """

    heads: int = hyperparameter(integer)
    head_dim: int | None = hyperparameter(optional(integer), default=None)
    kv_heads: int | None = hyperparameter(optional(integer), default=None)
    causal: bool = hyperparameter(boolean, default=False)
    rotary_base: float | None = hyperparameter(optional(wavelength), default=None)
    chunk_size: int | None = hyperparameter(optional(integer), default=None)
    kernel_initializer: Callable = hyperparameter(function, default=lecun_normal)
    precision: Any = hyperparameter(optional(lax.Precision), default=None)
    accum_dtype: Any = hyperparameter(optional(floating_dtype), default=None)
    param_dtype: Any = hyperparameter(optional(floating_dtype), default=None)

    @property
    def decodes(self):
        return self.causal

    def __post_init__(self):
        super().__post_init__()
        if self.heads % self._kv_heads:
            raise ValueError(
                f"MultiHeadAttention: kv_heads must divide heads={self.heads}, got {self.kv_heads}."
            )

    @property
    def _kv_heads(self):
        return self.kv_heads or self.heads

    def init(self, key, x, *, context=None, mask=None):
        self.check_init_key(key)
        self._check_inputs(x, context, mask)
        dtype = self.param_dtype or x.dtype

        def kernel(key, name, shape):
            inputs = 2 if name == "out" else 1  # how many axes flow in
            size = math.prod(shape[:inputs]), math.prod(shape[inputs:])
            return self.initialize("kernel_initializer", key, size, dtype).reshape(shape)

        shapes = self._shapes(x, x if context is None else context)
        keys = jax.random.split(key, len(shapes))
        return {name: kernel(key, name, shapes[name]) for key, name in zip(keys, shapes)}, ()

    def fwd(self, x, trainables, non_trainables, *, context=None, mask=None, key=None, inference_mode=False):
        self._check_inputs(x, context, mask)
        query, keys, values = self._project(x, x if context is None else context, trainables)
        if self.rotary_base is not None:
            query, keys = self._rotate(query, 0), self._rotate(keys, 0)
        options = {"accum_dtype": self.accum_dtype, "precision": self.precision}
        if self.chunk_size is not None:
            y = attend_in_chunks(
                query, keys, values, mask=mask, causal=self.causal, chunk_size=self.chunk_size, **options
            )
        else:
            if self.causal:
                mask = both(mask, causal_mask(x.shape[-2], x.shape[-2]))
            y = attend(query, keys, values, mask=mask, **options)
        return self._mix(y, trainables), non_trainables

    def decode(self, x, trainables, non_trainables, cache, *, context=None, mask=None):
        if not self.causal or context is not None:
            raise LayerError(
                self, "decodes only as causal self-attention: set causal=True, and give no context."
            )
        if mask is not None:
            raise LayerError(self, "takes no mask while it decodes: leave padding out of the request.")
        self.check_floating(x, minimum_ndim=2)
        self._check_cache(x, cache)
        query, keys, values = self._project(x, x, trainables)
        place, length, steps = cache["place"], cache["key"].shape[-3], x.shape[-2]
        if self.rotary_base is not None:
            query, keys = self._rotate(query, place), self._rotate(keys, place)
        keys, values = (
            lax.dynamic_update_slice_in_dim(cache[name], new.astype(cache[name].dtype), place, new.ndim - 3)
            for name, new in (("key", keys), ("value", values))
        )
        y = attend(
            query,
            keys.astype(x.dtype),
            values.astype(x.dtype),
            mask=causal_mask(steps, length, place),
            accum_dtype=self.accum_dtype,
            precision=self.precision,
        )
        # Past the end, JAX would overwrite the last places without a word.
        y = jnp.where(place + steps <= length, self._mix(y, trainables), jnp.asarray(jnp.nan, x.dtype))
        return y, {"key": keys, "value": values, "place": place + steps}

    def _build_cache(self, records, path, length):
        x, _ = records[path]
        shape = (*x.shape[:-2], length, self._kv_heads, self._head_dim(x))
        parts = {name: jnp.zeros(shape, x.dtype) for name in ("key", "value")}
        return parts | {"place": jnp.zeros((), jnp.int32)}

    def _shapes(self, x, context):
        head_dim = self._head_dim(x)
        return {
            "query": (x.shape[-1], self.heads, head_dim),
            "key": (context.shape[-1], self._kv_heads, head_dim),
            "value": (context.shape[-1], self._kv_heads, head_dim),
            "out": (self.heads, head_dim, x.shape[-1]),
        }

    def _project(self, x, context, trainables):
        self.check_variables(trainables, self._shapes(x, context))
        pairs = ("query", x), ("key", context), ("value", context)
        return tuple(multiply(x, trainables[name], (0,), self.precision) for name, x in pairs)

    def _mix(self, y, trainables):
        return multiply(y, trainables["out"], (0, 1), self.precision)

    def _rotate(self, x, start):
        return rotary(x, start + jnp.arange(x.shape[-3]), self.rotary_base)

    def _head_dim(self, x):
        if self.head_dim is None and (not x.shape[-1] or x.shape[-1] % self.heads):
            raise LayerError(
                self,
                f"expects features that {self.heads} heads share evenly, got {describe(x)}: give another number of "
                "heads, or head_dim.",
            )
        head_dim = self.head_dim or x.shape[-1] // self.heads
        if self.rotary_base is not None and head_dim % 2:
            raise LayerError(
                self, f"turns pairs of features, but head_dim is {head_dim}: choose an even one."
            )
        return head_dim

    def _check_inputs(self, x, context, mask):
        self.check_floating(x, minimum_ndim=2)
        keys = x.shape[-2]
        if context is not None:
            if self.causal or self.rotary_base is not None:
                raise LayerError(
                    self, "a causal or rotary layer looks at its own input only: give no context."
                )
            self.check_floating(context, minimum_ndim=2)
            if abstract(context).dtype != abstract(x).dtype or context.shape[:-2] != x.shape[:-2]:
                raise LayerError(
                    self,
                    f"context expects the batch axes and dtype of x, {describe(x)}, got {describe(context)}.",
                )
            keys = context.shape[-2]
        wrong = mask is not None and misfit(mask, "x", x, x.shape[:-2], x.shape[-2], keys)
        if wrong:
            raise LayerError(self, wrong)

    def _check_cache(self, x, cache):
        if not isinstance(cache, dict) or cache.keys() != {"key", "value", "place"}:
            raise LayerError(
                self,
                f"cache expects a dict with keys ['key', 'place', 'value'], got {describe(cache)}: "
                "pass what init_cache made, or the last decode returned.",
            )
        batch, rest = x.shape[:-2], (self._kv_heads, self._head_dim(x))
        for name in ("key", "value"):
            got = getattr(cache[name], "shape", ())
            room = (got if name == "key" else cache["key"].shape)[-3:-2]  # any, but the same for both
            if len(got) != x.ndim + 1 or got != (*batch, *room, *rest):
                shape = str((*batch, *(room if name == "value" else (None,)), *rest)).replace("None", "…")
                raise LayerError(
                    self,
                    f"cache[{name!r}] expects shape {shape}, got {describe(cache[name])}: make one "
                    "with init_cache for a step of this batch.",
                )
        place = cache["place"]
        if getattr(place, "shape", None) != () or not jnp.issubdtype(place.dtype, jnp.integer):
            raise LayerError(
                self,
                f"cache['place'] expects one integer, got {describe(place)}: pass what init_cache made, or the "
                "last decode returned.",
            )
        if x.shape[-2] > cache["key"].shape[-3]:
            raise LayerError(
                self,
                f"decodes {x.shape[-2]} steps, but the cache has room for {cache['key'].shape[-3]}: "
                "give init_cache a greater length.",
            )
