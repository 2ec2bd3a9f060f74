"""Optimizers of Optax stand wherever ours do: how to tell them apart, and how to take a step with either."""

from collections.abc import Callable
from typing import Any

import jax

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.nn.layer import Layer, check_layer
from mlax_tutorial.nn.numeric import is_floating
from mlax_tutorial.optim.optimizer import Optimizer, apply_updates


def check_optimizer(name: str, optimizer: Any) -> None:
    """Refuse what is no optimizer, a class or a mere transformation of gradients, say.

    Raises:
      ValueError: in the name of ``name``.
    """
    is_optax = hasattr(optimizer, "init") and hasattr(optimizer, "update") and not isinstance(optimizer, type)
    if not (isinstance(optimizer, Optimizer) or is_optax):
        raise ValueError(
            f"{name}: optimizer must be of mlax_tutorial.optim or of Optax, got {show(optimizer)}."
        )


def advance(optimizer: Any, gradients: Any, state: Any, trainables: Any) -> tuple[Any, Any]:
    """One step of any optimizer: the new trainables and the new state; pure."""
    step = optimizer.step if isinstance(optimizer, Optimizer) else optimizer.update
    updates, state = step(gradients, state, trainables)
    return apply_updates(trainables, updates), state


def scalar(name: str, loss: Callable, outputs: Any, targets: Any) -> jax.Array:
    """``loss(outputs, targets)``, if that is one floating-point number, which has gradients.

    Raises:
      ValueError: in the name of ``name``.
    """
    value = loss(outputs, targets)
    if not is_floating(value) or value.shape:
        raise ValueError(
            f"{name}: loss must return one floating-point number, got {describe(value)}, from outputs {describe(outputs)} and targets "
            f"{describe(targets)}: end it with a mean over the batch, jnp.mean(…)."
        )
    return value


def compile_step(name: str, step: Callable, model: Layer, loss: Callable, shardings: Any = None) -> Callable:
    """Compile ``step(optimizer, trainables, non_trainables, state, …, inputs)`` for any optimizer; ``name`` made it.

    What is returned takes the inputs as keywords, of any name. The old variables and the old state are donated; the new ones are
    put where ``shardings`` says, if it is given. ``needs_key`` of the result is that of the model.

    Raises:
      ValueError: in the name of ``name``, if the model is no layer or the loss no function.
    """
    check_layer(name, model)
    if not callable(loss) or isinstance(loss, Layer):
        raise ValueError(
            f"{name}: loss must be a function from outputs and targets to a number, got {describe(loss)}."
        )
    options = {"donate_argnums": (1, 2, 3)}
    if shardings is not None:
        options["out_shardings"] = (*shardings, None)
    with_ours = jax.jit(step, **options)
    # An optimizer of Optax is a pair of functions, not of arrays, so it is static.
    with_optax = jax.jit(step, static_argnums=0, **options)

    def either(optimizer, /, *args, **inputs):
        check_optimizer(name, optimizer)
        try:  # which costs nothing
            return (with_ours if isinstance(optimizer, Optimizer) else with_optax)(optimizer, *args, inputs)
        except (RuntimeError, ValueError) as error:
            _explain_donation(name, error, args[:3])
            raise

    either.needs_key = model.needs_key
    return either


def _explain_donation(name, error, donated):
    arrays = [leaf for leaf in jax.tree.leaves(donated) if isinstance(leaf, jax.Array)]
    if "donate the same buffer" in str(error):
        error.add_note(
            f"A step of {name} donates its trainables, non_trainables and state, but two of these arrays are one: give each a memory "
            "of its own, with jax.tree.map(jnp.copy, …)."
        )
    elif "deleted" in str(error) and any(
        not isinstance(a, jax.core.Tracer) and a.is_deleted() for a in arrays
    ):
        error.add_note(
            f"A step of {name} donates its trainables, non_trainables and state: go on with those that it returned, or copy "
            "what is still needed before, with jax.tree.map(jnp.copy, …)."
        )
