"""Answers to the exercise pytrees.traced."""

import numpy as np

from mlax_tutorial.exercises.pytrees.traced import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("their order does not matter")(solution | {"a": True})
answers.wrong("the number of elements is the same")(solution | {"b": False})
answers.wrong("its key is a part")(solution | {"c": False})
answers.wrong("An int becomes int32")(solution | {"d": False})
answers.wrong("not who made it")(solution | {"e": True})
answers.wrong("now there is a leaf")(solution | {"f": False})
answers.wrong("two leaves instead of one")(solution | {"g": False})
answers.wrong("another container than a dict")(solution | {"h": False})
answers.wrong("not even nan")(solution | {"i": True})
answers.wrong("`True` or `False` is asked for")(solution | {"a": "no"})
answers.wrong("a dict is asked for")([*solution.values()])


# Right ones of unusual style, and wrong ones that look right


answers.right({name: np.bool_(answer) for name, answer in solution.items()})
