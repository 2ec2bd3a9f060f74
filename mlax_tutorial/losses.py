"""Losses whose plain form would need too much memory."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.arrays import accumulator, is_array, is_floating, is_integer, varying_like
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.rules import integer, probability


@functools.partial(jax.jit, static_argnames=("chunk_size", "label_smoothing", "precision"))
def chunked_cross_entropy(
    hidden, kernel, labels, weights=None, *, chunk_size: int = 1024, label_smoothing: float = 0.0, precision=None
):  # fmt: skip
    """The mean cross entropy of ``hidden @ kernel``, whose logits never exist whole, not in the backward pass either.

    A chunk of tokens at a time: memory ``O(chunk_size * vocab)`` in place of ``O(tokens * vocab)``. The backward pass computes
    each chunk's logits once more, and holds little more than these and the gradient of the kernel (compiled by JAX 0.7, two chunks'
    logits, in both passes). For half precision, logits, sums and that gradient are float32.

    Args:
      hidden: ``(..., features)``, floating: what the last layer before the logits gives.
      kernel: ``(features, vocab)``: that of a ``Linear``, or the table of an ``Embed``, transposed, ``table.T``.
      labels: ``(...)``, integers. One outside of ``0, …, vocab - 1`` makes the loss NaN, unless its weight is 0.
      weights: ``(...)``, numbers or Booleans, how much each token counts; by default all alike. What ``hidden`` and ``labels``
        hold where it is 0 has no influence.
      chunk_size: how many tokens at a time; all, if there are fewer.
      label_smoothing: how much of the labels' probability is spread over all ids.
      precision: of the products, see ``jax.lax.Precision``.

    Returns:
      ``sum(weights * loss) / sum(weights)``, a scalar; 0 if the weights are all 0.

    Raises:
      ValueError: if shapes or dtypes do not fit, ``chunk_size`` is no integer of at least 1, or ``label_smoothing`` not in [0, 1].

    Example:
      >>> import jax, jax.numpy as jnp
      >>> hidden, kernel, labels = jnp.zeros((2, 5, 4)), jnp.ones((4, 8)), jnp.zeros((2, 5), int)
      >>> round(chunked_cross_entropy(hidden, kernel, labels, chunk_size=3).item(), 4)  # log(8)
      2.0794

    References: Szegedy et al., *Rethinking the Inception Architecture for Computer Vision* (2016), for label smoothing; Wijmans et
    al., *Cut Your Losses in Large-Vocabulary Language Models* (2024), for losses without logits.
    """
    checked("chunked_cross_entropy: chunk_size", integer, chunk_size)
    checked("chunked_cross_entropy: label_smoothing", probability, label_smoothing)
    arrays = hidden, kernel, labels, *([] if weights is None else [weights])
    fit = is_floating(hidden) and is_floating(kernel) and is_integer(labels) and is_array(arrays[-1])
    fit = fit and kernel.ndim == 2 and hidden.shape == (*labels.shape, kernel.shape[0])
    if not fit or (weights is not None and weights.shape != labels.shape):
        wanted = "hidden (..., features) and kernel (features, vocab), floating, labels (...), integers, and weights (...)"
        got = ", ".join(map(describe, arrays))
        raise ValueError(f"chunked_cross_entropy: expects {wanted}, got {got}.")
    features, vocab = kernel.shape
    chunk_size = min(chunk_size, max(labels.size, 1))  # few tokens are not padded to a whole chunk
    labels = labels.astype(jnp.int32)  # int8 cannot hold vocab, which stands for what is no label
    wide = accumulator(hidden.dtype)
    weights = jnp.ones(labels.shape, wide) if weights is None else weights.astype(wide)
    count = -(-labels.size // chunk_size)
    kernel = kernel.astype(wide)  # so that its gradient is summed over the chunks in float32

    def chunks(array, *axes):
        array = array.reshape(labels.size, *axes)
        array = jnp.pad(array, [(0, count * chunk_size - labels.size)] + [(0, 0)] * len(axes))
        return array.reshape(count, chunk_size, *axes)

    def add(total, each):
        hidden, labels, weights = each
        counts = weights != 0
        hidden = jnp.where(counts[:, None], hidden, jnp.zeros_like(hidden))
        logits = jnp.matmul(
            hidden, kernel.astype(hidden.dtype), precision=precision, preferred_element_type=wide
        )
        wanted = _own(logits, labels)
        if label_smoothing:  # 0 times the mean would be NaN where a logit is minus infinity
            wanted = (1 - label_smoothing) * wanted + label_smoothing * jnp.mean(logits, axis=-1)
        loss = jax.nn.logsumexp(logits, axis=-1) - wanted
        return total + jnp.sum(jnp.where(counts, weights * loss, jnp.zeros_like(loss))), None

    each = chunks(hidden, features), chunks(labels), chunks(weights)
    total, _ = lax.scan(
        jax.checkpoint(add, prevent_cse=False), varying_like(jnp.zeros((), wide), each, kernel), each
    )
    sum_of_weights = jnp.sum(weights)
    return total / jnp.where(sum_of_weights == 0, jnp.ones_like(sum_of_weights), sum_of_weights)


@jax.custom_jvp
def _own(logits, labels):
    """The logit of each label; NaN for what is none."""
    places = jnp.where(labels < 0, logits.shape[-1], labels)[:, None]
    return jnp.take_along_axis(logits, places, axis=-1, mode="fill", fill_value=jnp.nan)[:, 0]


@_own.defjvp
def _own_jvp(primals, tangents):
    """By a comparison: the transpose of a gather is a scatter, which needs an array of its own, as large as the logits."""
    (logits, labels), (tangent, _) = primals, tangents
    own = labels[:, None] == lax.broadcasted_iota(labels.dtype, logits.shape, 1)
    return _own(logits, labels), jnp.sum(jnp.where(own, tangent, jnp.zeros_like(tangent)), axis=-1)
