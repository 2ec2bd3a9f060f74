"""Answers to one exercise, as readers write them: wrong ones with the diagnosis that each must get, and right ones of unusual style.

A file `tests/exercises/CHAPTER/EXERCISE.py` collects them, and nothing else has to be said; `owed.py` holds the tests. This is
``tests/exercises/welcome/halve.py``::

    # Answers to the exercise welcome.halve.

    import jax.numpy as jnp

    from mlax_tutorial.exercises.welcome.halve import exercise
    from tests.exercises.answers import Answers

    answers = Answers(exercise)


    @answers.wrong("`return` missing")
    def in_place(x):
        x /= 2


    @answers.wrong("expected 0.5, got 0.")
    def rounds_down(x):
        return x // 2


    @answers.wrong("returned a list")
    def halve_list(x):
        return [element / 2 for element in x]


    @answers.wrong()  # it must fail, whatever is said
    def drops_the_first(x):
        return x[1:] / 2


    @answers.right
    def by_product(x):
        return jnp.multiply(x, 0.5)


    answers.right(lambda x: x - x / 2)  # without a decorator, as for an answer that is a value

An answer marked ``wrong("text")`` must fail, with a message that contains the text. Use at least three different texts; none may appear in
the message of an answer that is marked with another. One marked ``wrong()`` must fail, whatever is said: for wrong answers that look right.

A step by which `tools.mutants` changes the solution, and which no check can notice, is named with the reason::

    answers.equivalent("x > 0 -> x >= 0", because="where x is 0, both branches are 0")
"""

import dataclasses
from typing import Any

from mlax_tutorial.checking import Exercise, guarding


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """An answer, and a part of the diagnosis that it must get: an empty one where nothing is asked of it."""

    answer: Any
    says: str = ""

    @property
    def name(self):
        return getattr(guarding.underlying(self.answer), "__name__", "value")


class Answers:
    """The answers to an exercise that its file has registered."""

    def __init__(self, exercise: Exercise):
        self.exercise = exercise
        self.rights, self.wrongs, self.equivalents = [], [], {}

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

    def equivalent(self, *mutants, because):
        """Mutants of the solution (`tools.mutants`) that no check could tell from it, and why."""
        self.equivalents |= dict.fromkeys(mutants, because)

    @property
    def different(self):
        """Three of these with different diagnoses: of each the first."""
        return [*{wrong.says: wrong for wrong in reversed(self.diagnosed)}.values()][::-1][:3]

    @property
    def diagnosed(self):
        """The wrong answers that must get a diagnosis of their own."""
        return [wrong for wrong in self.wrongs if wrong.says]
