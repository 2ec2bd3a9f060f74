"""Every exercise of every chapter: the stub, the solution, and each wrong answer, through its own checker.

Chapters and exercises are discovered. A new chapter's module needs no line here. (`python -m tools.rehearse exercises` grades
the solutions once more, with products rounded as on a TPU.)
"""

import contextlib
import functools
import inspect
import io

import pytest

from mlax_tutorial.checking import Exercise, Mistake, catalog, reader
from mlax_tutorial.checking.outcome import FAILED, NOT_ATTEMPTED, PASSED

EXERCISES = [exercise for chapter in catalog.chapters() for exercise in catalog.of(chapter)]
MISTAKES = [
    pytest.param(exercise, number, mistake, id=f"{exercise.chapter}.{exercise.name}-{number}-{_name}")
    for exercise in EXERCISES
    for number, mistake in enumerate(exercise.mistakes)
    for _name in [getattr(reader.underlying(mistake.answer), "__name__", "value")]
]
each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: f"{e.chapter}.{e.name}")


@functools.cache
def graded(exercise, mistake):
    """The outcome of the solution (``mistake`` is None), or of a wrong answer: worked out once for all tests."""
    return grade(exercise, mistake)


def grade(exercise, mistake):
    return submit(exercise, exercise.answer if mistake is None else mistake.answer)


def submit(exercise, answer):
    """Grades as a reader would, and sees to it that nothing is printed and the checker itself does not break."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        outcome = exercise.grade(answer, seconds=60)
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


def test_there_are_exercises():
    assert len(EXERCISES) >= 1 and "welcome" in catalog.chapters()
    assert all(catalog.of(chapter) for chapter in catalog.chapters()), "a chapter's module holds no exercise"


@each
def test_is_complete(exercise):
    assert exercise.name != "exercise" and exercise.name.isidentifier()
    assert 0 < len(exercise.title) <= 60 and not exercise.title.endswith(".")
    assert exercise.stars in (1, 2, 3) and 1 <= exercise.minutes <= 30
    assert exercise.why.strip().endswith((".", "!")) and len(exercise.why) >= 30
    assert len(exercise.hints) >= 2 and all(hint.strip() for hint in exercise.hints)
    assert len(set(exercise.hints)) == len(exercise.hints)
    assert len(exercise.mistakes) >= 3 and all(isinstance(mistake, Mistake) for mistake in exercise.mistakes)
    assert isinstance(exercise, Exercise)


@each
def test_solution_is_shown(exercise):
    text = exercise.solution_text()
    assert len(text) > 3
    if inspect.isfunction(exercise.answer):
        assert exercise.name in text and exercise.answer.__name__.lstrip("_") != "<lambda>"


@each
def test_a_stub_is_not_attempted(exercise):
    for stub in stubs(exercise):
        outcome = submit(exercise, stub)
        assert outcome.status == NOT_ATTEMPTED, str(outcome)


@each
def test_the_solution_passes(exercise, optimized):
    outcome = graded(exercise, None)
    assert outcome.status == PASSED, str(outcome)
    assert outcome.message == exercise.why


@pytest.mark.parametrize("exercise, number, mistake", MISTAKES)
def test_a_wrong_answer_gets_its_diagnosis(exercise, number, mistake):
    outcome = graded(exercise, mistake)
    assert outcome.status == FAILED, f"this wrong answer: {mistake.answer}\n{outcome}"
    assert mistake.says in outcome.text, f"expected to read {mistake.says!r} in\n{outcome}"


@each
def test_diagnoses_tell_mistakes_apart(exercise):
    """Mistakes of one kind may share a diagnosis, but there are three or more, and none is part of another's."""
    texts = [(mistake.says, graded(exercise, mistake).text) for mistake in exercise.mistakes]
    assert len({says for says, _ in texts}) >= 3
    for says in {says for says, _ in texts}:
        others = [other for other, text in texts if other != says and says in text]
        assert not others, f"{says!r} also stands in the diagnosis of {others}: it tells nothing apart"


@each
def test_the_same_is_said_twice(exercise):
    """Outputs are stored in the book, so they must not change from run to run."""
    for mistake in (None, exercise.mistakes[0]):
        one, two = graded(exercise, mistake), grade(exercise, mistake)
        assert one.message == two.message
        if "called again" not in one.message:  # else it is the wrong answer that changes
            assert one.text == two.text and one._repr_html_() == two._repr_html_()
