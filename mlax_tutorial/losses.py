"""Losses whose plain form would need too much memory."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.kinds import integer, probability
from mlax_tutorial.nn.numeric import accumulator, varying_like


@functools.partial(jax.jit, static_argnames=("chunk_size", "label_smoothing", "precision"))
def chunked_cross_entropy(
    hidden, kernel, labels, weights=None, *, chunk_size: int = 1024, label_smoothing: float = 0.0, precision=None
):  # fmt: skip
    """The mean cross entropy of ``hidden @ kernel``, whose logits never exist whole, not in the backward pass either.

    A chunk of tokens at a time: memory ``O(chunk_size * vocab)`` in place of ``O(tokens * vocab)``. The backward pass computes
    each chunk's logits once more. Logits and sums are float32 for half precision.

    Args:
      hidden: ``(..., features)``, floating: what the last layer before the logits gives.
      kernel: ``(features, vocab)``: that of a ``Linear``, or the table of an ``Embed``, transposed, ``table.T``.
      labels: ``(...)``, integers. One outside of ``0, …, vocab - 1`` makes the loss NaN, unless its weight is 0.
      weights: ``(...)``, numbers or Booleans, how much each token counts; by default all alike. What ``hidden`` and ``labels``
        hold where it is 0 has no influence.
      chunk_size: how many tokens at a time.
      label_smoothing: how much of the labels' probability is spread over all ids.
      precision: of the products, see ``jax.lax.Precision``.

    Returns:
      ``sum(weights * loss) / sum(weights)``, a scalar; 0 if the weights are all 0.

    Raises:
      ValueError: if the shapes do not fit, ``chunk_size`` is no integer of at least 1, or ``label_smoothing`` not in [0, 1].

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
    features, vocab = kernel.shape
    if hidden.shape != (*labels.shape, features) or (weights is not None and weights.shape != labels.shape):
        got = ", ".join(map(describe, (hidden, kernel, labels, *([] if weights is None else [weights]))))
        wanted = "hidden (..., features), kernel (features, vocab), labels and weights (...)"
        raise ValueError(f"chunked_cross_entropy: expects {wanted}, got {got}.")
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
        places = jnp.where(labels < 0, vocab, labels)[:, None]
        own = jnp.take_along_axis(logits, places, axis=-1, mode="fill", fill_value=jnp.nan)[:, 0]
        wanted = (1 - label_smoothing) * own + label_smoothing * jnp.mean(logits, axis=-1)
        loss = jax.nn.logsumexp(logits, axis=-1) - wanted
        return total + jnp.sum(jnp.where(counts, weights * loss, jnp.zeros_like(loss))), None

    each = chunks(hidden, features), chunks(labels), chunks(weights)
    total, _ = lax.scan(
        jax.checkpoint(add, prevent_cse=False), varying_like(jnp.zeros((), wide), each, kernel), each
    )
    sum_of_weights = jnp.sum(weights)
    return total / jnp.where(sum_of_weights == 0, jnp.ones_like(sum_of_weights), sum_of_weights)
