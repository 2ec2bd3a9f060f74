"""Answers to the exercise jit.traces."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.jit.traces import exercise, solution
from mlax_tutorial.inspection import retracing
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("all are weak floats")(solution | {"a": 3})
answers.wrong("are three types to JAX")(solution | {"b": 1})
answers.wrong("A bool is a type of its own")(solution | {"b": 2})
answers.wrong("more than the number of elements")(solution | {"c": 1})
answers.wrong("A NumPy array of the same shape")(solution | {"c": 3})
answers.wrong("types of the first")(solution | {"d": 3})
answers.wrong("the second dict has no such key")(solution | {"e": 1})
answers.wrong("order does not count")(solution | {"e": 3})
answers.wrong("looked up apart")(solution | {"f": 1})
answers.wrong("makes a new function each time")(solution | {"g": 1})
answers.wrong("five times a float32")(solution | {"h": 5})
answers.wrong("a dict is asked for")([1, 3, 2, 2, 2, 2, 5, 1])


# Right ones of unusual style, and wrong ones that look right


answers.right({name: np.int32(number) for name, number in solution.items()})
answers.wrong()({name: str(number) for name, number in solution.items()})
answers.wrong()({**solution, "i": 1})


def test_the_traces_are_so_many():
    """The answers are counted, not believed."""
    calls = {
        "a": [((1.0,), {}), ((2.0,), {}), ((3.0,), {})],
        "b": [((1,), {}), ((1.0,), {}), ((True,), {})],
        "c": [((jnp.ones(2),), {}), ((jnp.ones((1, 2)),), {}), ((np.ones(2, np.float32),), {})],
        "d": [(([1.0, 2.0],), {}), (([1.0, 2.0, 3.0],), {}), (([3.0, 4.0],), {})],
        "e": [(({"a": 1.0, "b": None},), {}), (({"a": 1.0},), {}), (({"b": None, "a": 2.0},), {})],
        "f": [((), {"x": 1.0}), ((1.0,), {})],
        "h": [((jnp.float32(n),), {}) for n in range(5)],
    }
    for name, several in calls.items():
        fast = jax.jit(lambda x: x)
        with retracing.counted(fast) as count:
            for args, kwargs in several:
                fast(*args, **kwargs)
        assert count() == solution[name], name
    total = 0
    for n in range(5):
        fast = jax.jit(lambda x, n=n: x + n)
        with retracing.counted(fast) as count:
            fast(1.0)
        total += count()
    assert total == solution["g"]
