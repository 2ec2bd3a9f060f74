"""Every exercise of the package has its file of answers here, and a line in its chapter's listing; nothing else lies there."""

import pathlib

import pytest

from mlax_tutorial import exercises
from mlax_tutorial.exercises import catalog

PACKAGE, TESTS = pathlib.Path(exercises.__file__).parent, pathlib.Path(__file__).parent


def files(folder):
    """The names of the files of a chapter's folder, but for those that several exercises share."""
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))


def test_there_are_exercises():
    folders = sorted(path.name for path in TESTS.iterdir() if path.is_dir() and not path.name.startswith("_"))
    assert sorted(catalog.chapters()) == folders and "welcome" in folders


@pytest.mark.parametrize("chapter", catalog.chapters())
def test_every_exercise_has_its_answers_and_is_listed(chapter):
    listed = [exercise.name for exercise in catalog.of(chapter)]
    assert sorted(listed) == files(PACKAGE / chapter) == files(TESTS / chapter) != []
    assert {exercise.chapter for exercise in catalog.of(chapter)} == {chapter}
