"""Answers to the exercise randomness.same."""

import numpy as np

from mlax_tutorial.exercises.randomness.same import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("has no memory")(solution | {"a": False})
answers.wrong("its randomness is in the key")(solution | {"b": False})
answers.wrong("leaves it as it is")(solution | {"c": False})
answers.wrong("no sequential equivalence")(solution | {"d": True})
answers.wrong("is split into the same keys")(solution | {"e": False})
answers.wrong("not rounded ones")(solution | {"f": True})
answers.wrong("`True` or `False` is asked for")(solution | {"a": "True"})
answers.wrong("a dict is asked for")(list(solution.values()))


# Right ones of unusual style, and wrong ones that look right


SAME = {"a": True, "b": True, "c": True, "d": False, "e": True, "f": False}


answers.right({name: np.bool_(answer) for name, answer in SAME.items()})
answers.wrong()({name: 1 if answer else 0 for name, answer in SAME.items()})
