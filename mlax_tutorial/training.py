"""A training loop in pieces: shuffled batches, one compiled step, evaluation, a progress bar.

Each is a small function that can be used without the others; `fit` puts them together.
"""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial.nn import Layer
from mlax_tutorial.nn.hyperparameters import integer, show
from mlax_tutorial.optim.drop_in import advance, compile_step


def batches(key: jax.Array, size: int, batch_size: int) -> jax.Array:
    """Draw the order of one epoch, cut into batches.

    Every example comes at most once. The ``size % batch_size`` examples that do not fill a batch are left out
    (others in each epoch), so that all batches have one shape and the step is traced once.

    Args:
      key: a typed key, a fresh one for each epoch.
      size: how many examples there are.
      batch_size: examples in a batch, at most ``size``.

    Returns:
      Indices, int32, of shape ``(size // batch_size, batch_size)``.

    Raises:
      ValueError: if ``batch_size`` is no integer between 1 and ``size``.

    Example:
      >>> import jax
      >>> batches(jax.random.key(0), size=10, batch_size=3).shape
      (3, 3)
    """
    _check_batch_size("batches", size, batch_size)
    order = jax.random.permutation(key, jnp.arange(size, dtype=jnp.int32))
    return order[: size - size % batch_size].reshape(-1, batch_size)


def make_step(model: Layer, loss: Callable[[Any, Any], jax.Array]) -> Callable:
    """Compile one step of training: forward, backward and update in a single program.

    Args:
      model: any layer.
      loss: ``(outputs, targets) -> scalar``, for instance a mean of an Optax loss.

    Returns:
      ``step(optimizer, trainables, non_trainables, state, key, x, targets)``, which returns the new
      ``(trainables, non_trainables, state)`` and the loss before the update. The optimizer is one of
      :mod:`mlax_tutorial.optim` (an argument like any other, so a new learning rate does not trace again) or
      any of Optax'. ``key`` is ``None`` for a model that draws nothing.

      The old trainables, non_trainables and state are *donated*: their memory becomes that of the new ones,
      so do not use them again.

    Example:
      >>> import jax, jax.numpy as jnp, optax
      >>> from mlax_tutorial import nn, optim
      >>> model, x, y = nn.Linear(1), jnp.ones((8, 3)), jnp.ones((8, 1))
      >>> step = make_step(model, lambda outputs, targets: jnp.mean((outputs - targets) ** 2))
      >>> trainables, non_trainables = model.init(jax.random.key(0), x)
      >>> optimizer = optim.SGD(0.1)
      >>> state = optimizer.init(trainables)
      >>> for _ in range(20):
      ...     trainables, non_trainables, state, value = step(optimizer, trainables, non_trainables, state, None, x, y)
      >>> bool(value < 1e-3)
      True
    """

    def objective(trainables, non_trainables, key, x, targets):
        outputs, non_trainables = model.fwd(x, trainables, non_trainables, key=key)
        return loss(outputs, targets), non_trainables

    def step(optimizer, trainables, non_trainables, state, key, x, targets):
        (value, non_trainables), gradients = jax.value_and_grad(objective, has_aux=True)(
            trainables, non_trainables, key, x, targets
        )
        trainables, state = advance(optimizer, gradients, state, trainables)
        return trainables, non_trainables, state, value

    return compile_step("make_step", step)


def make_evaluation(model: Layer, metric: Callable[[Any, Any], jax.Array], batch_size: int = 256) -> Callable:
    """Compile the mean of a metric over a data set, in inference mode, ``batch_size`` examples at a time.

    Args:
      model: any layer.
      metric: ``(output, target) -> scalar`` for *one* example.
      batch_size: examples at a time, which bounds the memory; the last batch may be smaller.

    Returns:
      ``evaluate(trainables, non_trainables, x, targets)``, the mean, a float32 scalar.

    Raises:
      ValueError: if ``batch_size`` is no integer of at least 1; in ``evaluate``, if there are no examples, ``x`` and ``targets``
        differ in length, or ``metric`` returns more than a scalar.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> evaluate = make_evaluation(nn.F(jnp.negative), is_right)
      >>> float(evaluate((), (), jnp.array([[1.0, 2.0], [3.0, 0.0]]), jnp.array([0, 0])))
      0.5
    """

    _check_whole("make_evaluation: batch_size", batch_size, 1)

    @jax.jit
    def evaluate(trainables, non_trainables, x, targets):
        _check_lengths("evaluate", x, targets)
        if not len(x):
            raise ValueError("evaluate: there are no examples, so they have no mean.")

        def one(example):
            x, target = example
            output, _ = model.fwd(x, trainables, non_trainables, inference_mode=True)
            value = jnp.asarray(metric(output, target), jnp.float32)
            if value.shape:
                raise ValueError(
                    f"evaluate: metric must return a scalar for one example, got shape {value.shape}, from an output "
                    f"of shape {jnp.shape(output)} and a target of shape {jnp.shape(target)}."
                )
            return value

        return jnp.mean(jax.lax.map(one, (x, targets), batch_size=batch_size))

    return evaluate


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
    if jnp.shape(label) != logits.shape[:-1]:
        raise ValueError(
            f"is_right: label must be of shape {logits.shape[:-1]}, as logits are of {logits.shape}, got "
            f"{jnp.shape(label)}."
        )
    largest = jnp.argmax(logits, axis=-1)
    return largest == jnp.asarray(label, largest.dtype)


