"""What every exercise owes: its stub, its solution, and the answers of its file, each through its own checker.

`conftest.py` gives these tests to each file `tests/exercises/CHAPTER/EXERCISE.py`; `answers` is that of the file.
(`python -m tools.rehearse exercises` grades the solutions once more: optimized, as on a GPU, and with products rounded as on a TPU.)
"""

import contextlib
import functools
import inspect
import io

from mlax_tutorial.checking.outcome import FAILED, NOT_ATTEMPTED, PASSED


@functools.cache
def graded(exercise, answer):
    """The outcome of an answer of the file: worked out once for all tests."""
    return submit(exercise, answer.answer)


def submit(exercise, answer):
    """Grades as a reader would, and sees to it that nothing is printed and the checker itself does not break."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        outcome = exercise.grade(answer, seconds=max(60, exercise.seconds))
    assert outcome.fault is None, f"the check broke: {outcome.fault!r}\n{outcome}"
    assert printed.getvalue() == "", f"the check printed {printed.getvalue()!r}"
    return outcome


def stubs(exercise):
    """What a notebook holds before the reader begins."""
    if not inspect.isroutine(exercise.answer) and not callable(exercise.answer):
        yield ...
        if isinstance(exercise.answer, dict):
            yield dict.fromkeys(exercise.answer, ...)
        return

    def docstring_and_dots(*args, **kwargs):
        """What it should do."""
        ...

    def raising(*args, **kwargs):
        raise NotImplementedError

    yield from (docstring_and_dots, raising)


def test_is_complete(answers, request):
    exercise = answers.exercise
    assert [exercise.chapter, exercise.name] == request.module.__name__.split(".")[-2:]
    assert 0 < len(exercise.title) <= 60 and not exercise.title.endswith(".")
    assert exercise.stars in (1, 2, 3) and 1 <= exercise.minutes <= 30
    assert exercise.why.strip().endswith((".", "!")) and len(exercise.why) >= 30
    assert len(exercise.hints) >= 2 and all(hint.strip() for hint in exercise.hints)
    assert len(set(exercise.hints)) == len(exercise.hints)
    assert len(answers.diagnosed) >= 3


def test_solution_is_shown(answers):
    exercise = answers.exercise
    text = exercise.solution_text()
    assert len(text) > 3
    if inspect.isfunction(exercise.answer):
        assert f"def {exercise.name}(" in text and "solution" not in text.split("(")[0]


def test_a_stub_is_not_attempted(answers):
    for stub in stubs(answers.exercise):
        outcome = submit(answers.exercise, stub)
        assert outcome.status == NOT_ATTEMPTED, str(outcome)


def test_the_solution_passes(answers):
    outcome = submit(answers.exercise, answers.exercise.answer)
    assert outcome.status == PASSED, str(outcome)
    assert outcome.message == answers.exercise.why


def test_a_right_answer_passes(answers, right):
    outcome = submit(answers.exercise, right.answer)
    assert outcome.status == PASSED, str(outcome)


def test_a_wrong_answer_gets_its_diagnosis(answers, wrong):
    outcome = graded(answers.exercise, wrong)
    assert outcome.status == FAILED, f"this wrong answer: {wrong.answer}\n{outcome}"
    assert wrong.says in outcome.text, f"expected to read {wrong.says!r} in\n{outcome}"


def test_diagnoses_tell_mistakes_apart(answers, request):
    """Mistakes of one kind may share a diagnosis, but there are three or more, and none is part of another's."""
    chosen = answers.different if request.config.getoption("answers") == "few" else answers.diagnosed
    texts = [(wrong.says, graded(answers.exercise, wrong).text) for wrong in chosen]
    assert len({says for says, _ in texts}) >= 3
    for says in {says for says, _ in texts}:
        others = [other for other, text in texts if other != says and says in text]
        assert not others, f"{says!r} also stands in the diagnosis of {others}: it tells nothing apart"


def test_the_same_is_said_twice(answers):
    """Outputs are stored in the book, so they must not change from run to run."""
    first = answers.diagnosed[0]
    one, two = graded(answers.exercise, first), submit(answers.exercise, first.answer)
    assert one.message == two.message
    if "called again" not in one.message:  # else it is the wrong answer that changes
        assert_the_same(one, two)


def assert_the_same(one, two):
    assert one.text == two.text and one._repr_html_() == two._repr_html_()
