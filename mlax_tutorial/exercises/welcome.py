"""The exercise of the chapter Welcome: one, to try the checker."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs


def _double(x):
    return 2 * x


def _check_double(double):
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
        _double,
        inputs.arrays("n"),
        examples=[(jnp.array([1.0, 2.0, 3.0]),), (jnp.array([0.5, -1.0, 4.0, 0.0]),)],
        recognise=[
            (lambda x: x**2, "This squares each element instead of doubling it."),
            (lambda x: jnp.concatenate([x, x]), "This repeats the array instead of doubling its elements."),
            (lambda x: x + 2, "This adds two to each element instead of doubling it."),
        ],
    )
    checks.works_under_jit(double, jnp.arange(3.0))


def _prints_only(x):
    print(2 * x)


def _squares(x):
    return x**2


def _adds_two(x):
    return x + 2


def _repeats(x):
    return jnp.concatenate([x, x])


def _learned_by_heart(x):
    return jnp.array([2.0, 4.0, 6.0])


def _three_elements(x):
    return jnp.array([2 * x[0], 2 * x[1], 2 * x[2]])


def _only_upwards(x):
    return jnp.abs(2 * x)


def _asks_for_numbers(x):
    return jnp.array([2 * element.item() for element in x])


def _tuple(x):
    return (2 * x,)


def _list(x):
    return [2 * element for element in x]


def _in_place(x):
    for i in range(len(x)):
        x[i] = 2 * x[i]
    return x


def _numpy(x):
    return np.multiply(2, x)


double = Exercise(
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
    solution=_double,
    check=_check_double,
    mistakes=(
        Mistake(_prints_only, says="is a `return` missing?"),
        Mistake(_squares, says="squares each element"),
        Mistake(_adds_two, says="adds two"),
        Mistake(_repeats, says="repeats the array"),
        Mistake(_learned_by_heart, says="The shape is wrong: expected (4,)"),
        Mistake(_three_elements, says="The shape is wrong: expected (4,)"),
        Mistake(_only_upwards, says="at [1]: expected -2., got 2."),
        Mistake(_asks_for_numbers, says="Under `jax.jit`"),
        Mistake(_tuple, says="returned a tuple"),
        Mistake(_list, says="returned a list"),
        Mistake(_in_place, says="changed its input"),
        Mistake(_numpy, says="NumPy array"),
    ),
)
