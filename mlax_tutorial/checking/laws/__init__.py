"""The laws that every layer and every optimizer obeys: those of the package, and a reader's.

`LAYER` and `OPTIMIZER` are tables of laws: each has a name, a sentence, and a check. The package's own tests run them over all
layers and optimizers (``tests/laws/``), exercises by `checks.obeys_laws` and `checks.obeys_optimizer_laws`, and in a notebook
`report` and `report_optimizer` make a table of those that hold and those that are broken.
"""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import settings
from mlax_tutorial.checking.describe import describe, kind
from mlax_tutorial.checking.laws.derivatives import Disagreement, check_derivatives
from mlax_tutorial.checking.laws.law import Law, Laws
from mlax_tutorial.checking.laws.layers import LAYER
from mlax_tutorial.checking.laws.optimizer_subject import OptimizerSubject
from mlax_tutorial.checking.laws.optimizers import OPTIMIZER
from mlax_tutorial.checking.laws.report import Report
from mlax_tutorial.checking.laws.subject import DRAWS, GATES, STATISTICS, SUMS, LayerSubject
from mlax_tutorial.checking.outcome import Failed, NotAttempted

__all__ = [
    "DRAWS",
    "GATES",
    "LAYER",
    "OPTIMIZER",
    "STATISTICS",
    "SUMS",
    "Disagreement",
    "Law",
    "Laws",
    "LayerSubject",
    "OptimizerSubject",
    "Report",
    "check_derivatives",
    "obeys_laws",
    "obeys_optimizer_laws",
    "report",
    "report_optimizer",
]


def subject_of(layer, x, batch_axes=1, **options):
    """The layer as a `LayerSubject`, with the shape of one example of a batch ``x``."""
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(f"x must be an array, or a jax.ShapeDtypeStruct, got {kind(x)}")
    if len(x.shape) < batch_axes:
        raise ValueError(f"x has {len(x.shape)} axes, and {batch_axes} of them should be batch axes")
    if jnp.issubdtype(x.dtype, jnp.integer) and options.get("ids") is None:
        if isinstance(x, jax.ShapeDtypeStruct) or not np.size(x):
            raise ValueError("x holds integers: say below which number they are, with ids=…")
        options["ids"] = int(np.max(x)) + 1
    return LayerSubject(layer, x.shape[batch_axes:], **options)


def obeys_laws(layer, x, *, but=(), batch_axes=1, **options):
    """The layer obeys the laws that the package's own layers obey; the report names the first that it breaks.

    Args:
      layer: an instance, of a class that derives from ``nn.Layer`` or of any other with ``init`` and ``fwd``.
      x: a batch of inputs, or its ``jax.ShapeDtypeStruct``: only shape and dtype count, and the largest of integers.
      but: names of laws to leave out, keys of `laws.LAYER`.
      batch_axes: how many leading axes of ``x`` are batch axes.
      **options: those of `laws.LayerSubject`: ``draws``, ``averages``, ``accumulates``, ``ids``, ``of_dtype``, ``same``, ``unlike``, ….
    """
    for _, failure in LAYER.broken(subject_of(layer, x, batch_axes, **options), but):
        if failure is not None:
            raise failure from None


def obeys_optimizer_laws(make, *, but=(), **options):
    """The optimizer obeys the laws that the package's own optimizers obey; the report names the first that it breaks.

    Args:
      make: a function (or the class itself) from a learning rate to the optimizer.
      but: names of laws to leave out, keys of `laws.OPTIMIZER`.
      **options: those of `laws.OptimizerSubject`: ``peer`` (of Optax, at a learning rate of 0.1), ``wide``, ``frozen``, ….
    """
    for _, failure in OPTIMIZER.broken(OptimizerSubject(make, **options), but):
        if failure is not None:
            raise failure from None


def report(layer, x, *, but=(), batch_axes=1, **options):
    """A table of the laws of layers, which hold and which are broken. Takes what `obeys_laws` takes."""
    with settings.fixed(), _as_type_error():
        return _report(LAYER, subject_of(layer, x, batch_axes, **options), describe(layer), but)


def report_optimizer(make, *, but=(), **options):
    """A table of the laws of optimizers, which hold and which are broken. Takes what `obeys_optimizer_laws` takes."""
    with settings.fixed(), _as_type_error():
        subject = OptimizerSubject(make, **options)
        return _report(OPTIMIZER, subject, subject.name, but)


@contextlib.contextmanager
def _as_type_error():
    """Outside of an exercise, what is no layer or no optimizer is an ordinary error."""
    try:
        yield
    except NotAttempted:
        raise TypeError("there is nothing to look at yet: a method is only a stub") from None
    except Failed as failure:
        raise TypeError(failure.message) from None


def _report(laws, subject, name, but):
    found = {law.name: (law, failure) for law, failure in laws.broken(subject, but)}
    but = {but} if isinstance(but, str) else set(but)
    asked = [law for law in laws.values() if law.name not in but and law.applies(subject)]
    return Report(name, [found.get(law.name, (law, ...)) for law in asked])
