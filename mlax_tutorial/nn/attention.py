"""Attention as functions: logits, mask, softmax, weighted values; the same in chunks, for long sequences; and JAX's own.

Shapes throughout: queries ``(..., queries, heads, head_dim)``, keys and values ``(..., keys, kv_heads,
head_dim)``, where ``kv_heads`` divides ``heads``: each key and value head serves ``heads / kv_heads`` heads of
the query (Ainslie et al. 2023). What a query may look at, and how gladly, is said in five ways:

* ``mask``, Boolean, ``(..., queries, keys)``, the same for all heads: ``True`` means "may be looked at";
* ``bias``, floating, ``(..., heads, queries, keys)``: added to the logits; minus infinity forbids, so a mask for each
  head is ``jnp.where(mask, 0.0, -jnp.inf)``;
* ``causal``: no query may look at later keys. The first query stands at key number ``offset``, 0 by default; it may be
  traced, and an array with a number for each row of the batch;
* ``window``: no query may look at keys that are ``window`` or more steps away;
* ``segments``, integers ``(..., length)``: a query may look only at keys of its own number, for sequences that are packed into
  one row. A pair of arrays if queries and keys differ, ``(..., queries)`` and ``(..., keys)``.

A mask has 1 or all queries, a bias 1 or all heads, too. A query that may look at nothing gets zeros.

JAX traces and differentiates each of the large functions once for all layers of one shape, as in linear.py.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.arrays import accumulator, canonical, is_floating, is_integer, varying_like
from mlax_tutorial.nn.dropout import Dropout
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked, optional
from mlax_tutorial.nn.rules import integer

OPTIONS = ("causal", "window", "accum_dtype", "precision")


def attention_logits(query, key, *, accum_dtype=None, precision=None):
    r"""How well each query fits each key: :math:`q \cdot k / \sqrt{d}`.

    Args:
      query: ``(..., queries, heads, head_dim)``.
      key: ``(..., keys, kv_heads, head_dim)``.
      accum_dtype: dtype of the result; ``None`` is float32 for half precision, otherwise the input's. (In half precision the
        scale is rounded, too, and in float16 a product of 65,520 is infinite before it is scaled.)
      precision: of the product, see ``jax.lax.Precision``.

    Returns:
      ``(..., kv_heads, heads / kv_heads, queries, keys)`` in ``accum_dtype``.

    Example:
      >>> import jax.numpy as jnp
      >>> attention_logits(jnp.ones((7, 4, 16)), jnp.ones((9, 2, 16))).shape
      (2, 2, 7, 9)
    """
    query, key = canonical((query, key))
    *axes, heads, head_dim = query.shape
    kv_heads, dtype = key.shape[-2], accum_dtype or accumulator(query.dtype)
    # The logits are scaled, not the fewer numbers of the query: in bfloat16, a query times 1 / sqrt(32) is off by as much as all
    # that follows, and XLA multiplies in the pass that makes the softmax anyway.
    scale = jnp.asarray(1 / math.sqrt(head_dim), dtype)
    product = functools.partial(jnp.einsum, precision=precision, preferred_element_type=dtype)
    if heads == kv_heads:  # see weighted_values
        return jnp.expand_dims(product("...qhd,...khd->...hqk", query, key), -3) * scale
    query = query.reshape(*axes, kv_heads, heads // kv_heads, head_dim)
    return product("...qhgd,...khd->...hgqk", query, key) * scale


def masked_logits(logits, mask=None, bias=None):
    """Logits plus the bias, and the lowest finite number where mask or bias forbid.

    Args:
      logits: ``(..., kv_heads, groups, queries, keys)``.
      mask, bias: see the top of the module.

    Example:
      >>> import jax.numpy as jnp
      >>> bool(masked_logits(jnp.zeros((1, 1, 1, 2)), jnp.array([[True, False]]))[..., 1] < -1e38)
      True
    """
    lowest = jnp.finfo(logits.dtype).min  # of infinities alone, softmax would make NaN

    def fit(array):  # (..., heads, queries, keys), where any but the last may be 1
        heads = (1, 1) if array.shape[-3] == 1 else logits.shape[-4:-2]
        return lax.broadcast_to_rank(array.reshape(*array.shape[:-3], *heads, *array.shape[-2:]), logits.ndim)

    if bias is not None:
        logits = jnp.maximum(logits + fit(bias.astype(logits.dtype)), lowest)
    return logits if mask is None else jnp.where(fit(mask[..., None, :, :]), logits, lowest)


def attention_weights(logits, mask=None, bias=None):
    """Softmax over the keys that mask and bias allow; a query that may look at nothing gets zeros.

    Args:
      logits: ``(..., kv_heads, groups, queries, keys)``.
      mask, bias: see the top of the module.

    Returns:
      Weights of the shape and dtype of ``logits``; over the last axis they sum to 1, or all are 0 where nothing may be looked at.

    Example:
      >>> import jax.numpy as jnp
      >>> attention_weights(jnp.zeros((1, 1, 2, 2)), jnp.array([[True, False], [True, True]]))[0, 0]
      Array([[1. , 0. ],
             [0.5, 0.5]], dtype=float32)
    """
    if mask is None and bias is None:
        return jax.nn.softmax(logits, axis=-1)
    logits = masked_logits(logits, mask, bias)
    weights = jax.nn.softmax(logits, axis=-1)
    largest = jnp.max(logits, axis=-1, keepdims=True, initial=-jnp.inf)
    return jnp.where(largest > jnp.finfo(logits.dtype).min, weights, 0)


def pair_weights(
    query, key, mask=None, bias=None, causal=False, window=None, offset=0, segments=None, accum_dtype=None, precision=None
):  # fmt: skip
    """The weights of all pairs of a query and a key, ``(..., kv_heads, heads / kv_heads, queries, keys)``.

    Args:
      query, key, mask, bias, causal, window, offset, segments: see the top of the module.
      accum_dtype, precision: as for :func:`attention_logits`.

    Example:
      >>> import jax.numpy as jnp
      >>> x = jnp.ones((3, 1, 4))
      >>> pair_weights(x, x, segments=jnp.array([0, 1, 1]))[0, 0].tolist()
      [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]
    """
    mask = _allowed(mask, query.shape[-3], key.shape[-3], offset, causal, window, segments)
    logits = attention_logits(query, key, accum_dtype=accum_dtype, precision=precision)
    return attention_weights(logits, mask, bias)


def weighted_values(weights, value, *, precision=None):
    """The mean of the values under the weights.

    Args:
      weights: ``(..., kv_heads, groups, queries, keys)``.
      value: ``(..., keys, kv_heads, head_dim)``.
      precision: of the product, see ``jax.lax.Precision``.

    Returns:
      ``(..., queries, heads, head_dim)`` in the dtype of ``value``.

    Example:
      >>> import jax.numpy as jnp
      >>> weighted_values(jnp.ones((2, 2, 7, 9)) / 9, jnp.ones((9, 2, 16))).shape
      (7, 4, 16)
    """
    product = functools.partial(jnp.einsum, precision=precision, preferred_element_type=value.dtype)
    weights = weights.astype(value.dtype)
    # An axis of size 1 is not free: with it in the products, XLA for CPUs passes over the
    # weights of all pairs more often. (A step of an encoder moved 0.1 GB more a layer.)
    if weights.shape[-3] == 1:
        return product("...hqk,...khd->...qhd", jnp.squeeze(weights, -3), value)
    y = product("...hgqk,...khd->...qhgd", weights, value)
    return y.reshape(*y.shape[:-3], y.shape[-3] * y.shape[-2], y.shape[-1])


@functools.partial(jax.jit, static_argnames=("queries", "keys", "causal", "window"), inline=True)
def distance_mask(queries: int, keys: int, offset=0, *, causal: bool = True, window: int | None = None):
    """Which keys each query may look at, by their distance: ``(queries, keys)``, Boolean.

    Args:
      queries: how many queries.
      keys: how many keys.
      offset: place of the first query among the keys; may be traced. Of an array, the mask has the axes of the array in front.
      causal: whether later keys are forbidden.
      window: from how many steps on keys are too far away, in either direction; ``None`` is no limit.

    Example:
      >>> distance_mask(2, 3, offset=1)
      Array([[ True,  True, False],
             [ True,  True,  True]], dtype=bool)
      >>> distance_mask(2, 3, offset=1, window=2)
      Array([[ True,  True, False],
             [False,  True,  True]], dtype=bool)
    """
    checked("distance_mask: window", optional(integer), window)
    offset = jnp.asarray(offset, jnp.int32)
    shape = *offset.shape, queries, keys
    query, key = (lax.broadcasted_iota(jnp.int32, shape, offset.ndim + axis) for axis in (0, 1))
    distance = query - key + offset[..., None, None]
    allowed = distance >= 0 if causal else jnp.full_like(distance, True, bool)
    return allowed if window is None else allowed & (jnp.abs(distance) < window)


@functools.partial(jax.jit, static_argnames=(*OPTIONS, "dropout"), inline=True)
def attend(
    query, key, value, *, mask=None, bias=None, causal=False, window=None, offset=0, segments=None,
    accum_dtype=None, precision=None, dropout=0.0, dropout_key=None,
):  # fmt: skip
    """Attention in its plain form, which stores the weights of all pairs: memory ``O(queries * keys)``.

    Args:
      query, key, value, mask, bias, causal, window, offset, segments: see the top of the module.
      accum_dtype: dtype of logits and softmax; ``None`` is float32 for half precision, otherwise the input's.
      precision: of the products, see ``jax.lax.Precision``.
      dropout: the probability with which a weight is lost, if there is a ``dropout_key``.

    Returns:
      ``(..., queries, heads, head_dim)`` in the dtype of the query.

    Raises:
      ValueError: if the arrays do not fit together, or a size is no integer of at least 1.

    Example:
      >>> import jax.numpy as jnp
      >>> attend(jnp.ones((7, 4, 16)), jnp.ones((9, 2, 16)), jnp.ones((9, 2, 16))).shape
      (7, 4, 16)

    References: Vaswani et al., *Attention Is All You Need* (2017); Ainslie et al., *GQA: Training Generalized
    Multi-Query Transformer Models from Multi-Head Checkpoints* (2023).
    """
    _check(query, key, value, mask, bias, segments, window=window)
    weights = pair_weights(query, key, mask, bias, causal, window, offset, segments, accum_dtype, precision)
    if dropout_key is not None:
        weights, _ = Dropout(dropout).fwd(weights, (), (), key=dropout_key)
    return weighted_values(weights, value, precision=precision).astype(query.dtype)


@functools.partial(jax.jit, static_argnames=(*OPTIONS, "chunk_size"), inline=True)
def attend_in_chunks(
    query, key, value, *, chunk_size=128, mask=None, bias=None, causal=False, window=None, offset=0,
    segments=None, accum_dtype=None, precision=None,
):  # fmt: skip
    """The same as :func:`attend`, a chunk of keys at a time: memory ``O(queries * chunk_size)``, also backward.

    The softmax is put together from its parts: each chunk keeps its largest logit and the sum of its exponentials,
    and earlier parts are scaled when a larger logit comes. The backward pass computes each chunk again.

    Args:
      query, key, value, mask, bias, causal, window, offset, segments: see the top of the module.
      chunk_size: keys at a time; the last chunk is filled up with keys that no query may look at.
      accum_dtype, precision: as for :func:`attend`.

    Returns:
      ``(..., queries, heads, head_dim)`` in the dtype of the query.

    Raises:
      ValueError: if the arrays do not fit together, or a size is no integer of at least 1.

    Example:
      >>> import jax.numpy as jnp
      >>> x = jnp.ones((8, 2, 4))
      >>> bool(jnp.allclose(attend_in_chunks(x, x, x, chunk_size=4), attend(x, x, x)))
      True

    Reference: Rabe and Staats, *Self-attention Does Not Need O(n^2) Memory* (2021).
    """
    _check(query, key, value, mask, bias, segments, window=window, chunk_size=chunk_size)
    queries, keys = query.shape[-3], key.shape[-3]
    count = 1 if keys == 0 else -(-keys // chunk_size)
    if mask is None and count * chunk_size != keys:
        mask = jnp.ones((1, keys), bool)  # what fills up the last chunk is False
    query_segments, key_segments = _pair(segments)

    def chunks(array, axis):
        if array is not None:
            array = jnp.moveaxis(array, axis, 0)
            array = jnp.pad(array, [(0, count * chunk_size - keys)] + [(0, 0)] * (array.ndim - 1))
            return jnp.moveaxis(array.reshape(count, chunk_size, *array.shape[1:]), 1, axis)

    def body(carry, chunk):
        total, largest, normalizer = carry
        start, key, value, mask, bias, key_segments = chunk
        pair = query_segments, key_segments
        mask = _allowed(mask, queries, chunk_size, offset - start, causal, window, pair)
        logits = attention_logits(query, key, accum_dtype=accum_dtype, precision=precision)
        logits = masked_logits(logits, mask, bias)
        now = lax.stop_gradient(jnp.maximum(largest, jnp.max(logits, axis=-1)))
        weights = jnp.where(logits > jnp.finfo(logits.dtype).min, jnp.exp(logits - now[..., None]), 0)
        rescale = jnp.exp(largest - now)
        product = functools.partial(jnp.einsum, precision=precision, preferred_element_type=logits.dtype)
        values = product("...hgqk,...khd->...hgqd", weights.astype(value.dtype), value)
        total = total * rescale[..., None] + values
        return (total, now, normalizer * rescale + jnp.sum(weights, axis=-1)), None

    rows = jax.eval_shape(
        functools.partial(attention_logits, accum_dtype=accum_dtype), query, key[..., :1, :, :]
    )
    shape, dtype = rows.shape[:-1], rows.dtype
    total, largest = jnp.zeros((*shape, value.shape[-1]), dtype), jnp.full(shape, jnp.finfo(dtype).min, dtype)
    carry = total, largest, jnp.zeros(shape, dtype)
    carry = varying_like(carry, query, key, value, mask, bias)
    each = (key, -3), (value, -3), (mask, -1), (bias, -1), (key_segments, -1)
    each = jnp.arange(count) * chunk_size, *(chunks(*pair) for pair in each)
    # The body of a scan needs no barrier.
    (total, _, normalizer), _ = lax.scan(jax.checkpoint(body, prevent_cse=False), carry, each)
    y = jnp.moveaxis(total / jnp.where(normalizer == 0, 1, normalizer)[..., None], -2, -4)
    return y.reshape(*y.shape[:-3], y.shape[-3] * y.shape[-2], y.shape[-1]).astype(query.dtype)


@functools.partial(jax.jit, static_argnames=(*OPTIONS, "implementation"), inline=True)
def attend_by_jax(
    query, key, value, *, implementation="cudnn", mask=None, bias=None, causal=False, window=None, offset=None,
    segments=None, accum_dtype=None, precision=None,
):  # fmt: skip
    """The same as :func:`attend`, by ``jax.nn.dot_product_attention``.

    That averages all values where a query may look at nothing; here such a query gets zeros, as in :func:`attend`.

    Args:
      query, key, value, mask, bias, causal, window, offset, segments: see the top of the module.
      implementation: ``"xla"``, or ``"cudnn"``: the fused kernel where the program is compiled for an NVIDIA GPU (it wants
        half precision, see there), and :func:`attend` where it is compiled for anything else.
      accum_dtype, precision: for :func:`attend`; the others have their own rules (``"xla"`` takes its softmax in float32, for
        float64, too).

    Returns:
      ``(..., queries, heads, head_dim)`` in the dtype of the query.

    Raises:
      ValueError: if the arrays do not fit together, or a size is no integer of at least 1.

    Example:
      >>> import jax.numpy as jnp
      >>> x = jnp.ones((2, 8, 2, 4))
      >>> bool(jnp.allclose(attend_by_jax(x, x, x, causal=True), attend(x, x, x, causal=True)))
      True

    Reference: Dao et al., *FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness* (2022).
    """
    _check(query, key, value, mask, bias, segments, window=window)
    sizes = query.shape[-3], key.shape[-3]
    mask = _allowed(mask, *sizes, segments=segments)
    # JAX knows no offset, cuDNN windows to the left only.
    if offset is not None or (window is not None and not causal):
        mask = _allowed(mask, *sizes, 0 if offset is None else offset, causal, window)
        causal, window = False, None
    options = {"causal": causal, "window": window}
    fused = functools.partial(_dot_product_attention, implementation=implementation, **options)
    if implementation == "xla":
        return fused(query, key, value, mask, bias)

    def plain(query, key, value, mask, bias):
        more = options | {"accum_dtype": accum_dtype, "precision": precision}
        return attend(query, key, value, mask=mask, bias=bias, **more)

    def on_gpu(*arrays):
        try:
            return fused(*arrays)
        except RuntimeError:  # no cuDNN on this machine, where JAX traces this, but will not compile it
            return plain(*arrays)

    return lax.platform_dependent(query, key, value, mask, bias, cuda=on_gpu, default=plain)


@jax.numpy_dtype_promotion("standard")
@jax.numpy_rank_promotion("allow")
def _dot_product_attention(query, key, value, mask, bias, causal, window, implementation):
    """JAX's function, which takes one batch axis, a mask with an axis for heads, and a finite bias."""
    *batch, queries, _, _ = query.shape

    def fit(array):
        lead = batch if any(size != 1 for size in array.shape[:-3]) else [1] * len(batch)
        array = jnp.broadcast_to(array, (*lead, array.shape[-3], queries, array.shape[-1]))
        return array.reshape(math.prod(lead), *array.shape[-3:])

    allowed = _allowed(mask, queries, key.shape[-3], 0, causal, window)
    seen = True if allowed is None else allowed[..., None, :, :]
    if bias is not None:
        seen, bias = seen & (bias > jnp.finfo(bias.dtype).min), jnp.maximum(bias, jnp.finfo(bias.dtype).min)
    y = jax.nn.dot_product_attention(
        *(array.reshape(math.prod(batch), *array.shape[-3:]) for array in (query, key, value)),
        bias=None if bias is None else fit(bias),
        mask=None if mask is None else fit(mask[..., None, :, :]),
        is_causal=causal,
        local_window_size=None if window is None else (window - 1, 0),
        implementation=implementation,
    ).reshape(query.shape)
    if mask is None and bias is None and (window is None or queries <= key.shape[-3]):
        return y
    return jnp.where(jnp.swapaxes(jnp.any(seen, axis=-1), -1, -2)[..., None], y, 0)


