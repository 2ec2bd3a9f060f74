"""Answers to the exercise derivative_rules.receives."""

from mlax_tutorial.exercises.derivative_rules.receives import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("called as the function is")(solution | {"a": ("g", "x", "n")})
answers.wrong("comes first, wherever")(solution | {"b": ("r", "c", "g")})
answers.wrong("residuals come before")(solution | {"b": ("g", "c", "r")})
answers.wrong("There is none for an argument")(solution | {"c": 3})
answers.wrong("it stands for something")(solution | {"d": "error"})
answers.wrong("one that holds nothing")(solution | {"e": "error"})
answers.wrong("cannot make a forward mode")(solution | {"f": "zeros"})
answers.wrong("says that nothing moves")(solution | {"g": "error"})
answers.wrong("No answer for")({"a": ("x", "g", "n")})


# Right ones of unusual style, and wrong ones that look right


answers.right(solution | {"d": "Zeros", "f": "ERROR", "g": 0.0})
answers.right(solution | {"d": 0, "g": "zeros"})
answers.right(solution | {"a": ["x", "g", "n"], "b": ["g", "r", "c"]})
answers.wrong()({name: "error" for name in solution})
answers.wrong()(solution | {"c": 0})
