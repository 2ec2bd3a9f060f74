"""How long runs take, told from the seconds of a small project."""

import pytest

from tools.passed import Record, projection, record

CHAPTER, ANSWERS, LAWS = "book/jit.ipynb", "tests/exercises/jit/counter.py", "tests/library/test_laws.py"

VISITOR = "tests/site/test_live.py"

CONTENTS = {
    CHAPTER: '{"cells": []}',
    ANSWERS: "",
    LAWS: "from mlax_tutorial.nn import layer",
    VISITOR: "# visits: book/jit.html\n",
}


@pytest.fixture(autouse=True)
def records_are_written(monkeypatch):
    monkeypatch.delenv("CI", raising=False)


def project(root, environments, remembered, python="3.12"):
    """Clocks of environments, and lines of the units that passed, from another Python than the one that asks.

    Of the units only the laws depend on the library's core."""
    (root / "mlax_tutorial/nn").mkdir(parents=True)
    for module in ("mlax_tutorial/__init__.py", "mlax_tutorial/nn/__init__.py", projection.CORE):
        (root / module).write_text("")
    for name, clock in environments.items():
        for unit in clock:
            (root / unit).parent.mkdir(parents=True, exist_ok=True)
            (root / unit).write_text(CONTENTS[unit])
        Record(name, root=root).measured(clock)
        for unit in remembered:
            if unit in clock:
                Record(name, python=python, root=root).passed(unit, clock[unit])


def minutes(table, command):
    (line,) = [line for line in table.splitlines() if line.startswith(f"| {command}")]
    return [float(cell) for cell in line.split("|")[2:4]]


def test_a_tenth_of_what_is_remembered_runs_and_what_changed(tmp_path):
    environments = {"newest": {CHAPTER: 120.0, ANSWERS: 240.0, LAWS: 480.0}, "oldest": {ANSWERS: 240.0}}
    project(tmp_path, environments, remembered=[CHAPTER, ANSWERS])
    assert (tmp_path / "tests/passed/oldest-py3.12.jsonl").exists()
    table = projection.table(tmp_path, chapters=2, exercises=3)
    # two workers: 1 + 2 + 4 minutes on the newest JAX and 2 on the oldest; with two chapters and three exercises 2 + 6 + 4 and 6
    assert minutes(table, "`make test-all`") == [9, 18]
    # a tenth of the chapter and of the answers; the laws, which are not remembered
    assert minutes(table, "`make test`, fresh clone") == [4.3, 4.8]
    # 0.1 + 0.2 + 4 + 0.2, and nine tenths of the chapter
    assert minutes(table, "`.ci/run`, one chapter changed") == [5.4, 6.3]
    # nine tenths of the answers, too, in both environments
    assert minutes(table, "`.ci/run`, one exercise changed") == [9.0, 9.9]


def test_what_does_not_depend_on_the_core_is_left_out_when_it_changes(tmp_path):
    environments = {"newest": {CHAPTER: 120.0, ANSWERS: 240.0, LAWS: 480.0}, "oldest": {ANSWERS: 240.0}}
    project(tmp_path, environments, remembered=[CHAPTER, ANSWERS, LAWS])
    table = projection.table(tmp_path, chapters=2, exercises=3)
    # the laws, and a tenth of 1 + 2 minutes; of 2 + 6; in CI a tenth of the oldest JAX's answers, too
    assert minutes(table, "`make test`, the library's core changed") == [4.3, 4.8]
    assert minutes(table, "`.ci/run`, likewise, nothing recorded") == [4.5, 5.4]
    # after `make test` a tenth of everything
    assert minutes(table, "`.ci/run`, likewise, what `make test` then recorded") == [0.9, 1.8]
    assert minutes(table, "`make test`, fresh clone") == [0.7, 1.2]


def test_a_file_that_did_not_run_here_counts_with_the_seconds_on_record(tmp_path):
    project(
        tmp_path,
        {"newest": {CHAPTER: 120.0, LAWS: 480.0}, "oldest": {LAWS: 240.0}},
        remembered=[CHAPTER, LAWS],
    )
    Record("newest", root=tmp_path).clock.write_text('{"tests/library/test_laws.py": 240.0}')
    Record("oldest", root=tmp_path).clock.unlink()
    programs = Record("programs", python="3.12", root=tmp_path)
    programs.passed(LAWS, 1000.0)
    programs.clock.unlink()  # programs have none
    # two workers: 1 + 2 minutes on the newest JAX, 2 on the oldest
    assert minutes(projection.table(tmp_path, chapters=1, exercises=1), "`make test-all`")[0] == 5


def test_a_file_counts_once_and_a_visitor_depends_on_the_chapters_of_its_pages(tmp_path):
    """The clock of the pages may hold what is remembered with the tests today."""
    project(tmp_path, {"newest": {CHAPTER: 120.0, VISITOR: 240.0}}, remembered=[CHAPTER, VISITOR])
    Record("pages", root=tmp_path).measured({VISITOR: 240.0})
    assert minutes(projection.table(tmp_path, 1, 1), "`make test-all`")[0] == 3
    assert projection._dependent(tmp_path, [VISITOR], CHAPTER) == {VISITOR}


def test_a_record_that_was_edited_is_told(tmp_path):
    project(tmp_path, {"newest": {LAWS: 480.0}}, remembered=[LAWS])
    path = tmp_path / "tests/passed/newest-py3.12.jsonl"
    path.write_text(path.read_text().replace("480.0", "4.0"))
    with pytest.raises(record.Refused, match="newest-py3.12.jsonl is refused"):
        projection.table(tmp_path, chapters=1, exercises=1)


def test_what_grows_with_chapters_and_with_exercises():
    kinds = {
        "book/jit.ipynb": "chapter",
        "book/jit.html": "chapter",
        "tests/chapters/test_attention.py": "chapter",
        "book/reference/optim.html": "fixed",
        "tests/exercises/jit/counter.py": "exercise",
        "mlax_tutorial/exercises/jit/counter.py": "exercise",
        "tests/exercises/test_all.py": "fixed",
        "tests/library/test_laws.py": "fixed",
    }
    assert {unit: projection._kind(unit) for unit in kinds} == kinds


def test_the_last_line_says_what_is_not_counted(tmp_path):
    project(tmp_path, {"newest": {LAWS: 1.0}}, remembered=[])
    assert "not counted" in projection.table(tmp_path, 1, 1).splitlines()[-1]


def test_files_that_only_report_are_no_part_of_a_key():
    """A change of the projection voids no record; one of what decides voids all."""
    tool = record._tool()
    assert (record.TOOL / "record.py").read_text() in tool and (record.TOOL / "plugin.py").read_text() in tool
    assert (record.TOOL / "projection.py").read_text() not in tool