@functools.partial(jax.jit, static_argnames="base", inline=True)
def rotary(x, positions, base: float = 10_000.0):
    r"""Turn pairs of features by angles that grow with the position, so that products depend on differences of positions.

    Features :math:`i` and :math:`i + d/2` are turned by :math:`p \cdot base^{-2i/d}` at position :math:`p`. The angles
    are computed in float32, since bfloat16 cannot tell position 257 from 256.

    Args:
      x: queries or keys, ``(..., length, heads, head_dim)``, with an even ``head_dim``.
      positions: ``(..., length)``, integers.
      base: of the wavelengths.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      ValueError: if ``head_dim`` is odd, or the lengths differ.

    Example:
      >>> import jax.numpy as jnp
      >>> rotary(jnp.ones((3, 2, 8)), jnp.arange(3))[0, 0, :2]
      Array([1., 1.], dtype=float32)

    Reference: Su et al., *RoFormer: Enhanced Transformer with Rotary Position Embedding* (2021).
    """
    if x.shape[-1] % 2 or positions.shape[-1:] not in ((), (1,), x.shape[-3:-2]):
        wanted = "x of shape (..., length, heads, head_dim), head_dim even, and positions (..., length)"
        raise ValueError(f"rotary: expects {wanted}, got {describe(x)} and {describe(positions)}.")
    dtype, half = accumulator(x.dtype), x.shape[-1] // 2
    wavelengths = jnp.asarray(base, dtype) ** (-jnp.arange(half, dtype=dtype) / jnp.asarray(half, dtype))
    angles = positions[..., None, None].astype(dtype) * lax.broadcast_to_rank(wavelengths, positions.ndim + 2)
    angles = lax.broadcast_to_rank(angles, x.ndim)
    sine, cosine = jnp.sin(angles).astype(x.dtype), jnp.cos(angles).astype(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def _allowed(mask, queries, keys, offset=0, causal=False, window=None, segments=None):
    """What mask, distance and segments allow; ``None`` is everything."""
    query, key = _pair(segments)
    same = None if query is None else query[..., :, None] == key[..., None, :]
    near = None
    if causal or window is not None:
        near = distance_mask(queries, keys, offset, causal=causal, window=window)
    masks = [each for each in (mask, same, near) if each is not None]
    ndim = max((each.ndim for each in masks), default=0)
    masks = [lax.broadcast_to_rank(each, ndim) for each in masks]
    return functools.reduce(jnp.logical_and, masks) if masks else None


def _pair(segments):
    return segments if isinstance(segments, tuple) else (segments, segments)


def _check(query, key, value, mask, bias, segments, **sizes):
    def refuse(message):
        raise ValueError(f"attention: {message}")

    for name, size in sizes.items():
        checked(f"attention: {name}", optional(integer) if name == "window" else integer, size)
    # The products themselves refuse the rest of what does not fit. Of integers, 1 / sqrt(head_dim) would be 0.
    for name, array in (("query", query), ("key", key), ("value", value)):
        if not is_floating(array):
            refuse(f"{name} expects floating-point numbers, got {describe(array)}: convert it.")
    if value.shape[:-1] != key.shape[:-1]:
        refuse(f"value expects the axes of key, but for the last: got {describe(value)} for {describe(key)}.")
    shape = query.shape[:-3], query.shape[-2], query.shape[-3], key.shape[-3]
    check_masks(refuse, mask, bias, segments, *shape)


def _fits(sizes, wanted):
    return all(size in (1, want) for size, want in zip(sizes, wanted))


def check_steps(refuse, name: str, ids, batch, length: int, mend: str) -> None:
    """Have integers refused that are not one for each of ``length`` steps, for all rows or for each row of the batch."""
    if not is_integer(ids) or ids.shape[-1:] != (length,):
        refuse(f"{name} expect integers of shape (..., {length}), got {describe(ids)}: {mend}.")
    if ids.ndim > len(batch) + 1 or not _fits(ids.shape[-2::-1], batch[::-1]):
        refuse(f"{name} expect the batch axes {batch}, got {describe(ids)}.")


def check_masks(refuse, mask, bias, segments, batch, heads: int, queries: int, keys: int) -> None:
    """Have a mask, a bias or segments refused, in words, that do not fit."""
    pair = () if segments is None else _pair(segments)
    if segments is not None and (
        len(pair) != 2 or any(ids is None for ids in pair)
    ):  # half a pair forbids nothing
        wanted = "one array, or a pair: those of the queries and those of the keys"
        refuse(f"segments expect {wanted}, got ({', '.join(map(describe, pair))}).")
    for ids, length in zip(pair, (queries, keys)):
        check_steps(refuse, "segments", ids, batch, length, "where queries and keys differ, give a pair")
    each_head = "for one mask a head, give bias=jnp.where(mask, 0.0, -jnp.inf)"
    if mask is not None and getattr(mask, "dtype", None) != jnp.bool_:
        refuse(f"mask expects Booleans, got {describe(mask)}: True where it may be looked at.")
    if bias is not None and not is_floating(bias):
        refuse(f"bias expects floating-point numbers, got {describe(bias)}: {each_head}.")

    for name, array, sizes in (("mask", mask, (queries, keys)), ("bias", bias, (heads, queries, keys))):
        if array is None:
            continue
        lead, shape = array.shape[: -len(sizes)], array.shape[-len(sizes) :]
        if len(shape) < len(sizes) or shape[-1] != keys or not _fits(shape, sizes):
            wanted = "".join(f"{size} or 1, " for size in sizes[:-1]) + str(keys)
            mend = "for padding of shape (..., keys), give mask=present[..., None, :]"
            refuse(f"{name} expects shape (..., {wanted}), got {describe(array)}: {mend}.")
        if len(lead) > len(batch) or not _fits(lead[::-1], batch[::-1]):
            mend = f"heads share one mask; {each_head}"
            refuse(f"{name} expects the batch axes {batch}, got {describe(array)}: {mend}.")
