"""One step of training, compiled: forward, backward and update, with an optimizer of this library or of Optax."""

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mlax_tutorial import meshes
from mlax_tutorial.nn import Layer, notes
from mlax_tutorial.nn.arrays import is_floating
from mlax_tutorial.nn.capture import observed
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked, optional, show
from mlax_tutorial.nn.layer import check_layer
from mlax_tutorial.nn.rules import function
from mlax_tutorial.optim import Optimizer, apply_updates
from mlax_tutorial.training.state import State


def make_step(
    model: Layer,
    loss: Callable,
    shardings: Any = None,
    *,
    has_aux: bool = False,
    weight: Callable | None = None,
    observe: str | tuple[str, ...] = (),
) -> Callable:
    """Compile one step of training: forward, backward and update in a single program.

    Args:
      model: any layer.
      loss: ``(outputs, targets) -> scalar``, for instance a mean of an Optax loss. If its third parameter is called ``notes``, it
        is given what layers noted through ``call.note``, as :func:`mlax_tutorial.nn.notes` returns it: for a balance loss,
        ``lambda outputs, targets, notes: … + 0.01 * sum(notes["balance"].values())``.
      shardings: where the new trainables, non_trainables and optimizer_state are put, a triple of trees of shardings, as of
        what :func:`sharding.init` returns; by default XLA chooses.
      has_aux: whether the loss returns ``(scalar, metrics)``, as for ``jax.value_and_grad``: any pytree of arrays, such as
        ``{"accuracy": …}``, computed from the same outputs.
      weight: ``targets -> scalar``, how much the batch counts for an optimizer that asks for it, ``optim.Accumulate``: the number
        of its tokens, say, where the loss is a mean over tokens.
      observe: what the ``notes`` of the loss hold besides, ``"weights"`` for those of attention: see :func:`mlax_tutorial.nn.notes`.

    Returns:
      ``step(optimizer, state, key, x, targets, **inputs)``, which returns the new :class:`State` and what the loss returned,
      before the update: the scalar, or with ``has_aux`` the pair. The optimizer is one of :mod:`mlax_tutorial.optim` (an
      argument like any other, so a new learning rate does not trace again) or one of Optax' whose state shares no array with
      the weights. Those that ask for more than gradients and weights get what they name: ``value``, the loss; ``grad``; and
      ``value_fn``, the loss of other weights on the same batch with the same key. So ``optax.contrib.reduce_on_plateau`` and
      ``optax.lbfgs`` work. Gradients of complex weights are conjugated, so that the loss falls. ``key`` is ``None`` for a model that draws nothing
      (``step.needs_key`` tells). Further inputs of the model, a mask, say, are keywords.

      The old state is *donated*: its memory becomes that of the new one, so do not use it again.

    Raises:
      ValueError: if ``model`` is no layer, ``loss`` or ``weight`` no function, or ``observe`` no names, or given for a loss without
        ``notes``; in the step, if ``loss`` returns no scalar, or broadcasts outputs ``(n, 1)`` against targets ``(n,)``, if no layer
        shows what ``observe`` names, if the optimizer asks for no ``weight`` that is given, and on what is no optimizer or no state.

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

    checked("make_step: weight", optional(function), weight)
    gradient = differentiate("make_step", model, loss, has_aux, weight, observe)

    def step(optimizer, state, key, x, targets, inputs):
        trainables, non_trainables, optimizer_state = state
        gradients, (found, non_trainables), extra = gradient(
            trainables, non_trainables, key, x, targets, inputs
        )
        trainables, optimizer_state = advance(
            "make_step", optimizer, gradients, optimizer_state, trainables, extra
        )
        return State(trainables, non_trainables, optimizer_state), found

    return compile_step("make_step", step, model, loss, shardings)


def differentiate(
    name: str, model: Layer, loss: Callable, has_aux: bool, weight: Callable | None = None, observe: Any = ()
) -> Callable:
    """What a step made by ``name`` computes first: the gradients; what ``loss`` returned, and the non_trainables; and what more an
    optimizer may ask for.

    Raises:
      ValueError: if the loss has no ``notes`` for what ``observe`` names; when it is called, if the loss is not one floating-point
        number, which has gradients.
    """

    sees_notes = callable(loss) and "notes" in _parameters(loss)[2:3]
    observe = observed(f"{name}: observe", observe)
    if observe and not sees_notes:
        mend = "write it as a function of outputs, targets and notes"
        raise ValueError(
            f"{name}: observe is for a loss whose third parameter is notes, got {show(loss)}: {mend}."
        )

    def gradient(trainables, non_trainables, key, x, targets, inputs, scale=lambda value: value):
        def evaluate(trainables):
            noted = ()
            if sees_notes:
                (outputs, updated), found = notes(model, observe)(
                    x, trainables, non_trainables, key=key, **inputs
                )
                noted = (found,)
            else:
                outputs, updated = model.fwd(x, trainables, non_trainables, key=key, **inputs)
            _check_pairs(name, lambda outputs, targets: loss(outputs, targets, *noted), outputs, targets)
            found = loss(outputs, targets, *noted)
            value = _value(name, found, has_aux, outputs, targets)
            return scale(value), (value, (found, updated))

        gradients, (value, found) = jax.grad(evaluate, has_aux=True)(trainables)
        # Of complex weights, jax.grad gives the conjugate of the direction in which the loss rises.
        gradients = jax.tree.map(lambda g: jnp.conj(g) if jnp.iscomplexobj(g) else g, gradients)
        extra = {"value": value, "value_fn": lambda trainables: evaluate(trainables)[1][0]}
        return gradients, found, extra if weight is None else {**extra, "weight": weight(targets)}

    return gradient


def _parameters(function):
    """The names of a function's parameters, as far as it tells them."""
    try:
        return [*inspect.signature(function).parameters]
    except ValueError:
        return []


