"""Three successive commits run everything, and what the latest commits touched runs in each."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tools import project, shares
from tools.shares import Share

UNITS = [file for file in shares.git("ls-files", "tests", "book") if shares.is_unit(file)]
THIRDS = [Share(number, 3) for number in (1, 2, 3)]


@pytest.mark.parametrize("of", [3, 6])
def test_every_unit_is_in_one_share_and_each_has_many(of):
    assert len(UNITS) > 200
    parts = [Share(number, of) for number in range(1, of + 1)]
    for unit in UNITS:
        assert sum(share.takes(unit) for share in parts) == 1
    for folder in ("book/", "tests/exercises/", "tests/library/"):
        sizes = [sum(unit.startswith(folder) for unit in filter(share.takes, UNITS)) for share in parts]
        assert min(sizes) >= 1, (folder, sizes)


def test_what_is_a_unit():
    yes = (
        "book/jit.ipynb",
        "tests/exercises/jit/counter.py",
        "tests/test_requirements.py",
        "tests/site/gallery/test_sight.py",
    )
    no = (
        "tests/exercises/owed.py",
        "tests/exercises/jit/_shared.py",
        "tests/conftest.py",
        "book/_src/jit.md",
        "book/conftest.py",
    )
    assert all(map(shares.is_unit, yes)) and not any(map(shares.is_unit, no))
    assert all((project.ROOT / file).is_file() for file in shares.SPLIT)


@pytest.mark.parametrize(
    ("touched", "unit", "runs"),
    [
        ("mlax_tutorial/nn/attention.py", "tests/library/test_attention.py", True),
        ("mlax_tutorial/nn/attention.py", "book/attention.ipynb", True),
        ("mlax_tutorial/nn/attention.py", "book/attention.html", True),
        ("mlax_tutorial/nn/attention.py", "tests/exercises/attention/causal.py", True),
        ("mlax_tutorial/nn/attention.py", "tests/library/test_recurrent.py", False),
        ("book/_src/jit.md", "tests/exercises/jit/counter.py", True),
        ("mlax_tutorial/exercises/jit/counter.py", "tests/exercises/jit/counter.py", True),
        ("mlax_tutorial/exercises/jit/counter.py", "tests/exercises/jit/steady.py", False),
        ("mlax_tutorial/exercises/jit/_shared.py", "tests/exercises/jit/steady.py", True),
        ("tests/library/test_attention.py", "tests/library/test_attention.py", True),
        ("benchmarks/twins/gpt.py", "book/gpt.ipynb", False),
        ("examples/gpt.py", "tests/exercises/gpt/merges.py", False),
        ("book/jit.ipynb", "book/jit.ipynb", False),  # executed again, perhaps for another's change
    ],
)
def test_what_was_touched_runs_in_any_share(monkeypatch, touched, unit, runs):
    monkeypatch.setattr(shares, "git", lambda *arguments: [touched] if arguments[0] == "log" else [])
    other = shares.share_of(unit, 3) % 3 + 1
    assert Share(other, 3, shares.touched()).takes(unit) == runs


def commit(root, number):
    """A commit in a repository of its own."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", str(number)], cwd=root, check=True)


def test_successive_commits_take_successive_shares(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.setattr(shares, "ROOT", tmp_path)
    assert Share.parse("commit/3") in THIRDS  # no commit yet
    taken, sixths = [], []
    for number in range(6):
        commit(tmp_path, number)
        taken.append(Share.parse("commit/3").number)
        sixths.append(Share.parse("commit/6").number)
    assert taken[:3] == taken[3:] and sorted(taken[:3]) == [1, 2, 3] and sorted(sixths) == [1, 2, 3, 4, 5, 6]
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{tmp_path}", shallow], check=True)
    monkeypatch.setattr(shares, "ROOT", shallow)
    assert Share.parse("commit/3") in THIRDS
    monkeypatch.setattr(shares, "ROOT", tmp_path.parent)  # no repository at all
    assert Share.parse("commit/3") in THIRDS


def test_what_a_merge_brought_was_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(shares, "ROOT", tmp_path)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in ("init -q -b main", "commit -q --allow-empty -m one", "checkout -q -b side"):
        subprocess.run(["git", *who, *command.split()], cwd=tmp_path, check=True)
    (tmp_path / "attention.py").write_text("")
    for command in (
        "add .",
        "commit -q -m two",
        "commit -q --allow-empty -m three",
        "checkout -q main",
        "merge -q --no-ff side",
    ):
        subprocess.run(["git", *who, *command.split()], cwd=tmp_path, check=True)
    assert shares.touched() == {"attention"}
    for number in range(shares.LATEST):
        commit(tmp_path, number)
    assert not shares.touched()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A project with nothing but the plugin and twelve test files."""
    root = tmp_path_factory.mktemp("small")
    (root / "tools").mkdir()
    for module in (shares, project):
        shutil.copy(module.__file__, root / "tools")
    for folder in ("quick", "slow"):
        (root / "tests" / folder).mkdir(parents=True)
        for name in "abcdef":
            (root / "tests" / folder / f"test_{folder}_{name}.py").write_text("def test_it():\n    pass\n")
    return root


def run(root, *arguments):
    """Pytest with the plugin; returns the status, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "xdist", "-p", "tools.shares", *arguments]
    bare = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take seconds to import
    done = subprocess.run(command, cwd=root, env=bare, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("number", "workers"), [(1, 0), (2, 0), (3, 2)])
