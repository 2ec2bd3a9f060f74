"""Answers to the exercise names_and_text.bounds."""

from mlax_tutorial.exercises.names_and_text.bounds import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)

answers.wrong("of the steps are still padding. There may be five")((8, 16))
answers.wrong("fits into none of these")((5, 7, 9, 11))
answers.wrong("No name is longer")((5, 7, 9, 11, 17))
answers.wrong("At most five are asked for")((4, 6, 8, 10, 12, 16))
answers.wrong("in rising order")((5, 9, 7, 11, 16))
answers.wrong("A tuple of lengths")(16)
answers.wrong()(())
answers.wrong()((3, 6, 9, 12, 16))  # evenly spread

answers.right((5, 7, 9, 12, 16))
answers.right([6, 7, 9, 11, 16])
