"""Schedules: learning rates that depend on the number of steps done."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.nn.rules import function as callable_
from mlax_tutorial.optim.tunable import OptimizerError, Tunable, at_least, number, switch, whole

__all__ = ["Schedule", "Function", "LinearDecay", "CosineDecay", "StepDecay", "WarmUp"]


class Schedule(Tunable):
    r"""Base of all schedules: a pure function of the number of steps done, :math:`t = 0, 1, \dots`.

    Give one to an optimizer in place of a learning rate; the optimizer keeps the count in its state. (A plain function of the
    count, such as a schedule of Optax, will do, too: see :class:`Function`.) A schedule
    is a pytree whose numbers are leaves, so another length or another peak never traces again. It takes an array of
    counts, too, which is how to draw it: ``schedule(jnp.arange(1000))``.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> from mlax_tutorial.optim.tunable import at_least, number
      >>> class InverseRoot(optim.Schedule):
      ...     peak: float = number(at_least(0))
      ...     def __call__(self, count):
      ...         return self.peak / jnp.sqrt(jnp.asarray(count, jnp.float32) + 1)
      >>> InverseRoot(0.5)(3)
      Array(0.25, dtype=float32)
    """

    def __call__(self, count: Any) -> jax.Array:
        """The rate of the step after ``count`` others: float32, of the shape of ``count``."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


def rate(value):
    """A learning rate: a finite number of at least 0, a schedule, or a function from the count to a number."""
    if callable(value) and not isinstance(value, type):
        return value if isinstance(value, Schedule) else Function(value)
    return at_least(0, ", an optim.Schedule, or a function of the count")(value)


def at(value: Any, count: Any) -> Any:
    """The number that counts after ``count`` steps: that of a schedule, or else the value itself."""
    return value(count) if isinstance(value, Schedule) else value


class Function(Schedule):
    """Any function from the number of steps done to a number, such as a schedule of Optax.

    Wherever a schedule may stand, the function itself may, too. It is static and counts by identity: another function, or one
    that is made again, is traced again.

    Args:
      function: from a count, an int32 scalar, to a number.

    Raises:
      OptimizerError: if the function returns several numbers for one count.

    Example:
      >>> import optax
      >>> from mlax_tutorial import optim
      >>> optim.SGD(optax.linear_schedule(1.0, 0.0, 4)).learning_rate(2)
      Array(0.5, dtype=float32)
    """

    function: Callable = switch(callable_)

    def __call__(self, count):
        with jax.numpy_dtype_promotion("standard"):  # it was written elsewhere
            found = jnp.asarray(self.function(_counts(count)), jnp.float32)
        if found.ndim > jnp.ndim(count):  # each column of a kernel would get a rate of its own
            wanted = f"{show(self.function)} must return one number for a count"
            raise OptimizerError(f"Function: {wanted}, got {describe(found)}.")
        return found


class _Between(Schedule):
    """Base of what goes from one rate to another in some steps."""

    start: jax.Array = number(at_least(0))
    steps: jax.Array = number(whole)
    end: jax.Array = number(at_least(0), default=0.0)


class LinearDecay(_Between):
    r"""From ``start`` straight to ``end`` in ``steps`` steps: :math:`(1 - f)\, a + f\, b` with :math:`f = \min(t / T, 1)`.

    Args:
      start: the rate of the first step.
      steps: after how many the rate is ``end``, where it stays; a whole number.
      end: the last rate; it may also be the larger.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optim.LinearDecay(1.0, steps=4)(jnp.arange(6)).tolist()
      [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    def __call__(self, count):
        done = _share(count, self.steps)
        return (1 - done) * self.start + done * self.end


class CosineDecay(_Between):
    r"""From ``start`` to ``end`` along half a cosine: :math:`b + (a - b)\,(1 + \cos \pi f) / 2`, :math:`f = \min(t / T, 1)`.

    Args:
      start: the rate of the first step.
      steps: after how many the rate is ``end``, where it stays; a whole number.
      end: the last rate.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> [round(rate, 3) for rate in optim.CosineDecay(1.0, steps=4)(jnp.arange(6)).tolist()]
      [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]

    Reference: Loshchilov and Hutter, *SGDR: Stochastic Gradient Descent with Warm Restarts*, ICLR (2017).
    """

    def __call__(self, count):
        remaining = (1 + jnp.cos(jnp.pi * _share(count, self.steps))) / 2
        return self.end + (self.start - self.end) * remaining


class StepDecay(Schedule):
    r"""Multiply by ``factor`` after every ``every`` steps: :math:`a\, r^{\lfloor t / n \rfloor}`.

    Args:
      start: the rate of the first steps.
      every: how many steps have the same rate; a whole number.
      factor: by which the rate changes.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> optim.StepDecay(1.0, every=2, factor=0.5)(jnp.arange(6)).tolist()
      [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """

    start: jax.Array = number(at_least(0))
    every: jax.Array = number(whole)
    factor: jax.Array = number(at_least(0), default=0.1)

    def __call__(self, count):
        return self.start * self.factor ** (_counts(count) // self.every).astype(jnp.float32)


class WarmUp(Schedule):
    """Rise straight to the first rate of another schedule in ``steps`` steps; then follow that one from its beginning.

    Args:
      schedule: a schedule, a function of the count, or a number, which then stays.
      steps: the length of the rise; a whole number.
      start: the rate of the first step.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import optim
      >>> schedule = optim.WarmUp(optim.LinearDecay(1.0, steps=4), steps=2)
      >>> schedule(jnp.arange(8)).tolist()
      [0.0, 0.5, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]

    Reference: Goyal et al., *Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour* (2017).
    """

    schedule: jax.Array | Schedule = number(rate)
    steps: jax.Array = number(whole)
    start: jax.Array = number(at_least(0), default=0.0)

    def __call__(self, count):
        risen = _share(count, self.steps)
        followed = jnp.maximum(_counts(count) - self.steps, 0)  # 0 while it rises
        return (1 - risen) * self.start + risen * at(self.schedule, followed)


def _counts(count):
    return jnp.asarray(count).astype(jnp.int32)


def _share(count, steps):
    """How much of ``steps`` is done, between 0 and 1."""
    return jnp.clip(_counts(count).astype(jnp.float32) / jnp.asarray(steps, jnp.float32), 0, 1)
