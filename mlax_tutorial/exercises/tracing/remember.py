"""Mend a leak."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, inputs


def _remember(x):
    y = jnp.sin(x)
    return 2 * y, y


solution = jax.jit(_remember)


def check(remember):
    x = jax.device_put(np.float32([0, 1, 2]))
    checks.is_jitted(remember)
    got = remember(x)
    both_in = None
    if isinstance(got, jax.Array) and got.shape == (2, *x.shape):
        both_in = "one array"
    elif isinstance(got, (list, dict)) and len(got) == 2:
        both_in = f"a {type(got).__name__}"
    if both_in:
        raise Failed(
            f"You return both in {both_in}, but a tuple is asked for: `return 2 * y, y`.",
            input={"x": x}, expected=_remember(x), got=got,
        )  # fmt: skip
    if not isinstance(got, tuple) or len(got) != 2:
        raise Failed(
            "Return a tuple of two, the result and the value to be kept: `return result, y`. What a jitted "
            "function does not return is lost, or leaks.",
            input={"x": x}, expected=_remember(x), got=got,
        )  # fmt: skip
    checks.no_leaks(remember, x)

    def as_plain_tuple(x):  # a named tuple is one, too
        return tuple(remember(x))

    right = jax.jit(lambda x: _remember(x))
    checks.values(as_plain_tuple, right, inputs.arrays("n", sizes=(0, 3)), examples=[(x,)], recognise=[
        (lambda x: (jnp.sin(x), 2 * jnp.sin(x)), "The order is: first the result, 2 sin(x), then what is kept, sin(x)."),
        (lambda x: (2 * jnp.sin(x), x), "The value to keep is y = sin(x), not x."),
        (lambda x: (2 * x, x), "The sine is missing: y = sin(x)."),
        (lambda x: (2 * x, jnp.sin(x)), "The first is twice y, the sine, not twice x."),
        (lambda x: (2 * jnp.sin(x), 2 * jnp.sin(x)), "What is kept is y itself, before it is doubled."),
    ])  # fmt: skip


exercise = Exercise(
    title="Mend a leak",
    stars=1,
    minutes=5,
    why="What leaves a traced function through its return value is an array; through any other door it is a tracer.",
    hints=(
        "The list outlives the trace; the tracer in it does not. Which door is left for y to get out by?",
        "Return both: `return 2 * y, y`, and let the caller keep the list.",
    ),
    solution=solution,
    check=check,
)
