"""Answers of unusual style, as readers write them: right ones pass, and wrong ones that look right do not.

A chapter's tests collect them with two decorators, and end with what pytest finds::

    right, wrong = Answers(PASSED), Answers(FAILED)

    @right(arrays.lookup)
    def by_hand(table, ids): ...

    right(arrays.dtypes)({"a": "float32"})  # an answer that is a value

    test_right_answers_pass, test_wrong_answers_fail = right.test(), wrong.test()
"""

import pytest

from mlax_tutorial.checking.outcome import FAILED, PASSED

__all__ = ["FAILED", "PASSED", "Answers"]


class Answers:
    """Answers that are all to be graded alike: `PASSED`, or `FAILED`."""

    def __init__(self, status):
        self.status, self.cases = status, []

    def __call__(self, exercise):
        """Registers an answer to the exercise, and gives it back unchanged."""

        def register(answer):
            self.cases.append(pytest.param(exercise, answer, id=f"{exercise.name}-{len(self.cases)}"))
            return answer

        return register

    def test(self):
        """The test of all answers registered so far."""
        assert self.cases, "no answer is registered yet: call this at the end of the module"

        @pytest.mark.parametrize("exercise, answer", self.cases)
        def test_is_graded(exercise, answer):
            outcome = exercise.grade(answer, seconds=60)
            assert outcome.fault is None, f"the check broke: {outcome.fault!r}\n{outcome}"
            assert outcome.status == self.status, str(outcome)

        return test_is_graded