def test_a_run_takes_its_share_and_says_what_it_left_out(small, number, workers):
    """With one folder that always runs."""
    options = (f"-n{workers}", "--share", f"{number}/3", "--always", "tests/quick/", "--target", "test-it")
    status, said = run(small, *options, "tests")
    ran = set(re.findall(r"(tests/\w+/test_\w+\.py)::test_it", said))
    wanted = {file for file in files_of(small) if "quick" in file or shares.share_of(file, 3) == number}
    assert status == 0 and ran == wanted, said
    out = f"left out: {12 - len(wanted)} in tests/slow; all of it: make test-it SHARE=all"
    assert f"share {number}/3; {out}" in said


def files_of(root):
    return [path.relative_to(root).as_posix() for path in root.glob("tests/*/test_*.py")]


def test_all_shares_leave_nothing_out_and_a_file_that_is_named_runs(small):
    status, said = run(small, "--share", "all", "tests")
    assert status == 0 and "12 passed" in said and "nothing was left out" in said
    one = files_of(small)[0]
    status, said = run(small, "--share", f"{shares.share_of(one, 6) % 6 + 1}/6", one)
    assert "1 passed" in said and "left out: nothing" in said


def test_an_empty_share_is_no_failure_and_an_empty_folder_is(small):
    (small / "tests" / "one").mkdir()
    (small / "tests" / "one" / "test_one.py").write_text("def test_it():\n    pass\n")
    other = shares.share_of("tests/one/test_one.py", 3) % 3 + 1
    status, said = run(small, "--share", f"{other}/3", "tests/one")
    assert status == 0 and "left out: 1 in tests/one" in said
    (small / "tests" / "none").mkdir()
    assert run(small, "--share", "1/3", "tests/none")[0] == pytest.ExitCode.NO_TESTS_COLLECTED
    shutil.rmtree(small / "tests" / "one")


class Item:
    """As much of a test as the plugin looks at."""

    def __init__(self, file, **params):
        self.location, self.callspec = (file, 0, ""), type("", (), {"params": params})


def test_files_of_pages_and_chapters_are_split():
    pages = [
        Item("tests/site/test_pages.py", name=f"book/{name}.html")
        for name in ("jit", "vmap", "arrays", "errors")
    ]
    chapters = [
        Item("tests/colab/test_colab.py", path=f"book/{name}.ipynb") for name in ("jit", "vmap", "arrays")
    ]
    others = [Item("tests/site/test_pages.py"), Item("tests/site/test_way.py", name="book/jit.html")]
    chooser = object.__new__(shares.Chooser)
    chooser.share, chooser.left_out = Share(1, 3), set()
    items, gone = [*pages, *chapters, *others], []
    hook = type("", (), {"pytest_deselected": lambda items: gone.extend(items)})
    chooser.pytest_collection_modifyitems(type("", (), {"hook": hook}), items)
    kept = [
        *filter(lambda item: shares.share_of([*item.callspec.params.values()][0], 3) == 1, pages + chapters)
    ]
    assert items == kept + others and 0 < len(kept) < 7
    assert {[*item.callspec.params.values()][0] for item in gone} == chooser.left_out


def test_a_share_that_does_not_exist_is_refused_in_one_line(small):
    status, said = run(small, "--share", "4/3", "tests")
    assert (
        status == 4
        and "there is no share '4/3'; there are all, commit/3, 1/3, 2/3, 3/3, commit/6, 1/6" in said
    )
    for command, wanted in [
        (["test", "SHARE=4/3"], "no such share"),
        (["tset"], "there is no target tset; there are help"),
    ]:
        done = subprocess.run(["make", "-n", *command], cwd=project.ROOT, capture_output=True, text=True)
        assert done.returncode == 2 and wanted in done.stderr and len(done.stderr.splitlines()) == 1, (
            done.stderr
        )
