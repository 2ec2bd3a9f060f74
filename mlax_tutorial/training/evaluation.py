"""The mean of a metric over a data set."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial import meshes
from mlax_tutorial.nn import Layer
from mlax_tutorial.nn.arrays import is_array
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.layer import check_layer
from mlax_tutorial.nn.rules import function, integer


def make_evaluation(model: Layer, metric: Callable[[Any, Any], jax.Array], batch_size: int = 256) -> Callable:
    """Compile the mean of a metric over a data set, in inference mode, ``batch_size`` examples at a time.

    Args:
      model: any layer.
      metric: ``(output, target) -> scalar`` for *one* example.
      batch_size: examples at a time, which bounds the memory; the last batch may be smaller.

    Returns:
      ``evaluate(trainables, non_trainables, x, targets, **inputs)``, the mean, a float32 scalar. Further inputs have a leading
      axis of examples, too.

    Raises:
      ValueError: if ``model`` is no layer, ``metric`` no function, or ``batch_size`` no integer of at least 1; in ``evaluate``,
        if there are no examples, ``x``, ``targets`` and ``inputs`` differ in length, or ``metric`` returns more than a scalar.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> evaluate = make_evaluation(nn.F(jnp.negative), is_right)
      >>> float(evaluate((), (), jnp.array([[1.0, 2.0], [3.0, 0.0]]), jnp.array([0, 0])))
      0.5
    """
    check_layer("make_evaluation", model)
    checked("make_evaluation: metric", function, metric)
    checked("make_evaluation: batch_size", integer, batch_size)

    @meshes.over_auto()
    def evaluate(trainables, non_trainables, x, targets, /, **inputs):
        return mean(*meshes.accept((trainables, non_trainables, x, targets, inputs)))

    @jax.jit
    def mean(trainables, non_trainables, x, targets, inputs):
        def one(example):
            x, target, inputs = example
            output, _ = model.fwd(x, trainables, non_trainables, inference_mode=True, **inputs)
            return _measured(metric, output, target)

        check_lengths("evaluate", x, targets, inputs)
        return jnp.mean(jax.lax.map(one, (x, targets, inputs), batch_size=batch_size))

    return evaluate


def _measured(metric, output, target):
    """The metric of one example, which must be a scalar."""
    given = f"one example, an output {describe(output)} and a target {describe(target)}, without an axis for the batch"
    try:
        value = jnp.asarray(metric(output, target), jnp.float32)
    except Exception as error:
        error.add_note(f"This is from the metric of make_evaluation, which is given {given}.")
        raise
    if value.shape:
        raise ValueError(f"evaluate: metric must return a scalar, got shape {value.shape}, for {given}.")
    return value


def is_right(logits: jax.Array, label: jax.Array) -> jax.Array:
    """Whether the largest of ``logits``, shape ``(..., classes)``, is that of ``label``, shape ``(...)``.

    Its mean is the accuracy.

    Raises:
      ValueError: if the shapes do not fit; one-hot labels, say, are refused.

    Example:
      >>> import jax.numpy as jnp
      >>> is_right(jnp.array([[0.1, 0.9], [0.8, 0.2]]), jnp.array([1, 1]))
      Array([ True, False], dtype=bool)
    """
    if jnp.shape(label) != (wanted := logits.shape[:-1]):
        given = f"as logits are of {logits.shape}, got {jnp.shape(label)}"
        raise ValueError(f"is_right: label must be of shape {wanted}, {given}.")
    largest = jnp.argmax(logits, axis=-1)
    return largest == jnp.asarray(label, largest.dtype)


def check_lengths(name, x, targets, inputs):
    """Refuse what is no array of examples, and what differs in length."""
    for other, value in {"x": x, "targets": targets, **inputs}.items():
        if not (is_array(value) and value.ndim):
            got = f"got {describe(value)}: make one of it with jnp.asarray"
            raise ValueError(f"{name}: {other} must be an array with a leading axis of examples, {got}.")
    for other, values in {"targets": targets, **inputs}.items():
        if not len(x) == len(values) > 0:
            got = f"x has {len(x)} examples, but {other} has {len(values)}"
            raise ValueError(f"{name}: {got}; there must be some, and they must belong together.")
