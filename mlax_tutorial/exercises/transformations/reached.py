"""How often is the rule called?"""

import math

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.checking.programs import fresh
from mlax_tutorial.inspection import jaxprs


def _ten_rounds(x):
    for _ in range(10):
        x = jnp.sin(x)
    return x


_REACHED = {
    "a": lambda x: jnp.sin(jnp.cos(jnp.sin(x))),
    "b": lambda x: math.sin(2.0) * x,
    "c": lambda x: jnp.sin(2.0) * x,
    "d": lambda x: lax.fori_loop(0, 10, lambda i, y: jnp.sin(y), x),
    "e": _ten_rounds,
    "f": lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x),
    "g": lambda x: jax.vmap(jnp.sin)(jnp.full(5, x)),
    "h": jax.grad(jnp.cos),
}


solution = {"a": 2, "b": 0, "c": 1, "d": 1, "e": 10, "f": 1, "g": 1, "h": 1}


def check(given):
    def count(function):
        calls = []

        def rule(bind, x, **params):
            calls.append(x)
            return bind(x, **params)

        jaxprs.interpret(fresh(function), {"sin": rule})(1.0)
        return len(calls)

    expected = {name: count(function) for name, function in _REACHED.items()}
    each_equation = "The interpreter comes past each equation, and two of the three are `sin`."
    body_once = "The body of the loop is one program, recorded once, and rewritten once."
    why = {
        "a": {1: each_equation, 3: "The rule is for `sin`; `cos` is left as it is."},
        "b": {1: "`math.sin` is Python's: it computes a number while tracing, and leaves no equation."},
        "c": {0: "`jnp.sin` was asked for, so it is recorded, whatever its input is."},
        "d": {10: body_once, 0: "The body is a program inside an equation; the interpreter goes inside."},
        "e": {1: "A loop of Python is recorded round by round: as many equations as rounds."},
        "f": {
            0: "Both branches are programs inside the equation, and both are rewritten, taken or not.",
            2: "Both branches are rewritten, but only one of them holds a `sin`.",
        },
        "g": {5: "Mapped over five numbers, `sin` is one equation on an array of five."},
        "h": {
            0: "The derivative of the cosine is minus the sine, and the program of the gradient computes it.",
            2: "There is one `sin` in the program of the gradient, and one `cos`.",
        },
    }
    checks.answers(given, expected, why)


exercise = Exercise(
    title="How often is the rule called?",
    stars=1,
    minutes=5,
    why="A rule runs once for each equation it replaces, while the program is rewritten: loops and batches do not count.",
    hints=(
        "Print the jaxpr of each, and count the equations that say `sin`, inner programs included.",
        "Python's own functions and loops run while tracing. `fori_loop` and `vmap` record one program for all rounds "
        "and all examples; `cond` records one for each branch.",
    ),
    solution=solution,
    check=check,
)
