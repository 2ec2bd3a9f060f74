"""Answers to the exercise tracing.recorded."""

import collections

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.tracing.recorded import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("three times")(solution | {"a": 1})
answers.wrong("leaves nothing")(solution | {"a": 4})
answers.wrong("however many elements")(solution | {"a": 9, "c": 6})
answers.wrong("to ask for a shape is no operation")(solution | {"b": 2})
answers.wrong("JAX never sees the other")(solution | {"b": 3})
answers.wrong("Leaving out comes later")(solution | {"c": 1})
answers.wrong("what it prints, is not recorded")(solution | {"d": 2})
answers.wrong("takes no equation")(solution | {"e": 1})
answers.wrong("A number is asked for")({name: str(number) for name, number in solution.items()})
answers.wrong("a dict is asked for")(list(solution.values()))


# Right ones of unusual style, and wrong ones that look right


COUNTS = {"a": 3, "b": 1, "c": 2, "d": 1, "e": 0}


answers.right({name: np.int64(count) for name, count in COUNTS.items()})
answers.right({name: jnp.array(count) for name, count in COUNTS.items()})
answers.right(collections.OrderedDict(reversed(COUNTS.items())))
