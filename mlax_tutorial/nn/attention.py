"""Attention as functions: logits, mask, softmax, weighted values; the same in chunks, for long sequences; and JAX's own.

Shapes throughout: queries ``(..., queries, heads, head_dim)``, keys and values ``(..., keys, kv_heads,
head_dim)``, where ``kv_heads`` divides ``heads``: each key and value head serves ``heads / kv_heads`` heads of
the query (Ainslie et al. 2023). What a query may look at, and how gladly, is said in four ways:

* ``mask``, Boolean, ``(..., queries, keys)``, the same for all heads: ``True`` means "may be looked at";
* ``bias``, floating, ``(..., heads, queries, keys)``: added to the logits; minus infinity forbids, so a mask for each
  head is ``jnp.where(mask, 0.0, -jnp.inf)``;
* ``causal``: no query may look at later keys. The first query stands at key number ``offset``, 0 by default; it may be traced;
* ``window``: no query may look at keys that are ``window`` or more steps away.

A mask has 1 or all queries, a bias 1 or all heads, too. A query that may look at nothing gets zeros.

JAX traces and differentiates each of the large functions once for all layers of one shape, as in linear.py.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.dropout import Dropout
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.kinds import integer
from mlax_tutorial.nn.numeric import accumulator, is_floating, varying_like

_STATIC = ("causal", "window", "accum_dtype", "precision")


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
    *batch, queries, heads, head_dim = query.shape
    kv_heads, dtype = key.shape[-2], accum_dtype or accumulator(query.dtype)
    # The logits are scaled, not the fewer numbers of the query: in bfloat16, a query times 1 / sqrt(32) is off by as much as all
    # that follows, and XLA multiplies in the pass that makes the softmax anyway.
    scale = jnp.asarray(1 / math.sqrt(head_dim), dtype)
    product = functools.partial(jnp.einsum, precision=precision, preferred_element_type=dtype)
    if heads == kv_heads:  # see weighted_values
        return jnp.expand_dims(product("...qhd,...khd->...hqk", query, key), -3) * scale
    grouped = query.reshape(*batch, queries, kv_heads, heads // kv_heads, head_dim)
    return product("...qhgd,...khd->...hgqk", grouped, key) * scale


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
    if bias is not None:
        heads = (1, 1) if bias.shape[-3] == 1 else logits.shape[-4:-2]
        bias = bias.astype(logits.dtype).reshape(*bias.shape[:-3], *heads, *bias.shape[-2:])
        logits = jnp.maximum(logits + _with_axes(bias, logits.ndim), lowest)
    if mask is not None:
        logits = jnp.where(_with_axes(mask[..., None, None, :, :], logits.ndim), logits, lowest)
    return logits


def attention_weights(logits, mask=None, bias=None):
    """Softmax over the keys that mask and bias allow; a query that may look at nothing gets zeros.

    Args:
      logits: ``(..., kv_heads, groups, queries, keys)``.
      mask, bias: see the top of the module.

    Returns:
      Weights of the shape and dtype of ``logits``; over the last axis they sum to 1.

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
    return jnp.where(largest > jnp.finfo(logits.dtype).min, weights, jnp.zeros_like(weights))


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
      offset: place of the first query among the keys; may be traced.
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
    distance = (offset + jnp.arange(queries))[:, None] - jnp.arange(keys)[None]
    allowed = distance >= 0 if causal else jnp.full_like(distance, True, bool)
    return allowed if window is None else allowed & (jnp.abs(distance) < window)


