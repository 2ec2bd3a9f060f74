"""Answers to the exercise autodiff.slopes."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.autodiff.slopes import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("counted from 0")(solution | {"a": 4.0})
answers.wrong("This is the value")(solution | {"b": 8.0})
answers.wrong("takes the other side")(solution | {"c": 2.0})
answers.wrong("knows its value")(solution | {"c": "error"})
answers.wrong("comes back as well")(solution | {"d": 4.0})
answers.wrong("the extra itself")(solution | {"d": (4.0, 3.0)})
answers.wrong("refuses integers")(solution | {"e": 8.0})
answers.wrong("splits the derivative evenly")(solution | {"f": 1.0})
answers.wrong("`floor` is flat")(solution | {"f": 1.5})
answers.wrong("depends on `x`, too: at 3")(solution | {"g": 18.0})
answers.wrong("No answer for")({"a": 12.0})
answers.wrong("a dict is asked for")(list(solution.values()))


# Right ones of unusual style, and wrong ones that look right


SLOPES = solution


answers.right(SLOPES | {"a": 12, "e": "Error", "f": np.float32(0.5), "d": (4, 6)})
answers.right(SLOPES | {"b": jnp.array(12.0)})
answers.wrong()({name: "error" for name in SLOPES})
answers.wrong()(SLOPES | {"g": True})
