"""Double every element."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, inputs


def solution(x):
    return 2 * x


def check(double):
    x = np.array([1.0, 2.0, 3.0], np.float32)
    before = x.copy()
    try:
        double(x)
    except Failed:  # what a NumPy array refuses, a jax.Array may well do: `x.at`
        pass
    if not np.array_equal(x, before):
        raise Failed(
            "Your function changed its input: after the call, the caller's array holds other numbers. "
            "A JAX function leaves its inputs alone and returns a new array.",
            input={"x": before},
            shown=[("x after", str(x))],
        )
    checks.values(
        double,
        solution,
        inputs.arrays("n"),
        examples=[(jnp.array([1.0, 2.0, 3.0]),), (jnp.array([0.5, -1.0, 4.0, 0.0]),)],
        recognise=[
            (lambda x: x**2, "This squares each element instead of doubling it."),
            (lambda x: jnp.concatenate([x, x]), "This repeats the array instead of doubling its elements."),
            (lambda x: x + 2, "This adds two to each element instead of doubling it."),
        ],
    )
    checks.works_under_jit(double, jnp.arange(3.0))
    checks.values(double, solution, examples=[(jnp.array([[1.0, 2.0], [3.0, 4.0]]),)])


exercise = Exercise(
    title="Double every element",
    stars=1,
    minutes=2,
    why=(
        "You wrote a function that JAX can trace: arrays in, a new array out, nothing else touched. "
        "Everything in this book is built from such functions."
    ),
    hints=(
        "Arithmetic on an array works on all of its elements at once: no loop is needed.",
        "`x + 1` adds one to every element. What multiplies every element by two?",
    ),
    solution=solution,
    check=check,
)