def _check_batch_size(name, size, batch_size):
    _check_whole(f"{name}: size", size, 0)
    _check_whole(f"{name}: batch_size", batch_size, 1)
    if batch_size > size:
        raise ValueError(f"{name}: batch_size must be from 1 to size = {size}, got {batch_size}.")


def _check_whole(what, value, minimum):
    try:
        integer(value, minimum)
    except ValueError as error:
        raise ValueError(f"{what} {error}, got {show(value)}.") from None


def _check_lengths(name, x, targets):
    if len(x) != len(targets):
        raise ValueError(
            f"{name}: x has {len(x)} examples, but targets has {len(targets)}; they must belong together."
        )


def fit(
    key: jax.Array,
    step: Callable,
    optimizer: Any,
    variables: tuple[Any, Any, Any],
    x: jax.Array,
    targets: jax.Array,
    *,
    epochs: int,
    batch_size: int,
    draws: bool = False,
    each_epoch: Callable[[int, Any, Any, float], Any] | None = None,
) -> tuple[Any, Any, Any]:
    """Train for some epochs over data that fits on the device.

    Args:
      key: a typed key, from which the order of each epoch and the key of each step are split.
      step: as `make_step` makes it.
      optimizer: passed to each step; or a function from the number of the epoch (from 0) to one, a schedule.
      variables: ``(trainables, non_trainables, state)`` to begin with. They are donated.
      x, targets: arrays with one leading axis of examples.
      epochs: how often to go through the data.
      batch_size: examples in a batch.
      draws: whether the model draws random numbers in training (``model.needs_key``).
      each_epoch: called after each epoch with its number, the trainables, the non_trainables and the mean loss.
        Arrays it was given are donated to the next step: look at them, but do not keep them.

    Returns:
      ``(trainables, non_trainables, state)`` at the end.

    Raises:
      ValueError: if ``x`` and ``targets`` differ in length, ``batch_size`` does not fit, or ``epochs`` is no integer of at
        least 0.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, optim
      >>> model, x = nn.Linear(1), jax.random.normal(jax.random.key(0), (64, 3))
      >>> y = jnp.sum(x, axis=-1, keepdims=True)
      >>> step = make_step(model, lambda outputs, targets: jnp.mean((outputs - targets) ** 2))
      >>> optimizer, (trainables, rest) = optim.SGD(0.1), model.init(jax.random.key(1), x)
      >>> variables = trainables, rest, optimizer.init(trainables)
      >>> trainables, _, _ = fit(jax.random.key(2), step, optimizer, variables, x, y, epochs=20, batch_size=16)
      >>> bool(jnp.allclose(trainables["kernel"], 1, atol=1e-2))
      True
    """
    _check_lengths("fit", x, targets)
    _check_whole("fit: epochs", epochs, 0)
    _check_batch_size("fit", len(x), batch_size)
    calls = callable(optimizer) and not isinstance(
        optimizer, type
    )  # a class is a slip, which the step refuses
    schedule = optimizer if calls else lambda epoch: optimizer
    x, targets = jnp.asarray(x), jnp.asarray(targets)  # to the device once, not batch by batch
    steps = epochs * (len(x) // batch_size)
    with Progress(steps) as progress:
        for epoch in range(epochs):
            key, order_key, steps_key = jax.random.split(key, 3)
            order = batches(order_key, len(x), batch_size)
            keys = jax.random.split(steps_key, len(order)) if draws else [None] * len(order)
            current, losses = schedule(epoch), []
            for indices, step_key in zip(order, keys):
                *variables, value = step(current, *variables, step_key, *_take(indices, x, targets))
                losses.append(value)  # not converted to a float here: that would wait for each step
                progress.advance()
            if each_epoch is not None:
                trainables, non_trainables, _ = variables
                each_epoch(epoch, trainables, non_trainables, float(jnp.mean(jnp.stack(losses))))
    return tuple(variables)


class Progress:
    """A progress bar on standard error. It draws in a terminal only: a notebook keeps what is printed for ever.

    Example:
      >>> with Progress(total=3) as progress:
      ...     for _ in range(3):
      ...         progress.advance()
    """

    WIDTH = 30

    def __init__(self, total: int, file=None):
        self.total, self.done, self.file = max(total, 1), 0, file or sys.stderr
        self.shown = None

    def advance(self) -> None:
        """One more is done."""
        self.done += 1
        filled = self.WIDTH * self.done // self.total
        if filled != self.shown and self._draws():
            self.shown = filled
            bar = "█" * filled + "░" * (self.WIDTH - filled)
            print(f"\r{bar} {self.done}/{self.total}", end="", file=self.file, flush=True)

    def _draws(self) -> bool:
        return hasattr(self.file, "isatty") and self.file.isatty()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.shown is not None:  # leave the line to what is printed next
            print(
                "\r" + " " * (self.WIDTH + 2 + 2 * len(str(self.total))) + "\r",
                end="",
                file=self.file,
                flush=True,
            )


@jax.jit
def _take(indices, x, targets):
    """One batch. Compiled, because indexing op by op costs as much as a quarter of a small network's step."""
    return x[indices], targets[indices]
