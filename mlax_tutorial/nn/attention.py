"""Attention as functions: logits, mask, softmax, weighted values; and the same in chunks, for long sequences.

Shapes throughout: queries ``(..., queries, heads, head_dim)``, keys and values ``(..., keys, kv_heads,
head_dim)``, where ``kv_heads`` divides ``heads``: each key and value head serves ``heads / kv_heads`` heads of
the query (Ainslie et al. 2023). A mask is Boolean, ``(..., queries, keys)``, the same for all heads; ``True``
means "may be looked at".

JAX traces and differentiates each of the large functions once for all layers of one shape, as in linear.py.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.numeric import accumulator, varying_like


def attention_logits(query, key, *, accum_dtype=None, precision=None):
    r"""How well each query fits each key: :math:`q \cdot k / \sqrt{d}`.

    Args:
      query: ``(..., queries, heads, head_dim)``.
      key: ``(..., keys, kv_heads, head_dim)``.
      accum_dtype: dtype of the result; ``None`` is float32 for half precision, otherwise the input's.
      precision: of the product, see ``jax.lax.Precision``.

    Returns:
      ``(..., kv_heads, heads / kv_heads, queries, keys)`` in ``accum_dtype``.

    Example:
      >>> import jax.numpy as jnp
      >>> attention_logits(jnp.ones((7, 4, 16)), jnp.ones((9, 2, 16))).shape
      (2, 2, 7, 9)
    """
    *batch, queries, heads, head_dim = query.shape
    kv_heads = key.shape[-2]
    query = query * jnp.asarray(1 / math.sqrt(head_dim), query.dtype)
    product = functools.partial(
        jnp.einsum,
        precision=precision,
        preferred_element_type=accum_dtype or accumulator(query.dtype),
    )
    if heads == kv_heads:  # see weighted_values
        return jnp.expand_dims(product("...qhd,...khd->...hqk", query, key), -3)
    grouped = query.reshape(*batch, queries, kv_heads, heads // kv_heads, head_dim)
    return product("...qhgd,...khd->...hgqk", grouped, key)


def attention_weights(logits, mask=None):
    """Softmax over the keys that the mask allows; a query that may look at nothing gets zeros.

    Args:
      logits: ``(..., kv_heads, groups, queries, keys)``.
      mask: ``(..., queries, keys)``, Boolean, or ``None``.

    Returns:
      Weights of the shape and dtype of ``logits``; over the last axis they sum to 1.

    Example:
      >>> import jax.numpy as jnp
      >>> attention_weights(jnp.zeros((1, 1, 2, 2)), jnp.array([[True, False], [True, True]]))[0, 0]
      Array([[1. , 0. ],
             [0.5, 0.5]], dtype=float32)
    """
    if mask is None:
        return jax.nn.softmax(logits, axis=-1)
    mask = mask[..., None, None, :, :]
    # A finite stand-in for minus infinity: where all are masked, infinities would make NaN.
    weights = jax.nn.softmax(jnp.where(mask, logits, jnp.finfo(logits.dtype).min), axis=-1)
    return jnp.where(mask, weights, jnp.zeros_like(weights))


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


@functools.partial(jax.jit, static_argnames=("queries", "keys"), inline=True)
def causal_mask(queries: int, keys: int, offset=0):
    """Each query may look at the keys up to its own place: ``(queries, keys)``, Boolean.

    Args:
      queries: how many queries.
      keys: how many keys.
      offset: place of the first query among the keys; may be traced.

    Example:
      >>> causal_mask(2, 3, offset=1)
      Array([[ True,  True, False],
             [ True,  True,  True]], dtype=bool)
    """
    return jnp.arange(keys)[None] <= (offset + jnp.arange(queries))[:, None]


@functools.partial(jax.jit, static_argnames=("accum_dtype", "precision"), inline=True)
def attend(query, key, value, *, mask=None, accum_dtype=None, precision=None):
    """Attention in its plain form, which stores the weights of all pairs: memory ``O(queries * keys)``.

    Args:
      query, key, value, mask: see the top of the module.
      accum_dtype: dtype of logits and softmax; ``None`` is float32 for half precision, otherwise the input's.
      precision: of the products, see ``jax.lax.Precision``.

    Returns:
      ``(..., queries, heads, head_dim)`` in the dtype of the query.

    Raises:
      ValueError: if the four do not fit together.

    Example:
      >>> import jax.numpy as jnp
      >>> attend(jnp.ones((7, 4, 16)), jnp.ones((9, 2, 16)), jnp.ones((9, 2, 16))).shape
      (7, 4, 16)

    References: Vaswani et al., *Attention Is All You Need* (2017); Ainslie et al., *GQA: Training Generalized
    Multi-Query Transformer Models from Multi-Head Checkpoints* (2023).
    """
    _check("attend", query, key, value, mask)
    logits = attention_logits(query, key, accum_dtype=accum_dtype, precision=precision)
    y = weighted_values(attention_weights(logits, mask), value, precision=precision)
    return y.astype(query.dtype)


@functools.partial(jax.jit, static_argnames=("causal", "chunk_size", "accum_dtype", "precision"), inline=True)
def attend_in_chunks(
    query, key, value, *, mask=None, causal=False, chunk_size=128, accum_dtype=None, precision=None
):
    """The same as :func:`attend`, a chunk of keys at a time: memory ``O(queries * chunk_size)``, also backward.

    The softmax is put together from its parts: each chunk keeps its largest logit and the sum of its exponentials,
    and earlier parts are scaled when a larger logit comes. The backward pass computes each chunk anew.

    Args:
      query, key, value, mask: see the top of the module.
      causal: whether each query may look at earlier keys and its own only; costs no ``queries * keys`` mask.
      chunk_size: keys at a time; what remains makes a last, smaller chunk.
      accum_dtype, precision: as for :func:`attend`.

    Returns:
      ``(..., queries, heads, head_dim)`` in the dtype of the query.

    Raises:
      ValueError: if the four do not fit together, or ``chunk_size`` is less than 1.

    Example:
      >>> import jax.numpy as jnp
      >>> x = jnp.ones((8, 2, 4))
      >>> bool(jnp.allclose(attend_in_chunks(x, x, x, chunk_size=4), attend(x, x, x)))
      True

    Reference: Rabe and Staats, *Self-attention Does Not Need O(n^2) Memory* (2021).
    """
    _check("attend_in_chunks", query, key, value, mask)
    if chunk_size < 1:
        raise ValueError(f"attend_in_chunks: chunk_size must be at least 1, got {chunk_size}.")
    more = tuple(range(value.ndim - max(query.ndim, key.ndim)))  # batch axes of the values alone
    query, key = jnp.expand_dims(query, more), jnp.expand_dims(key, more)
    mask = None if mask is None else jnp.expand_dims(mask, more)
    queries, keys = query.shape[-3], key.shape[-3]
    dtype = jnp.dtype(accum_dtype or accumulator(query.dtype))
    lowest = jnp.finfo(dtype).min

    def body(size, carry, start):
        def chunk(array, axis):
            return lax.dynamic_slice_in_dim(array, start, size, array.ndim + axis)

        total, largest, normalizer = carry
        logits = attention_logits(query, chunk(key, -3), accum_dtype=dtype, precision=precision)
        allowed = None if mask is None else chunk(mask, -1)
        if causal:
            # the chunk starts at `start`, so the first query stands at -start in it
            allowed = both(allowed, causal_mask(queries, size, -start))
        if allowed is not None:
            allowed = allowed[..., None, None, :, :]
            logits = jnp.where(allowed, logits, lowest)
        now = lax.stop_gradient(jnp.maximum(largest, jnp.max(logits, axis=-1)))
        weights = jnp.exp(logits - now[..., None])
        if allowed is not None:
            weights = jnp.where(allowed, weights, jnp.zeros_like(weights))
        rescale = jnp.exp(largest - now)
        values = jnp.einsum(
            "...hgqk,...khd->...hgqd",
            weights.astype(value.dtype),
            chunk(value, -3),
            precision=precision,
            preferred_element_type=dtype,
        )
        return (
            total * rescale[..., None] + values,
            now,
            normalizer * rescale + jnp.sum(weights, axis=-1),
        ), None

    rows = jax.eval_shape(attention_logits, query, key).shape[:-1]
    batch = np.broadcast_shapes(rows[:-3], value.shape[:-3])
    carry = (
        jnp.zeros((*batch, *rows[-3:], value.shape[-1]), dtype),
        jnp.full(rows, lowest, dtype),
        jnp.zeros(rows, dtype),
    )
    carry = varying_like(carry, query, key, value, mask)
    whole = keys - keys % chunk_size
    for size, first, last in ((chunk_size, 0, whole), (keys - whole, whole, keys)):
        if first < last:
            # the body of a scan needs no barrier
            part = jax.checkpoint(functools.partial(body, size), prevent_cse=False)
            carry, _ = lax.scan(part, carry, jnp.arange(first, last, size))
    total, _, normalizer = carry
    y = total / jnp.where(normalizer == 0, jnp.ones_like(normalizer), normalizer)[..., None]
    y = jnp.moveaxis(y, -2, -4)  # (..., queries, kv_heads, groups, head_dim)
    return y.reshape(*y.shape[:-3], y.shape[-3] * y.shape[-2], y.shape[-1]).astype(query.dtype)


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
        raise ValueError(
            "rotary: expects x of shape (..., length, heads, head_dim), head_dim even, and positions (..., length), "
            f"got {describe(x)} and {describe(positions)}."
        )
    dtype, half = accumulator(x.dtype), x.shape[-1] // 2
    wavelengths = jnp.asarray(base, dtype) ** (-jnp.arange(half, dtype=dtype) / jnp.asarray(half, dtype))
    angles = positions[..., None, None].astype(dtype) * lax.broadcast_in_dim(
        wavelengths, (1,) * (positions.ndim + 1) + (half,), (positions.ndim + 1,)
    )
    angles = jnp.expand_dims(angles, tuple(range(x.ndim - angles.ndim)))
    sine, cosine = jnp.sin(angles).astype(x.dtype), jnp.cos(angles).astype(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def both(mask, causal):
    """What both masks allow; the first may be ``None``, and may have batch axes or one row for all queries."""
    return causal if mask is None else jnp.logical_and(*jnp.broadcast_arrays(mask, causal))


def _check(name, query, key, value, mask):
    """Refuse what does not fit together; einsum would speak of letters, and a mask of 0 and -inf mean its opposite."""
    arrays = query, key, value
    fit = all(jnp.issubdtype(getattr(a, "dtype", int), jnp.floating) and a.ndim > 2 for a in arrays)
    if fit:
        (*_, queries, heads, head_dim), (*_, keys, kv_heads, _) = query.shape, key.shape
        fit = kv_heads and heads % kv_heads == 0 and value.shape[-3:-1] == (keys, kv_heads)
        fit = fit and key.shape[-1] == head_dim and _broadcast(*(a.shape[:-3] for a in arrays)) is not None
    if not fit:
        raise ValueError(
            f"{name}: query, key and value expect floating-point numbers, (..., queries, heads, head_dim), "
            "(..., keys, kv_heads, head_dim) and (..., keys, kv_heads, head_dim), where kv_heads divides heads, "
            f"got {', '.join(map(describe, arrays))}."
        )
    wrong = mask is not None and misfit(mask, "query", query, query.shape[:-3], queries, keys)
    if wrong:
        raise ValueError(f"{name}: {wrong}")


def misfit(mask, name, x, batch, queries: int, keys: int) -> str | None:
    """What is wrong with a mask for ``x``, in words; ``None`` if it fits."""
    if getattr(mask, "dtype", None) != jnp.bool_:
        return f"mask expects Booleans, got {describe(mask)}: True where it may be looked at."
    if mask.ndim < 2 or mask.shape[-1] != keys or mask.shape[-2] not in (1, queries):
        return (
            f"mask expects shape (..., {queries} or 1, {keys}), got {describe(mask)}: for padding of shape "
            "(..., keys), give present[..., None, :]."
        )
    if _broadcast(batch, mask.shape[:-2]) != batch:
        return f"mask expects the batch axes of {name}, {describe(x)}, got {describe(mask)}: heads share one mask."
    return None


def _broadcast(*shapes):
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None
