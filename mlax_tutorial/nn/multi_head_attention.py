"""``MultiHeadAttention``: queries, keys and values from one input or two, and a cache for decoding."""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.nn import attention
from mlax_tutorial.nn.arrays import accumulator, canonical, is_array
from mlax_tutorial.nn.attention import attend, attend_by_jax, attend_in_chunks, rotary
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import hyperparameter, optional, show
from mlax_tutorial.nn.layer import Layer, abstract
from mlax_tutorial.nn.linear import affine, lecun_normal, multiply
from mlax_tutorial.nn.rules import Dtype, Initializer, Positive, Precision, Probability, Size, Switch, choice


class MultiHeadAttention(Layer):
    r"""Let every place look at every other: ``(..., length, features) -> (..., length, features)``.

    Each head has queries, keys and values of its own, :math:`y = \mathrm{softmax}(q k^T / \sqrt{d}) v`, and a last
    kernel mixes the heads. The trainables are four kernels, ``query_kernel`` of shape ``(features, heads, head_dim)``,
    ``key_kernel`` and ``value_kernel`` of shape ``(features, kv_heads, head_dim)``, and ``out_kernel`` of shape ``(heads,
    head_dim, features)``: the heads are an axis of their own, along which the kernels may be sharded. With ``use_bias``,
    ``query_bias`` and so on, of the shapes ``(heads, head_dim)``, ``(kv_heads, head_dim)`` and ``(features,)``.

    Further inputs, of ``init``, ``fwd`` and ``decode`` alike:

    * ``context``, ``(..., keys, context_features)``: what to look at instead of ``x`` (cross attention);
    * ``mask``, ``(..., length, keys)``, Boolean: ``True`` where a place may be looked at. For padding, give
      ``present[..., None, :]``, of shape ``(..., 1, keys)``. A place that may look at nothing gets zeros;
    * ``bias``, ``(..., heads, length, keys)``: added to the logits. Minus infinity forbids, so a mask for each head is
      ``jnp.where(mask, 0.0, -jnp.inf)``;
    * ``positions``, ``(..., length)``, for rotary positions: by default 0, 1, 2 and so on;
    * ``segments``, ``(..., length)``, integers: a place may look only at those of its own number, for several sequences that are
      packed into one row; with a context a pair of such, for ``x`` and for the context. (They may need ``positions`` that begin
      anew, too.) Not in ``decode``.

    ``decode`` handles causal attention, whose cache holds earlier keys and values (``mask`` and ``bias`` then speak of all
    keys in the cache, whatever its ``length``) and in ``"place"`` how many each row has, which :func:`with_place` sets; and cross
    attention, whose cache holds the keys and values of the context: the first ``decode`` of a request gets the ``context``, later
    ones leave it out.

    Args:
      heads: how many heads of queries.
      head_dim: features of a head; by default those of ``x`` divided by ``heads``.
      kv_heads: how many heads of keys and values; each serves ``heads / kv_heads`` heads of queries. By default ``heads``.
      causal: whether a place may look only at itself and earlier ones.
      window: how many places one may look at in one direction, its own included: places that are ``window`` or more steps away
        are forbidden.
      rotary_base: base of the wavelengths of rotary positions, for instance 10,000; ``None`` is no positions. Sequences
        that become longer than those of the training need a ``window`` as well: farther distances were never learned.
      dropout: the probability with which each weight is lost in training.
      use_bias: add a bias to queries, keys, values and outputs.
      chunk_size: keys at a time, which bounds the memory (see :func:`attend_in_chunks`); ``None`` is all at once.
      implementation: ``"cudnn"`` for the fused kernel on an NVIDIA GPU, or ``"xla"`` (see :func:`attend_by_jax`).
      kernel_initializer: ``(key, shape, dtype) -> array`` for a kernel of shape ``(in, out)``.
      bias_initializer: of the biases.
      precision: of the products, see ``jax.lax.Precision``.
      accum_dtype: dtype of logits and softmax; ``None`` is float32 for half precision, otherwise the input's.
      param_dtype: of the trainables; by default the input's.

    Raises:
      LayerError: if shapes do not fit, a mask is not Boolean, or a causal layer is given a context.
      ValueError: if two of ``dropout``, ``chunk_size`` and ``implementation`` are asked for: the last two never hold all weights.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.MultiHeadAttention(heads=4, causal=True), jnp.ones((2, 10, 32))
      >>> trainables, _ = layer.init(jax.random.key(0), x)
      >>> trainables["query_kernel"].shape, layer.fwd(x, trainables, ())[0].shape
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

    heads: Size
    _: dataclasses.KW_ONLY  # for (32, 4), 32 heads of 4 features, would be read as 32 features and 4 heads
    head_dim: Size | None = None
    kv_heads: Size | None = None
    causal: Switch = False
    window: Size | None = None
    rotary_base: Positive | None = None
    dropout: Probability = 0.0
    use_bias: Switch = False
    chunk_size: Size | None = None
    implementation: str | None = hyperparameter(optional(choice("xla", "cudnn")), default=None)
    kernel_initializer: Initializer = lecun_normal
    bias_initializer: Initializer = jax.nn.initializers.zeros
    precision: Precision | None = None
    accum_dtype: Dtype | None = None
    param_dtype: Dtype | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.heads % self._kv_heads:
            self.refuse(f"kv_heads must divide heads={self.heads}, got {self.kv_heads}.")
        if (self.dropout > 0) + (self.chunk_size is not None) + (self.implementation is not None) > 1:
            why = "dropout needs all weights at once, which the other two never hold; take Dropout behind the layer"
            self.refuse(f"dropout, chunk_size and implementation exclude each other: {why}.")

    needs_key = property(lambda self: self.dropout > 0)

    decodes = True  # causal, or with a context, which only build_cache and decode know

    _kv_heads = property(lambda self: self.kv_heads or self.heads)

    def init(self, key, x, *, context=None, mask=None, bias=None, positions=None, segments=None):
        self.check_init_key(key)
        self._check_inputs(x, context, mask, bias, positions, segments)
        shapes, dtype = self._shapes(x, x if context is None else context), self.param_dtype or x.dtype

        def draw(key, name, shape):
            if name.endswith("_bias"):
                return self.initialize("bias_initializer", key, shape, dtype)
            inputs = 2 if name == "out_kernel" else 1  # how many axes flow in
            flat = math.prod(shape[:inputs]), math.prod(shape[inputs:])
            return self.initialize("kernel_initializer", key, flat, dtype).reshape(shape)

        keys = jax.random.split(key, len(shapes))
        return {name: draw(key, name, shape) for key, (name, shape) in zip(keys, shapes.items())}, ()

    def fwd(
        self, x, trainables, non_trainables, *, context=None, mask=None, bias=None, positions=None, segments=None,
        key=None, inference_mode=False,
    ):  # fmt: skip
        x, context = canonical((x, context))
        self._check_inputs(x, context, mask, bias, positions, segments)
        given = x if context is None else context
        self.check_variables(trainables, self._shapes(x, given))
        heads = self._heads(x, given, trainables, positions)
        key = self.training_key(key, inference_mode)
        y = self._attend(*heads, mask=mask, bias=bias, segments=segments, dropout_key=key)
        return self._project("out", y, trainables), non_trainables

    def observe(self, x, trainables, non_trainables, *, context=None, positions=None, **given):
        """The weights of all heads, ``(..., heads, length, keys)``, before dropout, for ``nn.capture(model, "weights")``."""
        query, keys, _ = self._heads(x, x if context is None else context, trainables, positions)
        masks = {name: given.get(name) for name in ("mask", "bias", "segments")}
        weights = attention.pair_weights(query, keys, **masks, **self._options)
        return {"weights": weights.reshape(*x.shape[:-2], self.heads, *weights.shape[-2:])}

    def decode(
        self, x, trainables, non_trainables, cache, *, context=None, mask=None, bias=None, positions=None, segments=None
    ):  # fmt: skip
        if segments is not None:
            self.refuse("decodes rows of one sequence each: leave segments out.")
        x, context = canonical((x, context))
        if not self.causal:
            return self._decode_across(x, trainables, cache, context, mask, bias)
        self._check_cache(x, cache)
        self._check_inputs(x, context, mask, bias, positions, keys=cache["key"].shape[-3])
        self.check_variables(trainables, self._shapes(x, x))
        place = cache["place"]
        steps = lax.broadcasted_iota(jnp.int32, x.shape[:-1], place.ndim) + place[..., None]
        query, keys, values = self._heads(x, x, trainables, steps if positions is None else positions)
        keys, values = _write(cache["key"], keys, place), _write(cache["value"], values, place)
        y = self._attend(query, keys, values, mask=mask, bias=bias, offset=place)
        y = _or_nan(self._project("out", y, trainables), steps < keys.shape[-3])
        return y, {"key": keys, "value": values, "place": place + x.shape[-2]}

    def _decode_across(self, x, trainables, cache, context, mask, bias):
        if context is not None:
            self.check_variables(trainables, self._shapes(x, context))
            cache = {name: self._project(name, context, trainables) for name in ("key", "value")}
        if not cache:
            self.refuse("decodes cross attention: its first decode needs the context. Or set causal=True.")
        self.check_names(cache, ("key", "value"), "cache")
        self._check_inputs(x, context, mask, bias, None, keys=cache["key"].shape[-3])
        query = self._project("query", x, trainables)
        y = self._attend(query, cache["key"], cache["value"], mask=mask, bias=bias)
        return self._project("out", y, trainables), cache

    def build_cache(self, x, length, *, context=None, **inputs):
        if context is not None:
            return ()  # until the first decode brings the context
        if not self.causal:
            mend = "set causal=True, or for cross attention give init_cache the context"
            self.refuse(f"does not decode, for each place looks at later ones: {mend}.")
        shape = (*x.shape[:-2], length, self._kv_heads, self._head_dim(x))
        parts = {name: jnp.zeros(shape, x.dtype) for name in ("key", "value")}
        return parts | {"place": jnp.zeros(x.shape[:-2], jnp.int32)}

    def _shapes(self, x, context):
        features, head_dim = x.shape[-1], self._head_dim(x)
        given = context.shape[-1], self._kv_heads, head_dim
        shapes = {"query": (features, self.heads, head_dim), "key": given, "value": given}
        shapes["out"] = self.heads, head_dim, features
        kernels = {f"{name}_kernel": shape for name, shape in shapes.items()}
        biases = {f"{name}_bias": shape[2 if name == "out" else 1 :] for name, shape in shapes.items()}
        return kernels | biases if self.use_bias else kernels

    def _project(self, name, x, trainables):
        y = multiply(x, trainables[f"{name}_kernel"], (0, 1) if name == "out" else (0,), self.precision)
        return affine(y, accumulator(x.dtype), bias=trainables[f"{name}_bias"]) if self.use_bias else y

    def _heads(self, x, given, trainables, positions):
        """Queries of ``x``; keys and values of what is given to look at."""
        inputs = ("query", x), ("key", given), ("value", given)
        query, keys, values = (self._project(*each, trainables) for each in inputs)
        if self.rotary_base is not None:
            positions = jnp.arange(x.shape[-2]) if positions is None else positions
            query, keys = (rotary(heads, positions, self.rotary_base) for heads in (query, keys))
        return query, keys, values

    _options = property(lambda self: {name: getattr(self, name) for name in attention.OPTIONS})

    def _attend(self, query, keys, values, dropout_key=None, **options):
        options |= self._options
        if self.chunk_size is not None:
            return attend_in_chunks(query, keys, values, chunk_size=self.chunk_size, **options)
        if self.implementation is not None:
            return attend_by_jax(query, keys, values, implementation=self.implementation, **options)
        return attend(query, keys, values, dropout=self.dropout, dropout_key=dropout_key, **options)

    def _head_dim(self, x):
        if self.head_dim is None and (not x.shape[-1] or x.shape[-1] % self.heads):
            wanted, mend = f"features that {self.heads} heads share evenly", "give other heads, or head_dim"
            self.expects("x", wanted, x, mend)
        head_dim = self.head_dim or x.shape[-1] // self.heads
        if self.rotary_base is not None and head_dim % 2:
            self.refuse(f"turns pairs of features, but head_dim is {head_dim}: choose an even one.")
        return head_dim

    def _check_inputs(self, x, context, mask, bias, positions, segments=None, keys=None):
        self.check_floating(x, minimum_ndim=2)
        if context is not None:
            if self.causal or self.window is not None or self.rotary_base is not None:
                self.refuse("a causal or rotary layer, or one with a window, takes no context.")
            self.check_floating(context, minimum_ndim=2)
            if abstract(context).dtype != abstract(x).dtype or context.shape[:-2] != x.shape[:-2]:
                wanted = f"the batch axes and dtype of x, {describe(x)}"
                self.expects("context", wanted, context, "reshape or convert it")
        if positions is not None and self.rotary_base is None:
            self.refuse("positions are for rotary layers: give rotary_base, or add an nn.Embed of them to x.")
        if positions is not None:
            mend = "one for each step"
            attention.check_steps(self.refuse, "positions", positions, x.shape[:-2], x.shape[-2], mend)
        keys = keys or (x if context is None else context).shape[-2]
        sizes = x.shape[:-2], self.heads, x.shape[-2], keys
        attention.check_masks(self.refuse, mask, bias, segments, *sizes)

    def _check_cache(self, x, cache):
        self.check_names(cache, ("key", "value", "place"), "cache")
        batch, rest = x.shape[:-2], (self._kv_heads, self._head_dim(x))
        mend = "make one with init_cache for this batch"
        for name in ("key", "value"):
            got = getattr(cache[name], "shape", ())
            if got[:-3] + got[-2:] != batch + rest or len(got) < 3:
                shape = ", ".join(map(str, (*batch, "…", *rest)))
                self.expects(f"cache[{name!r}]", f"shape ({shape})", cache[name], mend)
        if cache["key"].shape != cache["value"].shape:
            self.expects("cache['value']", f"the shape of 'key', {cache['key'].shape}", cache["value"], mend)
        place = cache["place"]
        if not is_array(place) or place.shape != batch or not jnp.issubdtype(place.dtype, jnp.integer):
            self.expects("cache['place']", f"integers of the shape of the batch, {batch}", place, mend)
        room = cache["key"].shape[-3]
        if x.shape[-2] > room:
            room = f"the cache has room for {room}: give init_cache a greater length"
            self.refuse(f"decodes {x.shape[-2]} steps, but {room}.")


# Functions of their own, so that eagerly, too, their constants are a program's.


@functools.partial(jax.jit, inline=True)
@functools.partial(jnp.vectorize, signature="(l,h,d),(s,h,d),()->(l,h,d)")
def _write(cache, new, place):
    """Put new steps into each row of the cache, from its own place on."""
    return lax.dynamic_update_slice_in_dim(cache, new, place, axis=0)


@functools.partial(jax.jit, inline=True)
def _or_nan(y, fits):
    """Past the end of the cache, JAX would overwrite the last places without a word."""
    return jnp.where(jnp.all(fits, axis=-1)[..., None, None], y, jnp.asarray(jnp.nan, y.dtype))


def with_place(cache: Any, place: Any) -> Any:
    """The cache of a model with every row at another place: for rows that have seen different numbers of steps.

    A batch of prompts that are padded at the end is decoded at once, and then each row goes on from the end of its own prompt.
    What the padding left in the cache is overwritten before it is looked at. So it is for causal attention; a recurrent state
    or that of a convolution has seen the padding (decode such prompts a step at a time, as ``generation.generate`` does).

    Args:
      cache: what ``init_cache`` or ``decode`` returned.
      place: how many steps count, integers of the shape of the batch, or one for all.

    Returns:
      A cache with the same arrays, but for those called ``"place"``.

    Raises:
      ValueError: if the cache has no ``"place"``, or ``place`` is no array of integers that fits it, or negative (of an array of
        JAX this is not looked at, for it would wait for the device).

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.MultiHeadAttention(2, causal=True), jnp.ones((3, 5, 8))
      >>> trainables, _ = layer.init(jax.random.key(0), x)
      >>> _, cache = layer.decode(x, trainables, (), layer.init_cache(x[:, :1], length=9))
      >>> cache["place"].tolist(), nn.with_place(cache, jnp.array([5, 2, 4]))["place"].tolist()
      ([5, 5, 5], [5, 2, 4])
    """

    made = place if isinstance(place, jax.Array) else np.asarray(place)
    if not jnp.issubdtype(made.dtype, jnp.integer) or (isinstance(made, np.ndarray) and (made < 0).any()):
        wanted = "integers of at least 0, of the shape of the batch, or one for all"
        raise ValueError(f"with_place: place must be {wanted}, got {show(place)}.")
    found = []

    def one(path, leaf):
        if not path or getattr(path[-1], "key", None) != "place":
            return leaf
        found.append(leaf)
        try:
            return jnp.broadcast_to(jnp.asarray(made, leaf.dtype), leaf.shape)
        except ValueError:
            where = jax.tree_util.keystr(path)
            mend = "give one place for each row of the batch, or one for all"
            raise ValueError(
                f"with_place: cache{where} is {describe(leaf)}, got place {describe(made)}: {mend}."
            ) from None

    result = jax.tree_util.tree_map_with_path(one, cache)
    if not found:
        mend = "pass what init_cache made of a model with causal attention, or one that looks at call.place"
        raise ValueError(f"with_place: cache must have a 'place', got {describe(cache)}: {mend}.")
    return result
