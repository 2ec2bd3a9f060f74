"""Answers to the exercise vmap.shapes."""

from mlax_tutorial.exercises.vmap.shapes import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("dot product of two vectors is a number")(solution | {"a": (4, 3)})
answers.wrong("with a comma")(solution | {"a": 4})
answers.wrong("of two vectors is a table")(solution | {"d": (4, 3)})
answers.wrong("there are four of them")(solution | {"h": (3,)})
answers.wrong("not each with each")(solution | {"b": (4, 4)})
answers.wrong("each example gets a column")(solution | {"b": "error"})
answers.wrong("four rows do not go with five")(solution | {"c": (4, 5)})
answers.wrong("four examples, not sixteen")(solution | {"d": (4, 4, 3, 3)})
answers.wrong("Axis 2 is the last")(solution | {"e": (4, 3, 3)})
answers.wrong("The outer map's axis comes first")(solution | {"f": (5, 4), "g": (4, 5)})
answers.wrong("leaves a vector as it is")(solution | {"h": (3, 4)})
answers.wrong("a dict is asked for")(list(solution.values()))


# Right ones of unusual style, and wrong ones that look right


SHAPES = solution


answers.right({name: list(x) if isinstance(x, tuple) else "Error" for name, x in SHAPES.items()})
answers.wrong()({name: str(x) for name, x in SHAPES.items()})
answers.wrong()({name: "error" for name in SHAPES})
