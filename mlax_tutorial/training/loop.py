"""Shuffled batches, and the loop over them."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from mlax_tutorial import meshes
from mlax_tutorial.nn import Layer
from mlax_tutorial.nn.arrays import is_key
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.rules import integer
from mlax_tutorial.training.evaluation import check_lengths
from mlax_tutorial.training.log import Log
from mlax_tutorial.training.progress import Progress
from mlax_tutorial.training.state import State


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
    checked("batches: size", functools.partial(integer, minimum=0), size)
    _check_batch_size("batches", size, batch_size)
    order = jax.random.permutation(key, jnp.arange(size, dtype=jnp.int32))
    return order[: size - size % batch_size].reshape(-1, batch_size)


@meshes.over_auto()
def fit(
    key: jax.Array, step: Callable, optimizer: Any, variables: tuple[Any, Any, Any], x: jax.Array,
    targets: jax.Array, *, epochs: int, batch_size: int, inputs: dict[str, jax.Array] | None = None,
    draws: bool | None = None, each_epoch: Callable[[int, Any, Any, float], Any] | None = None, log: Log | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Train for some epochs over data that fits on the device.

    Several seeds train in one program under ``jax.vmap``, over keys and variables, as in the example. Nobody sees numbers of a training under
    ``jax.vmap`` before its end, so neither ``each_epoch`` nor ``log`` goes with it.

    Args:
      key: a typed key, from which the order of each epoch and the key of each step are split.
      step: as `make_step` makes it.
      optimizer: passed to each step; or a function from the number of the epoch (from 0) to one, a schedule.
      variables: ``(trainables, non_trainables, optimizer_state)`` to begin with, a triple or a :class:`State`. They are donated.
      x, targets: arrays with one leading axis of examples.
      epochs: how often to go through the data.
      batch_size: examples in a batch.
      inputs: further inputs of the model, by name, each with one leading axis of examples, too.
      draws: whether each step is given a key; by default what ``step.needs_key`` says, and for a step without it, yes.
      each_epoch: called after each epoch with its number, the trainables, the non_trainables and the mean loss; for a step with
        ``has_aux``, with the means of all that its loss returned, in its structure: ``(loss, metrics)``. They stay on the device
        until the epoch is over. Arrays it was given are donated to the next step: look at them, but do not keep them.
      log: a :class:`Log`, which gets what each step told: ``{"epoch": …, "loss": …}``, and the ``"metrics"`` of a step with
        ``has_aux``. Steps are counted on from its last.

    Returns:
      ``(trainables, non_trainables, optimizer_state)`` at the end.

    Raises:
      ValueError: if ``x``, ``targets`` and ``inputs`` are no arrays or differ in length, ``batch_size`` does not fit, ``epochs`` is no integer of
        at least 0, ``key`` is no typed key, or ``each_epoch`` or ``log`` is given under a transformation.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, optim
      >>> from mlax_tutorial.training import fit, make_step
      >>> model, x = nn.Linear(1), jax.random.normal(jax.random.key(0), (64, 3))
      >>> y = jnp.sum(x, axis=-1, keepdims=True)
      >>> step = make_step(model, lambda outputs, targets: jnp.mean((outputs - targets) ** 2))
      >>> optimizer, (trainables, rest) = optim.SGD(0.1), model.init(jax.random.key(1), x)
      >>> variables = trainables, rest, optimizer.init(trainables)
      >>> trainables, _, _ = fit(jax.random.key(2), step, optimizer, variables, x, y, epochs=20, batch_size=16)
      >>> bool(jnp.allclose(trainables["kernel"], 1, atol=1e-2))
      True

      Five seeds in one program:

      >>> def start(key):
      ...     trainables, rest = model.init(key, x)
      ...     return trainables, rest, optimizer.init(trainables)
      >>> def train(key, variables):
      ...     return fit(key, step, optimizer, variables, x, y, epochs=20, batch_size=16)
      >>> start_keys, keys = jax.random.split(jax.random.key(3), (2, 5))
      >>> trainables, _, _ = jax.vmap(train)(keys, jax.vmap(start)(start_keys))
      >>> trainables["kernel"].shape
      (5, 3, 1)
    """
    inputs = inputs or {}
    _check_fit(key, x, targets, inputs, epochs, batch_size)
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((key, variables, x, targets)))
    if traced and (each_epoch is not None or log is not None):
        raise ValueError(
            "fit: under a transformation such as jax.vmap there are no numbers before the end, which each_epoch and log are given: leave both out, "
            "and evaluate what fit returns."
        )
    state = State(*variables)
    data = jax.tree.map(jnp.asarray, (x, targets, inputs))  # to the device once, not batch by batch
    key, data = meshes.accept((key, data))
    # A class or a layer is a slip, which the step refuses.
    calls = callable(optimizer) and not isinstance(optimizer, (type, Layer))
    schedule = optimizer if calls else lambda epoch: optimizer
    draws = getattr(step, "needs_key", True) if draws is None else draws
    take = _taker(data)
    with Progress(epochs * (len(x) // batch_size)) as progress:
        for epoch in range(epochs):
            key, order_key, steps_key = jax.random.split(key, 3)
            order = batches(order_key, len(x), batch_size)
            keys = jax.random.split(steps_key, len(order)) if draws else None
            current, told = meshes.accept(schedule(epoch)), []
            for number in range(len(order)):
                step_key, (some_x, some_targets, some_inputs) = take(number, order, keys, data)
                state, found = step(current, state, step_key, some_x, some_targets, **some_inputs)
                if log is not None:
                    log.write(log.step + 1, {"epoch": epoch, **_line(found)})
                told.append(found)  # not converted to floats here: that would wait for each step
                progress.advance()
            if each_epoch is not None:
                # In NumPy: jnp.stack would be compiled, slowly, for this number of them. In float64: it would add bfloat16 in bfloat16.
                means = jax.tree.map(
                    lambda *values: np.mean(np.asarray(values, np.float64), axis=0).tolist(),
                    *jax.device_get(told),
                )
                each_epoch(epoch, state.trainables, state.non_trainables, means)
    return tuple(state)


def _check_fit(key, x, targets, inputs, epochs, batch_size):
    if not is_key(key):
        raise ValueError(f"fit: key must be a typed key, as from jax.random.key(0), got {describe(key)}.")
    checked("fit: epochs", functools.partial(integer, minimum=0), epochs)
    check_lengths("fit", x, targets, inputs)
    _check_batch_size("fit", len(x), batch_size)


def _taker(data):
    """What takes one key and one batch, which is shared out over the devices as the data are."""
    leaves, structure = jax.tree.flatten(data)
    places = [leaf.sharding if isinstance(leaf.sharding, NamedSharding) else None for leaf in leaves]
    return jax.jit(_take, out_shardings=(None, jax.tree.unflatten(structure, places)))


def _take(number, order, keys, data):
    """One key, if there are any, and one batch. Compiled: op by op, it would cost as much as a quarter of a small network's step."""
    key = None if keys is None else keys[number]
    return key, jax.tree.map(lambda leaf: leaf[order[number]], data)


def _line(found):
    """What a step told, for the log."""
    return dict(zip(("loss", "metrics"), found)) if isinstance(found, tuple) else {"loss": found}


def _check_batch_size(name, size, batch_size):
    checked(f"{name}: batch_size", integer, batch_size)
    if batch_size > size:
        raise ValueError(f"{name}: batch_size must be from 1 to size = {size}, got {batch_size}.")
