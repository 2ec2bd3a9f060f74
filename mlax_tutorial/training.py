"""A training loop in pieces: shuffled batches, one compiled step, evaluation, a progress bar.

Each is a small function that can be used without the others; `fit` puts them together.
"""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding

from mlax_tutorial.nn import Layer
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import integer, show
from mlax_tutorial.nn.layer import check_layer
from mlax_tutorial.optim.drop_in import advance, compile_step, scalar


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


def make_step(model: Layer, loss: Callable, shardings: Any = None) -> Callable:
    """Compile one step of training: forward, backward and update in a single program.

    Args:
      model: any layer.
      loss: ``(outputs, targets) -> scalar``, for instance a mean of an Optax loss.
      shardings: where the new trainables, non_trainables and state are put, a triple of trees of shardings, as of
        what :func:`sharding.init` returns; by default XLA chooses.

    Returns:
      ``step(optimizer, trainables, non_trainables, state, key, x, targets, **inputs)``, which returns the new
      ``(trainables, non_trainables, state)`` and the loss before the update. The optimizer is one of
      :mod:`mlax_tutorial.optim` (an argument like any other, so a new learning rate does not trace again) or
      any of Optax'. ``key`` is ``None`` for a model that draws nothing (``step.needs_key`` tells). Further inputs of
      the model, a mask, say, are keywords.

      The old trainables, non_trainables and state are *donated*: their memory becomes that of the new ones,
      so do not use them again.

    Raises:
      ValueError: if ``model`` is no layer or ``loss`` no function; in the step, if ``loss`` returns no scalar, and on what
        is no optimizer.

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

    def objective(trainables, non_trainables, key, x, targets, inputs):
        outputs, non_trainables = model.fwd(x, trainables, non_trainables, key=key, **inputs)
        return scalar("make_step", loss, outputs, targets), non_trainables

    def step(optimizer, trainables, non_trainables, state, key, x, targets, inputs):
        (value, non_trainables), gradients = jax.value_and_grad(objective, has_aux=True)(
            trainables, non_trainables, key, x, targets, inputs
        )
        trainables, state = advance(optimizer, gradients, state, trainables)
        return trainables, non_trainables, state, value

    return compile_step("make_step", step, model, loss, shardings)


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
    if not callable(metric) or isinstance(metric, Layer):
        raise ValueError(
            f"make_evaluation: metric must be a function from an output and a target to a number, got {describe(metric)}."
        )
    _check_whole("make_evaluation: batch_size", batch_size, 1)

    def evaluate(trainables, non_trainables, x, targets, /, **inputs):
        return mean(trainables, non_trainables, x, targets, inputs)

    @jax.jit
    def mean(trainables, non_trainables, x, targets, inputs):
        _check_lengths("evaluate", x, targets, inputs)
        if not len(x):
            raise ValueError("evaluate: there are no examples, so they have no mean.")

        def one(example):
            x, target, inputs = example
            output, _ = model.fwd(x, trainables, non_trainables, inference_mode=True, **inputs)
            try:
                value = jnp.asarray(metric(output, target), jnp.float32)
            except Exception as error:
                error.add_note(
                    f"This is from the metric of make_evaluation, which is given one example: an output {describe(output)} and a "
                    f"target {describe(target)}, without an axis for the batch."
                )
                raise
            if value.shape:
                raise ValueError(
                    f"evaluate: metric must return a scalar for one example, got shape {value.shape}, from an output "
                    f"of shape {jnp.shape(output)} and a target of shape {jnp.shape(target)}."
                )
            return value

        return jnp.mean(jax.lax.map(one, (x, targets, inputs), batch_size=batch_size))

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


def _check_lengths(name, x, targets, inputs):
    for other, values in {"targets": targets, **inputs}.items():
        if len(x) != len(values):
            raise ValueError(
                f"{name}: x has {len(x)} examples, but {other} has {len(values)}; they must belong together."
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
    inputs: dict[str, jax.Array] | None = None,
    draws: bool | None = None,
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
      inputs: further inputs of the model, by name, each with one leading axis of examples, too.
      draws: whether each step is given a key; by default what ``step.needs_key`` says, and for a step without it, yes.
      each_epoch: called after each epoch with its number, the trainables, the non_trainables and the mean loss.
        Arrays it was given are donated to the next step: look at them, but do not keep them.

    Returns:
      ``(trainables, non_trainables, state)`` at the end.

    Raises:
      ValueError: if ``x``, ``targets`` and ``inputs`` differ in length, ``batch_size`` does not fit, ``epochs`` is no integer of
        at least 0, ``key`` is no typed key, or ``variables`` no triple.

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
    inputs = inputs or {}
    if not hasattr(key, "dtype") or not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise ValueError(f"fit: key must be a typed key, as from jax.random.key(0), got {describe(key)}.")
    _check_lengths("fit", x, targets, inputs)
    _check_whole("fit: epochs", epochs, 0)
    _check_batch_size("fit", len(x), batch_size)
    if not isinstance(variables, (tuple, list)) or len(variables) != 3:
        raise ValueError(
            "fit: variables must be (trainables, non_trainables, state), the last from optimizer.init(trainables), got "
            f"{describe(variables)}."
        )
    # A class or a layer is a slip, which the step refuses.
    calls = callable(optimizer) and not isinstance(optimizer, (type, Layer))
    schedule = optimizer if calls else lambda epoch: optimizer
    draws = getattr(step, "needs_key", True) if draws is None else draws
    data = jax.tree.map(jnp.asarray, (x, targets, inputs))  # to the device once, not batch by batch
    take = _taker(data, batch_size)
    size = len(x)
    steps = epochs * (size // batch_size)
    with Progress(steps) as progress:
        for epoch in range(epochs):
            key, order_key, steps_key = jax.random.split(key, 3)
            order = batches(order_key, size, batch_size)
            keys = jax.random.split(steps_key, len(order)) if draws else None
            current, losses = schedule(epoch), []
            for number in range(len(order)):
                step_key, (some_x, some_targets, some_inputs) = take(number, order, keys, data)
                *variables, value = step(current, *variables, step_key, some_x, some_targets, **some_inputs)
                losses.append(value)  # not converted to a float here: that would wait for each step
                progress.advance()
            if each_epoch is not None:
                trainables, non_trainables, _ = variables
                mean = np.mean(
                    jax.device_get(losses)
                )  # jnp.stack would be compiled, slowly, for this number of them
                each_epoch(epoch, trainables, non_trainables, float(mean))
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


def _taker(data, batch_size):
    """What takes one key and one batch, which is shared out over the devices as the data are."""

    def place(leaf):
        sharding = leaf.sharding
        if not isinstance(sharding, NamedSharding):
            return None
        if AxisType.Explicit in sharding.mesh.axis_types:
            raise ValueError(
                f"fit: the data lie on a mesh with explicit axes, {sharding}: pass axis_types=(AxisType.Auto,) * "
                f"{len(sharding.mesh.axis_types)} to jax.make_mesh."
            )
        try:
            sharding.shard_shape((batch_size, *leaf.shape[1:]))
        except ValueError:
            raise ValueError(
                f"fit: batch_size must be shared out evenly as the data are, {sharding}, got {batch_size}."
            ) from None
        return sharding

    return jax.jit(_take, out_shardings=(None, jax.tree.map(place, data)))


def _take(number, order, keys, data):
    """One key, if there are any, and one batch. Compiled: op by op, it would cost as much as a quarter of a small network's step."""
    key = None if keys is None else keys[number]
    return key, jax.tree.map(lambda leaf: leaf[order[number]], data)
