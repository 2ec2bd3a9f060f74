import pytest

from mlax_tutorial.checking import Exercise, progress


@pytest.fixture(autouse=True)
def progress_file(tmp_path, monkeypatch):
    """No test touches the progress of whoever runs it."""
    file = tmp_path / "data" / "progress.json"
    monkeypatch.setenv(progress.VARIABLE, str(file))
    monkeypatch.setattr(progress, "_said", set())
    return file


@pytest.fixture
def grade():
    """Grades an answer with a check made on the spot; the checker itself must not break."""

    def grade(answer, check, solution=None, seconds=20, **options):
        exercise = Exercise(
            title="A test",
            stars=1,
            minutes=1,
            why="Because it is tested.",
            hints=("One.", "Two."),
            solution=answer if solution is None else solution,
            check=check,
            **options,
        )
        outcome = exercise.grade(answer, seconds=seconds)
        assert outcome.fault is None, repr(outcome.fault)
        return outcome

    return grade
