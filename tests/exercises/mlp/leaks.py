"""Answers to the exercise mlp.leaks."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.mlp.leaks import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)

answers.wrong("Split first, then make copies")(solution | {"a": False})
answers.wrong("tells nothing of the test set")(solution | {"b": True})
answers.wrong("twenty tries")(solution | {"c": False})
answers.wrong("Split the shoes")(solution | {"d": False})
answers.wrong("as those of a user will be")(solution | {"e": True})
answers.wrong("`True` or `False` is asked for")(solution | {"e": "no"})
answers.wrong("a dict is asked for")(list(solution.values()))

# Right ones of unusual style, and wrong ones that look right

answers.right({name: np.bool_(value) for name, value in solution.items()})
answers.right({name: jnp.asarray(value) for name, value in solution.items()})
answers.right(dict(reversed(solution.items())))
answers.wrong()({name: int(value) for name, value in solution.items()})
answers.wrong()({name: not value for name, value in solution.items()})
