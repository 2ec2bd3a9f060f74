"""A change reaches what uses it, the nearest first; what finds no room is named."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tools import failures, project, reach

FILES = {
    "pkg/__init__.py": "from pkg.near import near\nfrom pkg.other import other\n__all__ = ['late']\n",
    "pkg/near.py": "from pkg import base\n",
    "pkg/other.py": "import json\n",
    "pkg/figures/late.py": "TABLE = open('table.csv')\n",
    "pkg/base.py": "",
    "pkg/figures/table.csv": "",
    "pkg/sub/__init__.py": "",
    "pkg/sub/inner.py": "from ..other import other\nfrom . import sibling\n",
    "pkg/sub/sibling.py": "",
    "tests/conftest.py": "",
    "tests/a/conftest.py": "from tests.a import helper\n",
    "tests/a/helper.py": "",
    "tests/a/test_near.py": "import pkg\n\npkg.near()\n",
    "tests/a/test_near_too.py": "from pkg import near\n",
    "tests/b/test_late.py": "import pkg as p\n\np.late()\n",
    "tests/b/test_whole.py": "from pkg import sub\n\nlist(vars(sub))\n",
    "tests/b/test_inner.py": "from pkg import sub\n\nsub.inner\n",
    "tests/b/test_script.py": "SCRIPT = 'script.py'\n",
    "tests/b/script.py": "from pkg.other import other\n",
    "book/_src/one.md": "",
    "book/one.ipynb": '{"cells": [{"cell_type": "code", "source": ["%magic\\n"]}, {"cell_type": "code", "source": ["import pkg.base\\n"]}]}',
    "book/_records/one.json": '{"modules": ["pkg/figures/late.py"], "seconds": 20}',
}


@pytest.fixture
def small(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return reach.Project(tmp_path, FILES)


@pytest.mark.parametrize(
    ("changed", "units"),
    [
        ("pkg/near.py", {"tests/a/test_near.py": 1, "tests/a/test_near_too.py": 1}),
        ("pkg/base.py", {"book/one.ipynb": 1, "tests/a/test_near.py": 2, "tests/a/test_near_too.py": 2}),
        ("pkg/figures/late.py", {"tests/b/test_late.py": 1, "book/one.ipynb": reach.FAR}),  # the chapter had loaded it
        ("pkg/figures/table.csv", {"tests/b/test_late.py": 2}),  # named by the module beside it
        ("pkg/other.py", {"tests/b/test_inner.py": 2, "tests/b/test_script.py": 2}),  # relative; by a script that a test names
        ("pkg/sub/inner.py", {"tests/b/test_inner.py": 1}),
        ("pkg/sub/__init__.py", {"tests/b/test_whole.py": 1}),  # handed on as a whole
        ("tests/a/helper.py", {"tests/a/test_near.py": 2, "tests/a/test_near_too.py": 2}),
        ("tests/b/test_late.py", {"tests/b/test_late.py": 0}),
        ("book/_src/one.md", {"book/one.ipynb": 1}),
        ("README.md", {}),
    ],
)  # fmt: skip
def test_what_a_change_reaches(small, changed, units):
    found = dict.fromkeys(small.loaded({changed}), reach.FAR) | small.distances({changed})
    assert {file: step for file, step in found.items() if reach.is_unit(file)} == units


def test_what_was_changed_before_is_two_steps_further(small):
    found = small.distances({"pkg/near.py"}, {"pkg/other.py"})
    assert (
        found["tests/a/test_near.py"] == 1
        and found["pkg/other.py"] == 2
        and found["tests/b/test_inner.py"] == 4
    )
    assert small.distances({"pkg/base.py"}, {"pkg/near.py"})["pkg/near.py"] == 1  # by the nearer way
    assert small.distances((), {"pkg/near.py"})["tests/a/test_near.py"] == 3


def test_of_this_project():
    """A module in the middle reaches its tests and few others; pages follow their chapters; everything follows the lock."""
    reached = {path: reach.reached(frozenset([path])) for path in (
        "mlax_tutorial/nn/attention.py", "mlax_tutorial/exercises/jit/counter.py", "book/_src/jit.md", "book/_static/css/page.css", "uv.lock")}  # fmt: skip
    attention, counter, page, style, lock = reached.values()
    assert attention["tests/nn/test_attention.py"] == 1 < attention["tests/optim/test_schedules.py"]
    assert attention["tests/exercises/attention/grouped.py"] < attention["book/layers.ipynb"]
    assert {"tests/exercises/jit/counter.py", "book/jit.ipynb", "book/jit.html"} <= {*counter} and len(
        counter
    ) < 9
    assert page["book/jit.html"] == page["book/jit.ipynb"] == page["tests/chapters/test_jit.py"] == 1
    assert "book/vmap.ipynb" not in page
    assert {*reach.SOME_PAGES, "tests/site/test_behaviour.py"} <= {*style} and "book/vmap.html" not in style
    units = {file for file in reach.project().files if reach.is_unit(file)}
    assert len(units) > 400 and units <= {*lock}
    assert all(file in reach.project().files for file in reach.SPLIT | reach.EVERYWHERE)


def commit(root, *commands, when=None):
    """Git commands, by somebody, at some second."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    date = (
        {} if when is None else {"GIT_COMMITTER_DATE": f"@{when} +0000", "GIT_AUTHOR_DATE": f"@{when} +0000"}
    )
    for command in commands:
        subprocess.run(["git", *who, *command.split()], cwd=root, check=True, env=os.environ | date)


