"""Answers to one exercise, as readers write them: wrong ones with the diagnosis that each must get, and right ones of unusual style.

A file `tests/exercises/CHAPTER/EXERCISE.py` collects them, and nothing else has to be said; `owed.py` holds the tests::

    answers = Answers(exercise)

    @answers.wrong("`return` missing")      # a part of the diagnosis that it must get
    def in_place(x): ...

    answers.wrong("is no dtype")({"a": 32})  # an answer that is a value

    @answers.wrong()                         # looks right, and must fail, whatever is said
    def nearly(x): ...

    @answers.right
    def by_addition(x): ...
"""

import dataclasses
from typing import Any

from mlax_tutorial.checking import Exercise, reader


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """An answer, and a part of the diagnosis that it must get: an empty one where nothing is asked of it."""

    answer: Any
    says: str = ""

    @property
    def name(self):
        return getattr(reader.underlying(self.answer), "__name__", "value")


class Answers:
    """The answers to an exercise that its file has registered."""

    def __init__(self, exercise: Exercise):
        self.exercise = exercise
        self.rights, self.wrongs = [], []

    def right(self, answer):
        """Registers a right answer, and gives it back unchanged."""
        self.rights.append(Answer(answer))
        return answer

    def wrong(self, says=""):
        """Registers a wrong answer, and gives it back unchanged."""

        def register(answer):
            self.wrongs.append(Answer(answer, says))
            return answer

        return register

    @property
    def different(self):
        """Three of these with different diagnoses: of each the first."""
        return [*{wrong.says: wrong for wrong in reversed(self.diagnosed)}.values()][::-1][:3]

    @property
    def diagnosed(self):
        """The wrong answers that must get a diagnosis of their own."""
        return [wrong for wrong in self.wrongs if wrong.says]
