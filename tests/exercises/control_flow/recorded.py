"""Answers to the exercise control_flow.recorded."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.control_flow.recorded import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("recorded in each round")(solution | {"a": 1})
answers.wrong("that is the cosine")(solution | {"b": 1})
answers.wrong("the sine stands there twice")(solution | {"c": 1})
answers.wrong("those that are not taken")(solution | {"c": 0})
answers.wrong("still computed")(solution | {"d": 0})
answers.wrong("no loop and no copies")(solution | {"d": 3})
answers.wrong("recorded once, however often")(solution | {"e": 5})
answers.wrong("before it picks")(solution | {"f": 1})
answers.wrong("however many elements")(solution | {"a": 15, "f": 6})
answers.wrong("A number is asked for")(solution | {"a": "5"})
answers.wrong("a dict is asked for")(list(solution.values()))


# Right ones of unusual style, and wrong ones that look right


COUNTS = {"a": 5, "b": 0, "c": 2, "d": 1, "e": 1, "f": 2}


answers.right({name: np.int64(count) for name, count in COUNTS.items()})
answers.right({name: jnp.array(count) for name, count in COUNTS.items()})
answers.wrong()({name: True for name in COUNTS})
