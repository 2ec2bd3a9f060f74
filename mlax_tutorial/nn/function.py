"""``F`` and ``Flatten``: layers without variables."""

import functools
import math

import jax

from mlax_tutorial.nn.arrays import canonical
from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.rules import Function, Size, Switch

# All that treat each element by itself, and take nothing but the input.
ACTIVATIONS = (
    "celu elu gelu hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus "
    "squareplus tanh"
).split()
ACTIVATIONS = frozenset(getattr(jax.nn, name) for name in ACTIVATIONS)


class F(Layer):
    """A pure function as a layer: ``y = train_fn(x)``.

    Args:
      train_fn: a pure function of the input. Functions count by identity, and a
        ``functools.partial`` by its parts: ``F(partial(jax.nn.leaky_relu, negative_slope=0.2))`` written twice is the same layer.
      infer_fn: what to apply instead in ``inference_mode``; by default ``train_fn``.
      decodes: whether the function treats each step of a sequence by itself, so that the layer may ``decode``. ``None`` is
        yes for activations of ``jax.nn``, ``jax.nn.relu``, say, and partials of them, and no for all others.

    Raises:
      LayerError: if ``inference_mode`` is traced and there is an ``infer_fn`` to choose; from ``init_cache`` and
        ``decode``, if the function is no such activation and ``decodes`` is not set.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> nn.F(jax.nn.relu).fwd(jnp.array([-1.0, 2.0]), (), ())
      (Array([0., 2.], dtype=float32), ())
    """

    train_fn: Function
    infer_fn: Function | None = None
    decodes: Switch | None = None

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if self.infer_fn is None:
            return self.train_fn(canonical(x)), non_trainables
        self.check_inference_mode(inference_mode)
        return (self.infer_fn if inference_mode else self.train_fn)(canonical(x)), non_trainables

    def check_decodes(self):
        function = self.infer_fn or self.train_fn
        function = function.func if isinstance(function, functools.partial) else function
        if self.decodes is None and function not in ACTIVATIONS:
            why = f"{show(function)} may mix steps, or depend on their place"
            self.refuse(
                f"does not decode: {why}. If it treats each step by itself, say nn.F(…, decodes=True)."
            )
        super().check_decodes()


class Flatten(Layer):
    """Merge the last ``axes`` axes into one: ``(..., a, b) -> (..., a * b)`` for two.

    Args:
      axes: how many trailing axes to merge. Batch axes stay as they are: an image of 28 x 28 is
        ``Flatten(2)``, alone or in a batch.

    Raises:
      LayerError: if ``x`` is no array or has fewer axes.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> nn.Flatten(2).fwd(jnp.ones((32, 28, 28)), (), ())[0].shape
      (32, 784)
    """

    axes: Size
    decodes = property(lambda self: self.axes == 1)

    def check_input(self, x):
        return self.check_array(x, minimum_ndim=self.axes)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x = self.check_input(x)
        batch = x.shape[: len(x.shape) - self.axes]
        return x.reshape(*batch, math.prod(x.shape[len(batch) :])), non_trainables
