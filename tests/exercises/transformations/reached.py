"""Answers to the exercise transformations.reached."""

import numpy as np

from mlax_tutorial.exercises.transformations.reached import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("two of the three are `sin`")(solution | {"a": 1})
answers.wrong("`math.sin` is Python's")(solution | {"b": 1})
answers.wrong("so it is recorded, whatever its input is")(solution | {"c": 0})
answers.wrong("recorded once, and rewritten once")(solution | {"d": 10})
answers.wrong("recorded round by round")(solution | {"e": 1})
answers.wrong("only one of them holds a `sin`")(solution | {"f": 2})
answers.wrong("taken or not")(solution | {"f": 0})
answers.wrong("one equation on an array of five")(solution | {"g": 5})
answers.wrong("minus the sine")(solution | {"h": 0})
answers.wrong("a dict is asked for")(list(solution.values()))


# Right ones of unusual style, and wrong ones that look right


answers.right({name: np.int64(n) for name, n in solution.items()})
answers.wrong()(dict.fromkeys(solution, 1))
answers.wrong()({name: str(n) for name, n in solution.items()})