def test_what_was_changed(tmp_path, monkeypatch):
    """In the two days before the last commit, whenever that was, by merges, too, and since then."""
    monkeypatch.setattr(reach, "ROOT", tmp_path)
    assert reach.changed() == set(), "no repository"
    day = 24 * 3600
    commit(tmp_path, "init -q")
    for number in range(4):
        (tmp_path / f"{number}.py").touch()
        commit(tmp_path, "add .", f"commit -q -m {number}", when=10**9 + number * day)
    assert reach.changed() == {"1.py", "2.py", "3.py"} and reach.changed(reach.RECENT) == {"3.py"}
    (tmp_path / "new.py").touch()
    (tmp_path / "2.py").write_text("changed")
    assert reach.changed() == {"1.py", "2.py", "3.py", "new.py"}
    commit(tmp_path, "checkout -q -b side", "add .", "commit -q -m side", when=10**9 + 10 * day)
    commit(tmp_path, "checkout -q main", "commit -q --allow-empty -m none", "merge -q --no-ff side", when=10**9 + 10 * day)  # fmt: skip
    assert reach.changed() == {"2.py", "new.py"}
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "jit.ipynb").touch()
    assert reach.changed() == {"2.py", "new.py"}, "a notebook follows from what it is made of"


# A run: twelve files, of which six are quick and three are reached.
QUICK = [f"tests/quick/test_quick_{name}.py" for name in "abcdef"]
ONE_FILE = str(reach.SECONDS[""] / 60)  # minutes
SLOW = [f"tests/slow/test_slow_{name}.py" for name in "abcdef"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("small")
    (root / "tools").mkdir()
    for module in (reach, project, failures):
        shutil.copy(module.__file__, root / "tools")
    (root / "tools" / "__init__.py").touch()
    (root / "used.py").write_text("ANSWER = 42\n")
    for file in QUICK + SLOW:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        uses = "import used\n\n\n" if file in SLOW[:3] else ""
        (root / file).write_text(
            f"{uses}def test_it():\n    assert {'used.ANSWER == 42' if uses else True}\n"
        )
    commit(root, "init -q", "add .", "commit -q -m one", when=10**9)
    (root / "used.py").write_text("ANSWER = 2 * 21\n")
    commit(root, "commit -q -a -m two", when=2 * 10**9)
    return root


def run(root, *arguments, **variables):
    """Pytest with the plugins; returns the status, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "xdist", "-p", "tools.reach", "-p", "tools.failures", "-p", "no:cacheprovider"]  # fmt: skip
    # other plugins take seconds to import
    bare = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"} | variables  # fmt: skip
    done = subprocess.run([*command, *arguments], cwd=root, env=bare, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def ran(said):
    return set(re.findall(r"(tests/\w+/test_\w+\.py)::test_it", said))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_takes_what_is_reached_and_says_what_it_left_out(repository, workers):
    options = (f"-n{workers}", "--take", "reached", "--always", "tests/quick/", "--target", "test-it")
    status, said = run(repository, *options, "tests")
    assert status == 0 and ran(said) == {*QUICK, *SLOW[:3]}, said
    assert "test-it: left out, since no change reaches them: 3 units" in said
    assert "test-it: all of it: make test-it TAKE=all" in said and "no room" not in said


def test_what_finds_no_room_is_named(repository):
    """Of two processors, in the time of one file: room for two."""
    status, said = run(repository, "--take", "reached", "--minutes", ONE_FILE, "tests")
    (last,) = {*SLOW[:3]} - ran(said)
    assert status == 0 and len(ran(said)) == 2, said
    assert f"left out, since there is no room: 1, {last}" in said


def test_all_is_all_and_what_is_ignored_takes_no_room(repository):
    status, said = run(repository, "--take", "all", "--minutes", ONE_FILE, "tests")
    assert status == 0 and ran(said) == {*QUICK, *SLOW}
    status, said = run(repository, "--take", "reached", "--minutes", ONE_FILE, "tests", *(f"--ignore={file}" for file in SLOW[:2]))  # fmt: skip
    assert status == 0 and ran(said) == {SLOW[2]} and "no room" not in said


def test_a_folder_that_is_not_reached_is_no_failure_and_an_empty_one_is(repository):
    status, said = run(repository, "--take", "reached", "tests/quick")
    assert status == 0 and "no change reaches them: 6 units" in said
    (repository / "tests" / "none").mkdir(exist_ok=True)
    assert run(repository, "--take", "reached", "tests/none")[0] == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize("workers", [0, 2])
def test_failures_are_told_with_the_command_that_runs_them_alone(repository, tmp_path, workers):
    broken = repository / "tests" / "broken"
    broken.mkdir()
    (broken / "test_fails.py").write_text("import pytest\n\n\n@pytest.mark.parametrize('x', [1, 2])\ndef test_it(x):\n    assert x == 1, 'no one'\n")  # fmt: skip
    (broken / "test_breaks.py").write_text("import nothing_of_this_name\n")
    try:
        status, said = run(repository, f"-n{workers}", "tests/broken/test_fails.py", MLAX_FAILURES=str(tmp_path / "failed"))  # fmt: skip
        assert status == 1
        assert run(repository, f"-n{workers}", "tests/broken/test_breaks.py", MLAX_FAILURES=str(tmp_path / "failed"))[0] in (1, 2)  # fmt: skip
    finally:
        shutil.rmtree(broken)
    lines = (tmp_path / "failed").read_text().splitlines()
    assert [line.split(" ")[0] for line in lines if line[0] != " "] == ["tests/broken/test_fails.py::test_it[2]", "tests/broken/test_breaks.py"]  # fmt: skip
    assert any("AssertionError: no one" in line for line in lines) and any("nothing_of_this_name" in line for line in lines)  # fmt: skip
    again = next(line for line in lines if "again: " in line)
    assert "-m pytest -p no:nbval 'tests/broken/test_fails.py::test_it[2]'" in again


def test_the_nearest_comes_first_and_exercises_after_their_like():
    order = reach.reached(
        frozenset(["mlax_tutorial/nn/attention.py", "mlax_tutorial/exercises/jit/counter.py"])
    )
    assert [*order.values()] == sorted(order.values())
    for distance in set(order.values()):
        are = [unit.startswith("tests/exercises/") for unit, step in order.items() if step == distance]
        assert are == sorted(are)


class Item:
    """As much of a test as the plugin looks at."""

    def __init__(self, file, **params):
        self.location, self.callspec = (file, 0, ""), type("", (), {"params": params})


def test_of_tests_of_pages_and_chapters_those_of_reached_ones_run(monkeypatch):
    monkeypatch.setattr(reach, "changed", lambda *hours: frozenset(["book/_src/jit.md"]))
    names = ("jit", "vmap", "arrays")
    pages = [Item("tests/site/test_pages.py", name=f"book/{name}.html") for name in names]
    chapters = [Item("tests/colab/test_colab.py", path=f"book/{name}.ipynb") for name in names]
    others = [Item("tests/site/test_pages.py"), Item("tests/site/test_way.py", name="book/vmap.html")]
    chooser = object.__new__(reach.Chooser)
    chooser.taken = reach.Taken("reached")
    items, gone = [*pages, *chapters, *others], []
    hook = type("", (), {"pytest_deselected": lambda items: gone.extend(items)})
    chooser.pytest_collection_modifyitems(type("", (), {"hook": hook}), items)
    assert items == [pages[0], chapters[0], *others] and len(gone) == 4


def test_what_does_not_exist_is_refused_in_one_line(repository):
    status, said = run(repository, "--take", "half", "tests")
    assert status == 4 and "invalid choice: 'half'" in said
    for command, wanted in [(["test", "TAKE=half"], "no such choice"), (["tset"], "there is no target tset; there are help")]:  # fmt: skip
        done = subprocess.run(["make", "-n", *command], cwd=project.ROOT, capture_output=True, text=True)
        assert done.returncode == 2 and wanted in done.stderr and len(done.stderr.splitlines()) == 1, (
            done.stderr
        )