def _value(name, found, has_aux, outputs, targets):
    """The scalar in what a loss returned."""
    pair = isinstance(found, tuple) and len(found) == 2
    value = found[0] if has_aux and pair else found
    if has_aux != (value is not found) or not is_floating(value) or value.shape:
        wanted = f"one floating-point number{', and its metrics' if has_aux else ''}"
        given = f"{describe(found)}, from outputs {describe(outputs)} and targets {describe(targets)}"
        mend = "say has_aux=True" if pair and not has_aux else "end it with a mean, jnp.mean(…)"
        raise ValueError(f"{name}: loss must return {wanted}, got {given}: {mend}.")
    return value


def _check_pairs(name, loss, outputs, targets):
    """Refuse a loss that compares outputs ``(…, n, 1)`` with targets ``(…, n)``, or the other way round, each with each."""
    pairs = [
        sorted((getattr(array, "shape", ()) for array in pair), key=len)
        for pair in itertools.product(jax.tree.leaves(outputs), jax.tree.leaves(targets))
    ]
    # Of arrays with one number nothing is paired wrongly.
    pairs = [(few, many) for few, many in pairs if _is_longer_by_ones(many, few) and math.prod(few) > 1]
    if not pairs:
        return
    try:
        with jax.numpy_rank_promotion("raise"):  # a loss that drops the axis, or adds one, is fine
            jax.eval_shape(loss, outputs, targets)
    except ValueError as error:
        told = str(error)
        if "rank_promotion" not in told or not any(
            str(few) in told and str(many) in told for few, many in pairs
        ):
            return  # for another reason, which the loss itself tells if it is one
        given = f"outputs {describe(outputs)} and targets {describe(targets)}"
        mend = "drop the axis of size 1, as outputs[..., 0] does, or give the other one, too"
        raise ValueError(f"{name}: loss pairs each of {given} with each: {mend}.") from None


def _is_longer_by_ones(many, few):
    return len(many) > len(few) > 0 and many == (*few, *[1] * (len(many) - len(few)))


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
        if meshes.in_context() or any(map(meshes.is_explicit, (x, targets, *inputs.values()))):
            return over_auto(optimizer, state, key, x, targets, inputs)
        try:  # which costs nothing
            jitted = with_ours if isinstance(optimizer, Optimizer) else with_optax
            return jitted(optimizer, state, key, x, targets, inputs)
        except (RuntimeError, ValueError) as error:
            if "deleted" in str(error) or "donate" in str(error):
                error.add_note(_DONATED.format(name))
            raise

    @meshes.over_auto()
    def over_auto(optimizer, state, key, x, targets, inputs):
        optimizer, key, x, targets, inputs = meshes.accept((optimizer, key, x, targets, inputs))
        return either(optimizer, state, key, x, targets, **inputs)

    either.needs_key = model.needs_key
    return either


_DONATED = (
    "A step of {} donates its state: go on with the one that it returned, copy before what is still needed, and give "
    "each array in it a memory of its own, with jax.tree.map(jnp.copy, …)."
)


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


def advance(
    name: str, optimizer: Any, gradients: Any, state: Any, trainables: Any, extra: dict[str, Any]
) -> tuple[Any, Any]:
    """One step of any optimizer, for what ``name`` made: the new trainables and the new state; pure.

    Of ``extra``, and of ``grad``, the optimizer is given what it asks for: one of ours by its attribute ``extra``, one of Optax' by
    the arguments of its ``update``.
    """
    extra = {"grad": gradients, **extra}
    if isinstance(optimizer, Optimizer):
        step, asked = optimizer.step, optimizer.extra
    else:
        step, asked = optimizer.update, extra
        parameters = inspect.signature(step).parameters.values()
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
            asked = {parameter.name for parameter in parameters}
    if "weight" in extra and "weight" not in asked:
        mend = "wrap it in optim.Accumulate, or leave weight out"
        raise ValueError(
            f"{name}: weight is for an optimizer that asks for it, got {show(optimizer)}: {mend}."
        )
    updates, state = step(
        gradients, state, trainables, **{name: extra[name] for name in extra if name in asked}
    )
    return apply_updates(trainables, updates), state
