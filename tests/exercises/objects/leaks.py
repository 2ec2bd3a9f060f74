"""Answers to the exercise objects.leaks, and what really happens."""

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial.exercises.objects._modules import Module, Parameter, Variable, jit
from mlax_tutorial.exercises.objects.leaks import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Scale(Module):
    def __init__(self, factor):
        self.factor = Parameter(jnp.float32(factor))
        self.calls = Variable(jnp.int32(0))

    def __call__(self, x):
        self.calls.value += 1
        return self.factor.value * x


call = Scale.__call__
WAYS = {
    "a": lambda scale: [jit(call)(scale, 1.0) for _ in range(3)],
    "b": lambda scale: [jax.jit(call)(scale, 1.0) for _ in range(3)],
    "c": lambda scale: [jax.jit(lambda x: scale(x))(1.0) for _ in range(3)],
    "d": lambda scale: [jax.jit(scale.__call__)(1.0) for _ in range(3)],
    "e": lambda scale: jit(lambda s: [s(1.0) for _ in range(3)])(scale),
    "f": lambda scale: jax.vmap(scale)(jnp.ones(3)),
    "g": lambda scale: [jit(lambda t: t["s"](1.0))({"s": scale}) for _ in range(3)],
    "h": lambda scale: jit(lambda other, s: s(1.0))(Scale(3.0), scale),
    "i": lambda scale: jit(lambda s: setattr(s, "calls", Variable(7)))(scale),
    "j": lambda scale: jit(lambda s: setattr(s, "last", s.calls.value))(scale),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", WAYS)
def test_the_solution_is_what_happens(name, strict):
    scale = Scale(2.0)
    try:
        with jax.check_tracer_leaks(strict):
            WAYS[name](scale)
        count = scale.calls.value
        said = "error" if isinstance(count, jax.core.Tracer) else int(count)
    except Exception:
        said = "error"
    assert said == solution[name]


right = dict(solution)
answers.right(right)
answers.right({name: str(value) if value == "error" else float(value) for name, value in right.items()})
answers.right({name: jnp.int32(value) if value != "error" else value for name, value in right.items()})

answers.wrong("Who sees it afterwards?")(right | {"b": 3})
answers.wrong("yours is never written to")(right | {"b": 1})
answers.wrong("written to while tracing. With what?")(right | {"c": 3})
answers.wrong("and not as an argument.")(right | {"d": 3})
answers.wrong("how often does Python run the inner one")(right | {"e": 1})
answers.wrong("Is what it adds to the count batched?")(right | {"f": 3})
answers.wrong("Nothing here needs a module")(right | {"g": "error"})
answers.wrong("Which argument is written back? `scale` is the second one")(right | {"h": 1})
answers.wrong("What is in it?")(right | {"i": 1})
answers.wrong("What does `update` find in it?")(right | {"i": "error"})
answers.wrong("What does `pure` compare?")(right | {"j": 0})
answers.wrong()({name: 3 for name in right})
