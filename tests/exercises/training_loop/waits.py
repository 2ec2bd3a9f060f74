"""Answers to the exercise training_loop.waits."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.training_loop.waits import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)

answers.wrong("A list holds references")(solution | {"a": True})
answers.wrong("`if` needs True or False")(solution | {"b": False})
answers.wrong("one more thing that is handed over")(solution | {"c": True})
answers.wrong("one needs digits")(solution | {"d": False})
answers.wrong("known before the first number")(solution | {"e": True})
answers.wrong("fetched first")(solution | {"f": False})
answers.wrong("run on the device, after the steps")(solution | {"g": True})
answers.wrong("that is how steps queue up")(solution | {"h": True})
answers.wrong("`True` or `False` is asked for")(solution | {"h": "no"})
answers.wrong("a dict is asked for")(list(solution.values()))

# Right ones of unusual style, and wrong ones that look right

answers.right({name: np.bool_(value) for name, value in solution.items()})
answers.right({name: jnp.asarray(value) for name, value in solution.items()})
answers.right(dict(reversed(solution.items())))
answers.wrong()({name: int(value) for name, value in solution.items()})
answers.wrong()({name: not value for name, value in solution.items()})
