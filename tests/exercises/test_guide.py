"""The example in the docstrings of `mlax_tutorial.checking` and `answers.py` is found, graded and tested once its files are written."""

import configparser
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

import mlax_tutorial
from mlax_tutorial import checking
from tests.exercises import answers

PACKAGE, TESTS = pathlib.Path(mlax_tutorial.__file__).parent, pathlib.Path(__file__).parents[1]
LISTING = "mlax_tutorial/exercises/welcome/__init__.py"
EXERCISE, ANSWERS = "mlax_tutorial/exercises/welcome/halve.py", "tests/exercises/welcome/halve.py"


def example():
    """The files that the docstrings show, by their names."""
    shown = r"``((?:mlax_tutorial|tests)/exercises/welcome/\w+\.py)``[^:]*::\n\n((?:    .*\n|\n)+)"
    found = re.findall(shown, inspect.getdoc(checking) + "\n\n" + inspect.getdoc(answers) + "\n")
    return {name: textwrap.dedent(text).rstrip() + "\n" for name, text in found}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package and the tests of the exercises, with the example written among them."""
    root = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, root / "mlax_tutorial", ignore=ignored)
    shutil.copytree(TESTS / "exercises", root / "tests" / "exercises", ignore=ignored)
    for name in ("tests/__init__.py", "tests/conftest.py", "tests/settings.py"):
        shutil.copy(TESTS.parent / name, root / name)
    ini = configparser.ConfigParser()
    ini.read(TESTS.parent / "pytest.ini")
    (root / "pytest.ini").write_text(f"[pytest]\npython_files = {ini['pytest']['python_files']}\n")
    for name, text in example().items():
        with open(root / name, "a", encoding="utf-8") as file:  # of the listing there is only the line to add
            file.write(text)
    return root


def python(copy, *arguments):
    """Runs Python in the copy; returns the status and what was printed."""
    environment = os.environ | {
        "PYTHONPATH": str(copy),
        "PYTHONIOENCODING": "utf-8",
        "JAX_PLATFORMS": "cpu",
        "MLAX_TUTORIAL_PROGRESS": str(copy / "progress.json"),
    }
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_docstrings_show_both_files_and_the_line():
    assert list(example()) == [EXERCISE, LISTING, ANSWERS]


def test_the_example_is_found_and_graded(copy):
    status, said = python(copy, "-m", "mlax_tutorial", "exercises")
    assert status == 0 and re.search(r"\[ \] halve +★☆☆ +2 min  Halve every element", said), said
    program = (
        "from mlax_tutorial.exercises import welcome as ex\n"
        "ex.halve.check(lambda x: x * 0.5)\nex.halve.check(lambda x: x // 2)\nex.halve.solution()\n"
    )
    status, said = python(copy, "-c", program)
    assert status == 0 and "halve: passed" in said and "halve: not yet right" in said, said
    assert "def halve(x):" in said


def test_the_example_is_tested(copy):
    """What is true of it passes; with a wrong answer that passes, another diagnosis, or without its listing, it fails."""
    status, said = python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", ANSWERS)
    assert status == 0 and "12 passed" in said, said
    answers, listing = (copy / ANSWERS).read_text(), (copy / LISTING).read_text()
    (copy / ANSWERS).write_text(
        answers.replace("returned a list", "returned a tree") + "\nanswers.wrong()(lambda x: x / 2)\n"
    )
    (copy / LISTING).write_text(listing.replace(example()[LISTING], ""))
    files = [ANSWERS, "tests/exercises/test_files.py"]
    status, said = python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    (copy / ANSWERS).write_text(answers)
    (copy / LISTING).write_text(listing)
    failed = set(re.findall(r"FAILED \S+::(\S+)", said))
    assert failed == {
        "test_a_wrong_answer_gets_its_diagnosis[halve_list]",
        "test_a_wrong_answer_gets_its_diagnosis[<lambda>]",
        "test_every_exercise_has_its_answers_and_is_listed[welcome]",
    }, said
