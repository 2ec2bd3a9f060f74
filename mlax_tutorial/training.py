"""A training loop in pieces: shuffled batches, one compiled step, evaluation, a progress bar.

Each is a small function that can be used without the others; `fit` puts them together.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from mlax_tutorial.nn import Layer
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked, show
from mlax_tutorial.nn.kinds import function, integer
from mlax_tutorial.nn.layer import check_layer
from mlax_tutorial.nn.numeric import is_floating, is_key
from mlax_tutorial.optim import Optimizer, apply_updates
from mlax_tutorial.optim.paths import flatten

__all__ = ["Progress", "State", "batches", "fit", "is_right", "make_evaluation", "make_step"]


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


class State:
    """What a training carries from step to step: ``(trainables, non_trainables, optimizer_state)``, with its leaves laid flat.

    A pytree, so it may be donated, mapped over and saved. It unpacks as the triple that it was made of, and the three trees are
    its attributes, too; they are put together when they are asked for. In between there is one flat tuple of leaves:
    ``jax.jit`` takes nested containers apart, compares them and builds them anew at each call, which for a hundred small
    layers takes as long as their arithmetic. (With JAX alone: ``leaves, structure = jax.tree.flatten(trees)`` outside,
    ``jax.tree.unflatten(structure, leaves)`` inside the jitted function.)

    Args:
      trainables, non_trainables: from ``model.init``.
      optimizer_state: from ``optimizer.init(trainables)``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> state = State({"kernel": jnp.ones(2), "bias": jnp.zeros(2)}, (), ())
      >>> state = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf + 1, state))(state)
      >>> trainables, non_trainables, optimizer_state = state
      >>> trainables["kernel"], state.trainables["bias"]
      (Array([2., 2.], dtype=float32), Array([1., 1.], dtype=float32))
    """

    _NAMES = "trainables", "non_trainables", "optimizer_state"

    def __init__(self, trainables: Any, non_trainables: Any, optimizer_state: Any):
        leaves, structure = jax.tree.flatten((trainables, non_trainables, optimizer_state))
        self._leaves, self._structure = tuple(leaves), _Structure.of(structure)

    trainables = property(lambda self: tuple(self)[0])
    non_trainables = property(lambda self: tuple(self)[1])
    optimizer_state = property(lambda self: tuple(self)[2])

    def __iter__(self):
        return iter(jax.tree.unflatten(self._structure.tree, self._leaves))

    def __repr__(self):
        return f"State({', '.join(f'{name}={tree!r}' for name, tree in zip(self._NAMES, self))})"

    def __reduce__(self):
        return State, tuple(self)

    def _with_paths(self):
        paths = [name + path for name, tree in zip(self._NAMES, self) for path in flatten(tree)[0]]
        return list(zip(map(jax.tree_util.GetAttrKey, paths), self._leaves)), self._structure

    @classmethod
    def _again(cls, structure, leaves):
        self = object.__new__(cls)
        self._leaves, self._structure = leaves, structure
        return self


class _Structure:
    """The structure of a State. One object for one structure: ``jax.jit`` compares them at each call."""

    def __init__(self, tree):
        self.tree, self._hash = tree, hash(tree)

    of = functools.lru_cache(lambda tree: _Structure(tree))

    def __eq__(self, other):
        return self is other or (isinstance(other, _Structure) and self.tree == other.tree)

    def __hash__(self):
        return self._hash


jax.tree_util.register_pytree_with_keys(
    State, State._with_paths, State._again, lambda state: (state._leaves, state._structure)
)


def make_step(model: Layer, loss: Callable, shardings: Any = None, *, has_aux: bool = False) -> Callable:
    """Compile one step of training: forward, backward and update in a single program.

    Args:
      model: any layer.
      loss: ``(outputs, targets) -> scalar``, for instance a mean of an Optax loss.
      shardings: where the new trainables, non_trainables and optimizer_state are put, a triple of trees of shardings, as of
        what :func:`sharding.init` returns; by default XLA chooses.
      has_aux: whether the loss returns ``(scalar, metrics)``, as for ``jax.value_and_grad``: any pytree of arrays, such as
        ``{"accuracy": …}``, computed from the same outputs.

    Returns:
      ``step(optimizer, state, key, x, targets, **inputs)``, which returns the new :class:`State` and what the loss returned,
      before the update: the scalar, or with ``has_aux`` the pair. The optimizer is one of :mod:`mlax_tutorial.optim` (an
      argument like any other, so a new learning rate does not trace again) or one of Optax' that needs only gradients and
      weights, and whose state shares no array with them. ``key`` is ``None`` for a model that draws nothing
      (``step.needs_key`` tells). Further inputs of the model, a mask, say, are keywords.

      The old state is *donated*: its memory becomes that of the new one, so do not use it again.

    Raises:
      ValueError: if ``model`` is no layer or ``loss`` no function; in the step, if ``loss`` returns no scalar, or broadcasts
        outputs ``(n, 1)`` against targets ``(n,)``, and on what is no optimizer or no state.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, optim
      >>> model, x, y = nn.Linear(1), jnp.ones((8, 3)), jnp.ones((8, 1))
      >>> step = make_step(model, lambda outputs, targets: jnp.mean((outputs - targets) ** 2))
      >>> trainables, non_trainables = model.init(jax.random.key(0), x)
      >>> optimizer = optim.SGD(0.1)
      >>> state = State(trainables, non_trainables, optimizer.init(trainables))
      >>> for _ in range(20):
      ...     state, value = step(optimizer, state, None, x, y)
      >>> bool(value < 1e-3), state.trainables["kernel"].shape
      (True, (3, 1))
    """

    gradient = jax.grad(objective("make_step", model, loss, has_aux), has_aux=True)

    def step(optimizer, state, key, x, targets, inputs):
        trainables, non_trainables, optimizer_state = state
        gradients, (found, non_trainables) = gradient(trainables, non_trainables, key, x, targets, inputs)
        trainables, optimizer_state = advance(optimizer, gradients, optimizer_state, trainables)
        return State(trainables, non_trainables, optimizer_state), found

    return compile_step("make_step", step, model, loss, shardings)


def objective(name: str, model: Layer, loss: Callable, has_aux: bool) -> Callable:
    """What a step made by ``name`` differentiates: it returns a scalar, and beside it what ``loss`` returned and the non_trainables.

    Raises:
      ValueError: when it is called, if that scalar is not one floating-point number, which has gradients.
    """

    def evaluate(trainables, non_trainables, key, x, targets, inputs, scale=lambda value: value):
        outputs, non_trainables = model.fwd(x, trainables, non_trainables, key=key, **inputs)
        _check_pairs(name, loss, outputs, targets)
        found = loss(outputs, targets)
        pair = isinstance(found, tuple) and len(found) == 2
        value = found[0] if has_aux and pair else found
        if has_aux != (value is not found) or not is_floating(value) or value.shape:
            wanted = f"one floating-point number{', and its metrics' if has_aux else ''}"
            given = f"{describe(found)}, from outputs {describe(outputs)} and targets {describe(targets)}"
            mend = "say has_aux=True" if pair and not has_aux else "end it with a mean, jnp.mean(…)"
            raise ValueError(f"{name}: loss must return {wanted}, got {given}: {mend}.")
        return scale(value), (found, non_trainables)

    return evaluate


def _check_pairs(name, loss, outputs, targets):
    """Refuse a loss that compares outputs ``(…, n, 1)`` with targets ``(…, n)``, or the other way round, each with each."""
    shapes = sorted((getattr(array, "shape", ()) for array in (outputs, targets)), key=len)
    if shapes[1][-2:] not in ((1, 1), ()) and shapes[1] == (*shapes[0], 1):
        try:
            with jax.numpy_rank_promotion("raise"):  # a loss that drops the axis, or adds one, is fine
                jax.eval_shape(loss, outputs, targets)
        except ValueError as error:
            if "rank_promotion" not in str(error) or not all(str(shape) in str(error) for shape in shapes):
                return  # for another reason, which the loss itself tells if it is one
            given = f"outputs {describe(outputs)} and targets {describe(targets)}"
            mend = "drop the axis of size 1, as outputs[..., 0] does, or give the other one, too"
            raise ValueError(f"{name}: loss pairs each of {given} with each: {mend}.") from None


def compile_step(name: str, step: Callable, model: Layer, loss: Callable, shardings: Any = None) -> Callable:
    """Compile ``step(optimizer, state, key, x, targets, inputs)``, made by ``name``, for any optimizer.

    What is returned takes the inputs as keywords, of any name. The old state is donated; the new one is put where
    ``shardings`` says, if it is given. ``needs_key`` of the result is that of the model.

    Raises:
      ValueError: in the name of ``name``, if the model is no layer or the loss no function.
    """
    check_layer(name, model)
    checked(f"{name}: loss", function, loss)
    options = {} if shardings is None else {"out_shardings": (State(*shardings), None)}
    with_ours = jax.jit(step, donate_argnums=1, **options)
    # An optimizer of Optax is a pair of functions, not of arrays, so it is static.
    with_optax = jax.jit(step, static_argnums=0, donate_argnums=1, **options)

    def either(optimizer, state, key, x, targets, /, **inputs):
        check_optimizer(name, optimizer)
        if not isinstance(state, State):
            wanted = "training.State(trainables, non_trainables, optimizer.init(trainables))"
            raise ValueError(f"{name}: state must be {wanted}, got {describe(state)}.")
        try:  # which costs nothing
            jitted = with_ours if isinstance(optimizer, Optimizer) else with_optax
            return jitted(optimizer, state, key, x, targets, inputs)
        except (RuntimeError, ValueError) as error:
            if "deleted" in str(error) or "donate" in str(error):
                error.add_note(_DONATED.format(name))
            raise

    either.needs_key = model.needs_key
    return either


_DONATED = (
    "A step of {} donates its state: go on with the one that it returned, copy before what is still needed, and give "
    "each array in it a memory of its own, with jax.tree.map(jnp.copy, …)."
)


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

    def evaluate(trainables, non_trainables, x, targets, /, **inputs):
        return mean(trainables, non_trainables, x, targets, inputs)

    @jax.jit
    def mean(trainables, non_trainables, x, targets, inputs):
        def one(example):
            x, target, inputs = example
            output, _ = model.fwd(x, trainables, non_trainables, inference_mode=True, **inputs)
            return _measured(metric, output, target)

        _check_lengths("evaluate", x, targets, inputs)
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


def _check_batch_size(name, size, batch_size):
    checked(f"{name}: batch_size", integer, batch_size)
    if batch_size > size:
        raise ValueError(f"{name}: batch_size must be from 1 to size = {size}, got {batch_size}.")


def _check_lengths(name, x, targets, inputs):
    for other, values in {"targets": targets, **inputs}.items():
        if not len(x) == len(values) > 0:
            got = f"x has {len(x)} examples, but {other} has {len(values)}"
            raise ValueError(f"{name}: {got}; there must be some, and they must belong together.")


def fit(
    key: jax.Array, step: Callable, optimizer: Any, variables: tuple[Any, Any, Any], x: jax.Array,
    targets: jax.Array, *, epochs: int, batch_size: int, inputs: dict[str, jax.Array] | None = None,
    draws: bool | None = None, each_epoch: Callable[[int, Any, Any, float], Any] | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Train for some epochs over data that fits on the device.

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

    Returns:
      ``(trainables, non_trainables, optimizer_state)`` at the end.

    Raises:
      ValueError: if ``x``, ``targets`` and ``inputs`` differ in length, ``batch_size`` does not fit, ``epochs`` is no integer of
        at least 0, or ``key`` is no typed key.

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
    _check_fit(key, x, targets, inputs, epochs, batch_size)
    state = State(*variables)
    data = jax.tree.map(jnp.asarray, (x, targets, inputs))  # to the device once, not batch by batch
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
            current, told = schedule(epoch), []
            for number in range(len(order)):
                step_key, (some_x, some_targets, some_inputs) = take(number, order, keys, data)
                state, found = step(current, state, step_key, some_x, some_targets, **some_inputs)
                told.append(found)  # not converted to floats here: that would wait for each step
                progress.advance()
            if each_epoch is not None:
                # In NumPy: jnp.stack would be compiled, slowly, for this number of them.
                means = jax.tree.map(lambda *values: np.mean(values, axis=0).tolist(), *jax.device_get(told))
                each_epoch(epoch, state.trainables, state.non_trainables, means)
    return tuple(state)


def _check_fit(key, x, targets, inputs, epochs, batch_size):
    if not is_key(key):
        raise ValueError(f"fit: key must be a typed key, as from jax.random.key(0), got {describe(key)}.")
    checked("fit: epochs", functools.partial(integer, minimum=0), epochs)
    _check_lengths("fit", x, targets, inputs)
    _check_batch_size("fit", len(x), batch_size)


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
        if filled != self.shown and hasattr(self.file, "isatty") and self.file.isatty():
            self.shown = filled
            self._print(f"{'█' * filled}{'░' * (self.WIDTH - filled)} {self.done}/{self.total}")

    def _print(self, text):
        print(f"\r{text}", end="", file=self.file, flush=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.shown is not None:  # leave the line to what is printed next
            self._print(" " * (self.WIDTH + 2 + 2 * len(str(self.total))) + "\r")


def _taker(data):
    """What takes one key and one batch, which is shared out over the devices as the data are."""
    leaves, structure = jax.tree.flatten(data)
    places = [leaf.sharding if isinstance(leaf.sharding, NamedSharding) else None for leaf in leaves]
    return jax.jit(_take, out_shardings=(None, jax.tree.unflatten(structure, places)))


def _take(number, order, keys, data):
    """One key, if there are any, and one batch. Compiled: op by op, it would cost as much as a quarter of a small network's step."""
    key = None if keys is None else keys[number]
    return key, jax.tree.map(lambda leaf: leaf[order[number]], data)


# Optimizers of Optax stand wherever ours do: how to tell them apart, and how to take a step with either.


def check_optimizer(name: str, optimizer: Any) -> None:
    """Refuse what is no optimizer, a class or a mere transformation of gradients, say.

    Raises:
      ValueError: in the name of ``name``.
    """
    is_optax = hasattr(optimizer, "init") and hasattr(optimizer, "update") and not isinstance(optimizer, type)
    if not (isinstance(optimizer, Optimizer) or is_optax):
        wanted = "must be of mlax_tutorial.optim or of Optax"
        raise ValueError(f"{name}: optimizer {wanted}, got {show(optimizer)}.")


def advance(optimizer: Any, gradients: Any, state: Any, trainables: Any) -> tuple[Any, Any]:
    """One step of any optimizer: the new trainables and the new state; pure."""
    step = optimizer.step if isinstance(optimizer, Optimizer) else optimizer.update
    updates, state = step(gradients, state, trainables)
    return apply_updates(trainables, updates), state
