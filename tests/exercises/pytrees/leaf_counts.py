"""Answers to the exercise pytrees.leaf_counts."""

import collections

import numpy as np

from mlax_tutorial.exercises.pytrees.leaf_counts import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("however many numbers")(solution | {"a": 12})
answers.wrong("however many numbers")(solution | {"c": 6})
answers.wrong("it is no leaf")(solution | {"b": 3})
answers.wrong("holds no leaf, and is none")(solution | {"d": 3})
answers.wrong("A set is not in the registry")(solution | {"e": 4})
answers.wrong("a number or not")(solution | {"e": 0})
answers.wrong("like other tuples")(solution | {"f": 1})
answers.wrong("The second of the two")(solution | {"f": 2})
answers.wrong("A range is not in the registry, so")(solution | {"g": 6})
answers.wrong("the dicts in it are opened")(solution | {"h": 2})
answers.wrong("the containers themselves")(solution | {"h": 5})
answers.wrong("a dict is asked for")(list(solution.values()))
answers.wrong("A number is asked for")({name: str(number) for name, number in solution.items()})


# Right ones of unusual style, and wrong ones that look right


answers.right({name: np.int64(number) for name, number in solution.items()})
answers.right(collections.OrderedDict(reversed(solution.items())))
