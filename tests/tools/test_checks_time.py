"""The tool that times the checks of exercises."""

import sys

import pytest

from tools import checks_time


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["checks_time", *arguments])
    checks_time.main()


def test_an_exercise_is_timed_in_a_process_of_its_own(monkeypatch, capsys):
    run(monkeypatch, "welcome.double", "--programs")
    printed = capsys.readouterr().out.splitlines()
    assert "welcome.double" in printed[0] and "its solution" not in printed[0]
    assert "jit(" in printed[1]
    assert printed[-2].startswith("first calls: median ") and printed[-1].startswith("second calls: median ")


def test_a_solution_that_fails_is_named():
    found = {"seconds": [0.1, 0.1], "programs": [[], []], "status": "not graded", "message": "it was not run"}
    assert checks_time.line("welcome.double", found).endswith(
        "welcome.double  its solution: not graded: it was not run"
    )


def test_a_chapter_stands_for_its_exercises():
    chosen = list(checks_time.chosen(["jit.counter", "welcome"]))
    assert "jit.counter" in chosen and "welcome.double" in chosen
    assert {name.partition(".")[0] for name in chosen} == {"jit", "welcome"}
    assert set(chosen) < set(checks_time.chosen([]))


def test_a_name_that_fits_nothing_is_an_error(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, "welcome.double", "welcome.duoble")
    printed = capsys.readouterr()
    assert "no chapter and no exercise 'welcome.duoble'" in printed.err
    assert not printed.out  # it is told before any is timed
