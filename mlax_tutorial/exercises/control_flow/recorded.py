"""How many sines?"""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.inspection import jaxprs


def _python_loop(x):
    for _ in range(5):
        x = jnp.sin(x)
    return x


def _asks_for_the_rank(x):
    return jnp.sin(x) if x.ndim == 2 else jnp.cos(x)


def _switches(x):
    return lax.switch(1, [jnp.sin, jnp.cos, jnp.sin], x)


def _mapped_cond(x):
    return jax.vmap(lambda y: lax.cond(y > 0, jnp.sin, jnp.cos, y))(x)


def _fori(x):
    return lax.fori_loop(0, 5, lambda i, y: jnp.sin(y), x)


def _where(x):
    return jnp.where(x > 0, jnp.sin(x), jnp.sin(-x))


RECORDED = {
    "a": _python_loop,
    "b": _asks_for_the_rank,
    "c": _switches,
    "d": _mapped_cond,
    "e": _fori,
    "f": _where,
}


solution = {"a": 5, "b": 0, "c": 2, "d": 1, "e": 1, "f": 2}


def check(given):
    x = jax.ShapeDtypeStruct((3,), jnp.float32)
    expected = {name: jaxprs.count(function, x)["sin"] for name, function in RECORDED.items()}
    per_element = "One equation works on the whole array, however many elements it has."
    why = {
        "a": {
            1: "The loop is Python's: it is run while tracing, and its body is recorded in each round.",
            15: per_element,
            0: "Python's loop leaves no loop behind, but what its body asks of JAX is recorded.",
        },
        "b": {
            1: "A shape is known while tracing, so Python takes one side, and here that is the cosine.",
            2: "An `if` of Python's leaves one of its sides in the program, and no trace of the other.",
            3: per_element,
        },
        "c": {
            0: "The program holds all sides of a switch, those that are not taken, too.",
            1: "All sides of a switch are traced, each by itself: the sine stands there twice.",
            3: "One of the three sides is a cosine.",
        },
        "d": {
            0: "Under vmap the cond is replaced by a select; what its sides computed is still computed.",
            3: "vmap makes no loop and no copies: its equations work on the whole batch.",
            2: "Only one of the two sides is a sine.",
        },
        "e": {
            5: "fori_loop stays a loop: its body is recorded once, however often it runs.",
            0: "The body of the loop is inside the loop's equation, and inner jaxprs count.",
        },
        "f": {
            0: "`where` is given two finished arrays: what computes them is in the program.",
            1: "The two inputs of a where are computed before it picks: two sines.",
            3: per_element,
            6: per_element,
        },
    }
    checks.answers(given, expected, why)


exercise = Exercise(
    title="How many sines?",
    stars=1,
    minutes=5,
    why="You can tell from the source what a program holds: what Python decides, what is copied, and what stays a loop.",
    hints=(
        "Ask of each `if` and each `for`: is it Python's? Then it is carried out while tracing.",
        "What JAX's own functions hold (sides, bodies) is recorded once each, whether and however often it runs.",
    ),
    solution=solution,
    check=check,
)
