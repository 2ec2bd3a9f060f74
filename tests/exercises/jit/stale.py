"""Answers to the exercise jit.stale."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.jit.stale import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)

answers.wrong("the program has the old rate in it")(solution | {"b": 3})
answers.wrong("here 4")(solution | {"c": 2})
answers.wrong("is not weak")(solution | {"d": 2})
answers.wrong("finds the old trace")(solution | {"e": 3})
answers.wrong("Python appends only while it traces")(solution | {"f": 5})
answers.wrong("what is in it is traced")(solution | {"g": 2})
answers.wrong()({"a": 2})
answers.wrong()(dict.fromkeys("abcdefg", 2))
answers.right({name: float(value) for name, value in solution.items()})


def test_what_jax_says():
    names = {"jax": jax, "jnp": jnp}
    exec(  # `rate` is a global of the function that is jitted
        """
rate, seen, settings = 2.0, [], {"scale": 2.0}

@jax.jit
def scale(x):
    seen.append(1)
    return rate * x

a = scale(1.0)
rate = 3.0
b = scale(1.0)
c = scale(4.0)
d = scale(jnp.float32(1.0))
e = jax.grad(scale)(1.0)
f = len(seen)

apply = jax.jit(lambda settings, x: settings["scale"] * x)
apply(settings, 1.0)
settings["scale"] = 5.0
g = apply(settings, 1.0)
""",
        names,
    )
    assert {name: float(names[name]) for name in solution} == solution
