"""What a classifier gets wrong, how sure it is of it, and how sure we may be of that. Pure, and the same under ``jax.jit``."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.arrays import is_floating
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.rules import integer

__all__ = ["Calibration", "calibration", "calibration_error", "confusion", "wilson"]


def confusion(predictions: jax.Array, labels: jax.Array, classes: int) -> jax.Array:
    """Count for each class what it was taken for.

    Those of several batches add up. Its diagonal over its sums along axis 1 is the recall, along axis 0 the precision.

    Args:
      predictions: class numbers, as from ``jnp.argmax(logits, axis=-1)``, of any shape.
      labels: class numbers of the same shape. Pairs with a number outside ``0 … classes - 1``, such as -1 for "no label", do not
        count.
      classes: how many there are.

    Returns:
      Counts, int32, of shape ``(classes, classes)``: in row ``i`` the examples of class ``i``.

    Raises:
      ValueError: if the shapes differ, the class numbers are neither integers nor Booleans, or ``classes`` is no integer from 1
        to 46,340.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import metrics
      >>> metrics.confusion(jnp.array([0, 1, 1, 1]), jnp.array([0, 0, 1, 1]), classes=2)
      Array([[1, 1],
             [0, 2]], dtype=int32)
    """
    if (classes := checked("confusion: classes", integer, classes)) > 46_340:
        raise ValueError(
            f"confusion: classes must be at most 46340, as pairs are counted in int32, got {classes}."
        )
    predictions = _class_numbers("confusion: predictions", predictions).astype(jnp.int32)
    labels = _class_numbers("confusion: labels", labels).astype(jnp.int32)
    _check_shapes("confusion: predictions", predictions.shape, labels.shape)
    known = (0 <= predictions) & (predictions < classes) & (0 <= labels) & (labels < classes)
    cell = jnp.where(known, labels * classes + predictions, classes**2)  # outside, so dropped
    counts = jnp.zeros(classes**2, jnp.int32).at[cell.ravel()].add(1, mode="drop")
    return counts.reshape(classes, classes)


class Calibration(NamedTuple):
    """Examples by their confidence, in bins of equal width: ``count``, the mean ``confidence`` and the ``accuracy`` of each bin."""

    count: jax.Array
    confidence: jax.Array
    accuracy: jax.Array


def calibration(probabilities: jax.Array, labels: jax.Array, bins: int = 15) -> Calibration:
    """How often a classifier is right where it is so and so sure: the numbers of a reliability diagram.

    Args:
      probabilities: as from ``jax.nn.softmax(logits)``, shape ``(n, classes)``.
      labels: class numbers, shape ``(n,)``.
      bins: how many; the first is for a confidence from 0 to ``1 / bins``, that bound included.

    Returns:
      A :class:`Calibration` of arrays of shape ``(bins,)``, counts int32 and the others float32, 0 in an empty bin.

    Raises:
      ValueError: if shapes or dtypes do not fit, or ``bins`` is no integer of at least 1.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import metrics
      >>> probabilities = jnp.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]])
      >>> metrics.calibration(probabilities, jnp.array([0, 1, 0]), bins=2).accuracy
      Array([0.       , 0.6666667], dtype=float32)
    """
    bins = checked("calibration: bins", integer, bins)
    if not is_floating(probabilities) or len(probabilities.shape) != 2 or not probabilities.shape[1]:
        wanted = "an array of floating-point numbers, of shape (n, classes)"
        raise ValueError(f"calibration: probabilities must be {wanted}, got {describe(probabilities)}.")
    labels = _class_numbers("calibration: labels", labels)
    _check_shapes("calibration: labels", labels.shape, probabilities.shape[:-1])
    confidence = jnp.max(probabilities, axis=-1).astype(jnp.float32)
    right = (jnp.argmax(probabilities, axis=-1) == labels).astype(jnp.float32)
    place = jnp.clip(jnp.ceil(confidence * bins).astype(jnp.int32) - 1, 0, bins - 1)

    def total(values):
        return jax.ops.segment_sum(values, place, bins)

    count = total(jnp.ones_like(place))
    some = jnp.maximum(count, 1).astype(jnp.float32)
    return Calibration(count, total(confidence) / some, total(right) / some)


def calibration_error(probabilities: jax.Array, labels: jax.Array, bins: int = 15) -> jax.Array:
    """The expected calibration error: how far confidence is from accuracy, bin by bin, weighed by the examples in each.

    A scalar, float32, 0 at best. It depends on the number of bins, so say which; few examples make it too large.

    Args:
      probabilities, labels, bins: as for :func:`calibration`.

    Reference: Guo et al., *On Calibration of Modern Neural Networks*, ICML (2017).

    Example: 75 % sure, and right half of the time.
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import metrics
      >>> metrics.calibration_error(jnp.array([[0.75, 0.25], [0.75, 0.25]]), jnp.array([0, 1]))
      Array(0.25, dtype=float32)
    """
    count, confidence, accuracy = calibration(probabilities, labels, bins)
    return jnp.sum(count * jnp.abs(confidence - accuracy), dtype=jnp.float32) / jnp.sum(count)


def wilson(right: jax.Array | int, count: jax.Array | int, z: float = 1.96) -> tuple[jax.Array, jax.Array]:
    """The Wilson interval of a proportion: between which bounds the true accuracy lies, after ``right`` of ``count``.

    Unlike ``p ± z sqrt(p (1 - p) / n)`` it stays between 0 and 1, and holds for few examples and for accuracies near 1. It
    tells what the choice of test examples leaves open, not what another seed of the training would.

    Args:
      right, count: how many examples were right, and how many there were, at least one.
      z: 1.96 for 95 %, 2.576 for 99 %.

    Returns:
      The lower and the upper bound, float32.

    Reference: Wilson, *Probable inference, the law of succession, and statistical inference*, JASA 22 (1927).

    Example:
      >>> from mlax_tutorial import metrics
      >>> low, high = metrics.wilson(9023, 10000)
      >>> f"{low:.4f} to {high:.4f}"
      '0.8963 to 0.9080'
    """
    right, count = (jnp.asarray(number).astype(jnp.float32) for number in (right, count))
    share, spread = right / count, z**2 / count
    center = share + spread / 2
    reach = jnp.sqrt(spread * share * (1 - share) + spread**2 / 4)
    return (center - reach) / (1 + spread), (center + reach) / (1 + spread)


def _class_numbers(what, numbers):
    """As an array; fractions would be cut off without a word."""
    array = numbers if isinstance(numbers, jax.Array) else np.asarray(numbers)
    # An empty list is an array of float64.
    if array.size and not (jnp.issubdtype(array.dtype, jnp.integer) or array.dtype == bool):
        mend = "of logits, give jnp.argmax(logits, axis=-1)"
        raise ValueError(
            f"{what} must be class numbers, which are integers, got {describe(numbers)}: {mend}."
        )
    return jnp.asarray(array)


def _check_shapes(what, got, wanted):
    if got != wanted:
        raise ValueError(f"{what} must be of shape {wanted}, got {got}: one number for each example.")