@functools.partial(jax.jit, static_argnames=(*_STATIC, "dropout"), inline=True)
def attend(
    query, key, value, *, mask=None, bias=None, causal=False, window=None, offset=0,
    accum_dtype=None, precision=None, dropout=0.0, dropout_key=None,
):  # fmt: skip
    """Attention in its plain form, which stores the weights of all pairs: memory ``O(queries * keys)``.

    Args:
      query, key, value, mask, bias, causal, window, offset: see the top of the module.
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
    _check(query, key, value, mask, bias, window=window)
    mask = _allowed(mask, query.shape[-3], key.shape[-3], offset, causal, window)
    logits = attention_logits(query, key, accum_dtype=accum_dtype, precision=precision)
    weights = attention_weights(logits, mask, bias)
    if dropout_key is not None:
        weights, _ = Dropout(dropout).fwd(weights, (), (), key=dropout_key)
    return weighted_values(weights, value, precision=precision).astype(query.dtype)


@functools.partial(jax.jit, static_argnames=(*_STATIC, "chunk_size"), inline=True)
def attend_in_chunks(
    query, key, value, *, chunk_size=128, mask=None, bias=None, causal=False, window=None, offset=0,
    accum_dtype=None, precision=None,
):  # fmt: skip
    """The same as :func:`attend`, a chunk of keys at a time: memory ``O(queries * chunk_size)``, also backward.

    The softmax is put together from its parts: each chunk keeps its largest logit and the sum of its exponentials,
    and earlier parts are scaled when a larger logit comes. The backward pass computes each chunk anew.

    Args:
      query, key, value, mask, bias, causal, window, offset: see the top of the module.
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
    _check(query, key, value, mask, bias, window=window, chunk_size=chunk_size)
    queries, keys = query.shape[-3], key.shape[-3]
    filled = chunk_size if keys == 0 else -(-keys // chunk_size) * chunk_size
    parts = (key, -3), (value, -3), (mask, -1), (bias, -1)
    key, value, mask, bias = (_fill(array, axis, filled - keys) for array, axis in parts)
    lowest = jnp.finfo(accum_dtype or accumulator(query.dtype)).min

    def body(carry, start):
        def chunk(array, axis):
            if array is not None:
                return lax.dynamic_slice_in_dim(array, start, chunk_size, array.ndim + axis)

        total, largest, normalizer = carry
        allowed = _allowed(chunk(mask, -1), queries, chunk_size, offset - start, causal, window)
        if filled != keys:
            allowed = both(allowed, (start + jnp.arange(chunk_size) < keys)[None])
        logits = attention_logits(query, chunk(key, -3), accum_dtype=accum_dtype, precision=precision)
        logits = masked_logits(logits, allowed, chunk(bias, -1))
        now = lax.stop_gradient(jnp.maximum(largest, jnp.max(logits, axis=-1)))
        weights = jnp.where(logits > lowest, jnp.exp(logits - now[..., None]), jnp.zeros_like(logits))
        rescale = jnp.exp(largest - now)
        product = functools.partial(jnp.einsum, precision=precision, preferred_element_type=logits.dtype)
        values = product("...hgqk,...khd->...hgqd", weights.astype(value.dtype), chunk(value, -3))
        total = total * rescale[..., None] + values
        return (total, now, normalizer * rescale + jnp.sum(weights, axis=-1)), None

    rows = jax.eval_shape(functools.partial(attention_logits, accum_dtype=accum_dtype), query, key)
    shape, dtype = rows.shape[:-1], rows.dtype
    total, largest = jnp.zeros((*shape, value.shape[-1]), dtype), jnp.full(shape, lowest, dtype)
    body = jax.checkpoint(body, prevent_cse=False)  # the body of a scan needs no barrier
    starts = jnp.arange(0, filled, chunk_size)
    carry = varying_like((total, largest, jnp.zeros(shape, dtype)), query, key, value, mask, bias)
    (total, _, normalizer), _ = lax.scan(body, carry, starts)
    y = total / jnp.where(normalizer == 0, jnp.ones_like(normalizer), normalizer)[..., None]
    y = jnp.moveaxis(y, -2, -4)  # (..., queries, kv_heads, groups, head_dim)
    return y.reshape(*y.shape[:-3], y.shape[-3] * y.shape[-2], y.shape[-1]).astype(query.dtype)


@functools.partial(jax.jit, static_argnames=(*_STATIC, "implementation"), inline=True)
def attend_by_jax(
    query, key, value, *, implementation="cudnn", mask=None, bias=None, causal=False, window=None, offset=None,
    accum_dtype=None, precision=None,
):  # fmt: skip
    """The same as :func:`attend`, by ``jax.nn.dot_product_attention``.

    That averages all values where a query may look at nothing; here such a query gets zeros, as in :func:`attend`.

    Args:
      query, key, value, mask, bias, causal, window, offset: see the top of the module.
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
    _check(query, key, value, mask, bias, window=window)
    options = {"causal": causal, "window": window}
    fused = functools.partial(_dot_product_attention, implementation, **options)
    if implementation == "xla":
        return fused(query, key, value, mask, bias, offset)

    def plain(query, key, value, mask, bias, offset):
        more = options | {"accum_dtype": accum_dtype, "precision": precision}
        return attend(query, key, value, mask=mask, bias=bias, offset=0 if offset is None else offset, **more)

    def on_gpu(*arrays):
        try:
            return fused(*arrays)
        except RuntimeError:  # no cuDNN on this machine, where JAX traces this, but will not compile it
            return plain(*arrays)

    return lax.platform_dependent(query, key, value, mask, bias, offset, cuda=on_gpu, default=plain)


def _dot_product_attention(implementation, query, key, value, mask, bias, offset, causal, window):
    """JAX's function takes one batch axis, a mask with an axis for heads, and no offset."""
    *batch, queries, heads, head_dim = query.shape
    allowed = _allowed(mask, queries, key.shape[-3], 0 if offset is None else offset, causal, window)
    if offset is not None or (window is not None and not causal):  # cuDNN knows windows to the left only
        mask, causal, window = allowed, False, None

    def fit(array):
        lead = () if all(size == 1 for size in array.shape[:-3]) else batch
        array = _with_axes(array, len(batch) + 3) if lead else array.reshape(array.shape[-3:])
        array = jnp.broadcast_to(array, (*lead, array.shape[-3], queries, array.shape[-1]))
        return array.reshape(math.prod(lead), *array.shape[-3:])

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        y = jax.nn.dot_product_attention(
            *(array.reshape(math.prod(batch), *array.shape[-3:]) for array in (query, key, value)),
            bias=None if bias is None else fit(jnp.maximum(bias, jnp.finfo(bias.dtype).min)),
            mask=None if mask is None else fit(mask[..., None, :, :]),
            is_causal=causal,
            local_window_size=None if window is None else (window - 1, 0),
            implementation=implementation,
        ).reshape(*batch, queries, heads, head_dim)
    if mask is None and bias is None:
        return y
    allowed = None if allowed is None else allowed[..., None, :, :]
    allowed = both(allowed, None if bias is None else bias > jnp.finfo(bias.dtype).min)
    seen = jnp.swapaxes(jnp.any(allowed, axis=-1), -1, -2)[..., None]  # (..., queries, heads, 1)
    return jnp.where(_with_axes(seen, y.ndim), y, jnp.zeros_like(y))


@functools.partial(jax.jit, static_argnames="base", inline=True)
def rotary(x, positions, base: float = 10_000.0):
    r"""Turn pairs of features by angles that grow with the position, so that products know distances.

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
    angles = positions[..., None, None].astype(dtype) * _with_axes(wavelengths, positions.ndim + 2)
    angles = jnp.expand_dims(angles, tuple(range(x.ndim - angles.ndim)))
    sine, cosine = jnp.sin(angles).astype(x.dtype), jnp.cos(angles).astype(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def both(mask, other):
    """What both masks allow; each may be ``None``, or have fewer batch axes than the other."""
    if mask is None or other is None:
        return other if mask is None else mask
    ndim = max(mask.ndim, other.ndim)
    return _with_axes(mask, ndim) & _with_axes(other, ndim)


def _allowed(mask, queries, keys, offset, causal, window):
    """What the mask and the distance allow; ``None`` is everything."""
    if not causal and window is None:
        return mask
    return both(mask, distance_mask(queries, keys, offset, causal=causal, window=window))


def _with_axes(array, ndim):
    return jnp.expand_dims(array, tuple(range(ndim - array.ndim)))


def _fill(array, axis, size):
    """Put ``size`` zeros at the end of an axis."""
    if array is None or size == 0:
        return array
    widths = [(0, 0)] * array.ndim
    widths[axis] = 0, size
    return jnp.pad(array, widths)


def _refuse(message):
    raise ValueError(f"attention: {message}")


def _check(query, key, value, mask, bias, **sizes):
    for name, size in sizes.items():
        if size is not None:
            checked(f"attention: {name}", integer, size)
    # The products themselves refuse the rest of what does not fit. Of integers, 1 / sqrt(head_dim) would be 0.
    for name, array in (("query", query), ("key", key), ("value", value)):
        if not is_floating(array):
            _refuse(f"{name} expects floating-point numbers, got {describe(array)}: convert it.")
    if value.shape[:-1] != key.shape[:-1]:
        wanted = "the axes of key, but for the last"
        _refuse(f"value expects {wanted}: got {describe(value)} for {describe(key)}.")
    check_masks(_refuse, mask, bias, query.shape[:-3], query.shape[-2], query.shape[-3], key.shape[-3])


def check_masks(refuse, mask, bias, batch, heads: int, queries: int, keys: int) -> None:
    """Have a mask or a bias refused, in words, that does not fit."""
    if mask is not None and getattr(mask, "dtype", None) != jnp.bool_:
        refuse(f"mask expects Booleans, got {describe(mask)}: True where it may be looked at.")
    each_head = "for one mask a head, give bias=jnp.where(mask, 0.0, -jnp.inf)"
    if bias is not None and not is_floating(bias):
        refuse(f"bias expects floating-point numbers, got {describe(bias)}: {each_head}.")
    for name, array, sizes in (("mask", mask, (queries, keys)), ("bias", bias, (heads, queries, keys))):
        if array is None:
            continue
        shape, lead = array.shape[-len(sizes) :], array.shape[: -len(sizes)]
        if len(shape) < len(sizes) or shape[-1] != keys or not _fits(shape, sizes):
            wanted = "".join(f"{size} or 1, " for size in sizes[:-1]) + str(keys)
            mend = "for padding of shape (..., keys), give mask=present[..., None, :]"
            refuse(f"{name} expects shape (..., {wanted}), got {describe(array)}: {mend}.")
        if len(lead) > len(batch) or not _fits(lead[::-1], batch[::-1]):
            mend = f"heads share one mask; {each_head}"
            refuse(f"{name} expects the batch axes {batch}, got {describe(array)}: {mend}.")


def _fits(sizes, wanted):
    return all(size in (1, want) for size, want in zip(sizes, wanted))
