"""How many equations?"""

import contextlib
import io

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.checking import Exercise, checks


def _python_loop(x):
    for _ in range(3):
        x = lax.sin(x)
    return x


def _asks_for_the_shape(x):
    return lax.sin(x) if x.shape == (3,) else lax.cos(lax.cos(x))


def _unused(x):
    lax.cos(x)
    return lax.sin(x)


def _prints_and_counts(x):
    total = sum(range(100))
    print(f"total: {total}")
    return lax.sin(x)


def _nothing(x):
    return x


RECORDED = {
    "a": _python_loop,
    "b": _asks_for_the_shape,
    "c": _unused,
    "d": _prints_and_counts,
    "e": _nothing,
}


solution = {"a": 3, "b": 1, "c": 2, "d": 1, "e": 0}


def check(given):
    x = jax.ShapeDtypeStruct((3,), jnp.float32)
    with contextlib.redirect_stdout(io.StringIO()):  # one of them prints, and the reader did not call it
        expected = {name: len(jax.make_jaxpr(function)(x).jaxpr.eqns) for name, function in RECORDED.items()}
    per_element = (
        "An operation works on the whole array: that is one equation, however many elements there are."
    )
    why = {
        "a": {
            1: "The loop is Python's, so it runs while tracing: JAX sees what its body does, three times.",
            4: "The loop itself is Python's and leaves nothing; only what its body asks of JAX is recorded.",
            9: per_element,
        },
        "b": {
            3: "A shape is known while tracing, so Python takes one branch, and JAX never sees the other.",
            2: "The shape of x is (3,), so Python takes the first branch, and to ask for a shape is no operation.",
            4: "A shape is known while tracing: the comparison is Python's, and JAX never sees the other branch.",
        },
        "c": {
            1: "Nothing is left out while recording, used or not. Leaving out comes later.",
            6: per_element,
        },
        "d": {
            0: "Python's sum leaves no trace, but the sine does.",
            2: "What Python computes by itself, and what it prints, is not recorded.",
            3: "Python's sum and Python's print: neither of the two is recorded.",
            100: "What Python computes by itself is not recorded.",
            101: "What Python computes by itself is not recorded.",
        },
        "e": {1: "To return an input takes no equation: the jaxpr's output is its input."},
    }
    checks.answers(given, expected, why)


exercise = Exercise(
    title="How many equations?",
    stars=1,
    minutes=5,
    why="You know what JAX sees of a function and what it does not: most surprises under jit come from this line.",
    hints=(
        "Play Python: go through the lines with x of shape (3,), and make a mark for each operation on x.",
        "Loops, prints and questions about shapes belong to Python. Nobody has yet looked at what is used.",
    ),
    solution=solution,
    check=check,
)
