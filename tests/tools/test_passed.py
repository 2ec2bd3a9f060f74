"""What passed is left out, and only that: each way to change or to tamper with a small project makes its test run again."""

import os
import pathlib
import subprocess
import sys

import pytest

from tools import project
from tools.passed import Record, Refused, circumstances, record, rendered
from tools.passed.pages import MODULE, Pages
from tools.passed.plugin import _options

# reads: nothing else
UNIT = "tests/test_sums.py"
VISITOR = "tests/site/test_visitor.py"
FILES = {
    "pytest.ini": "[pytest]\npythonpath = .\npython_files = test_*.py\n",
    "package/__init__.py": "",
    "package/sums.py": "from package.numbers import two\n\ndef double(x):\n    from package import late\n    return two() * late.same(x)\n",
    "package/numbers.py": "from package import deepest\n\ndef two():\n    return deepest.TWO\n",
    "package/deepest.py": "TWO = 2\n",
    "package/late.py": "def same(x):\n    return x\n",
    "package/table.csv": "1,2\n",
    "package/unrelated.py": "",
    "package/plugins/__init__.py": "",
    "package/plugins/one.py": "",
    "tests/__init__.py": "",
    UNIT: "from package.sums import double\n\ndef test_double():\n    assert double(1) == 2\n\ndef test_zero():\n    assert double(0) == 0\n",
    "tests/test_other.py": "def test_other():\n    pass\n",
}
DYNAMIC = "import importlib\n\ndef load(name):\n    return importlib.import_module(name){comment}\n"


# What may be set where these tests run, `make test-all` or CI.
HERE = ("CI", "MLAX_RECORD", "MLAX_SITE", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER")
LAZY = """
import importlib

_LATE = {"one": "package.lazy.ones", "other": "package.lazy.others"}

def __getattr__(name):
    return getattr(importlib.import_module(_LATE[name]), name)  # imports: what _LATE names
"""


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """As on a developer's machine; and no unit is in the tenth that runs nevertheless."""
    for name in HERE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Record, "_is_sampled", lambda self, unit: False)


@pytest.fixture
def root(tmp_path) -> pathlib.Path:
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[name])
    return tmp_path


def ask(root, unit=UNIT, **options) -> bool:
    return Record("here", root=root, **options).covers(unit)


def write(root, name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.fixture
def passed(root) -> pathlib.Path:
    """The project, with a record in which its test passed."""
    Record("here", root=root).passed(UNIT, 1.5)
    assert ask(root)
    return root


def line_of(root) -> pathlib.Path:
    return Record("here", root=root).path


# What a unit depends on


@pytest.mark.parametrize(
    "name",
    [UNIT, "package/deepest.py", "package/late.py", "package/table.csv", "package/__init__.py", "pytest.ini", "tests/__init__.py"],
)  # fmt: skip
def test_a_changed_file_runs_it_again(passed, name):
    """A helper three imports away, one that a function imports, a data file, a setting of pytest."""
    write(passed, name, FILES[name] + "# changed\n")
    assert not ask(passed)
    write(passed, name, FILES[name])
    assert ask(passed), "it is the content that counts"


@pytest.mark.parametrize("name", ["package/unrelated.py", "package/plugins/one.py", "tests/test_other.py"])
def test_a_file_that_it_does_not_depend_on_does_not(passed, name):
    write(passed, name, FILES[name] + "# changed\n")
    assert ask(passed)


@pytest.mark.parametrize("name", ["conftest.py", "tests/conftest.py", "package/table2.csv"])
def test_a_new_file_that_would_be_read(passed, name):
    write(passed, name, "# new\n")
    assert not ask(passed)


def test_a_module_that_now_exists(root):
    write(root, UNIT, "try:\n    import optional_part\nexcept ImportError:\n    pass\n")
    Record("here", root=root).passed(UNIT, 1)
    assert ask(root)
    write(root, "optional_part.py", "")
    assert not ask(root)


def test_a_helper_of_conftest(root):
    write(root, "tests/conftest.py", "from package.plugins import one\n")
    Record("here", root=root).passed(UNIT, 1)
    write(root, "package/plugins/one.py", "changed = 1\n")
    assert not ask(root)


@pytest.mark.parametrize(
    "comment, changed, runs",
    [
        ("", "package/unrelated.py", True),
        ("  # imports: package.plugins.*", "package/plugins/one.py", True),
        ("  # imports: package.plugins.*", "package/unrelated.py", False),
        ("  # imports: package.no_such_module", "package/unrelated.py", True),
        ("  # imports: nothing of this project", "package/plugins/one.py", False),
    ],
)
def test_a_dynamic_import(root, comment, changed, runs):
    """It counts as an import of everything, unless its line says what it imports."""
    write(root, "package/late.py", DYNAMIC.format(comment=comment))
    Record("here", root=root).passed(UNIT, 1)
    assert ask(root)
    write(root, changed, "changed = 1\n")
    assert ask(root) != runs


@pytest.mark.parametrize(
    "text, changed, runs",
    [
        ("from mlax_tutorial.exercises.arrays.one import exercise\n", "other", False),
        ("from mlax_tutorial.exercises.arrays.one import exercise\n", "__init__", True),
        ("from mlax_tutorial.exercises import arrays as ex\n", "other", True),
        ("import mlax_tutorial.exercises.arrays\n", "other", True),
    ],
)
def test_an_exercise_does_not_depend_on_its_neighbors(root, text, changed, runs):
    """Who imports one passes through the listing of its chapter, which imports all."""
    chapter = "mlax_tutorial/exercises/arrays"
    (root / chapter).mkdir(parents=True)
    for name in ("one", "other"):
        write(root, f"{chapter}/{name}.py", "exercise = 1\n")
    write(
        root, f"{chapter}/__init__.py", "from mlax_tutorial.exercises.arrays.other import exercise as other\n"
    )
    write(root, UNIT, text)
    Record("here", root=root).passed(UNIT, 1)
    assert ask(root)
    write(root, f"{chapter}/{changed}.py", "exercise = 2\n")
    assert ask(root) != runs


@pytest.mark.parametrize(
    "text, runs",
    [
        ("from package import lazy\nlazy.one\n", True),
        ("from package.lazy import one\n", True),
        ("import package.lazy\npackage.lazy.one\n", True),
        ("from package import lazy\ngetattr(lazy, input())\n", True),
        ("from package import lazy\nlazy.other\n", False),
    ],
)
def test_what_a_package_imports_when_it_is_asked(root, text, runs):
    """Its `_LATE` says where each name comes from: only the names that a file uses count, and all if it hands the package on."""
    (root / "package/lazy").mkdir()
    write(root, "package/lazy/__init__.py", LAZY)
    write(root, "package/lazy/ones.py", "one = 1\n")
    write(root, "package/lazy/others.py", "other = 1\n")
    write(root, UNIT, text)
    Record("here", root=root).passed(UNIT, 1)
    assert ask(root)
    write(root, "package/lazy/ones.py", "one = 2\n")
    assert ask(root) != runs


@pytest.mark.parametrize(
    "text, needs",
    [
        ("import package\npackage.plugins.one", "package/plugins/one.py"),
        ("import package as p\np.unrelated", "package/unrelated.py"),
        ("from package import plugins as p\np.one", "package/plugins/one.py"),
        ("from . import test_other", "tests/test_other.py"),
        ("from .test_other import *", "tests/test_other.py"),
        ("from package.plugins import *", "package/plugins/one.py"),
        ("import importlib\nimportlib.import_module('package.plugins.one')", "package/plugins/one.py"),
        ("code = 'import package.plugins.one; print(1)'", "package/plugins/one.py"),
        ("code = '''\nfrom package import (unrelated, late)\n'''", "package/unrelated.py"),
        ("call(executable, '-m', 'package.unrelated')", "package/unrelated.py"),
        ("call([executable, '-m', f'package.plugins.{name}'])", "package/plugins/one.py"),
        ("LATE = {'name': 'package.plugins.one'}", "package/plugins/one.py"),
        ("open('package/table.csv')", "package/table.csv"),
        ("start('test_other')", "tests/test_other.py"),
        ("HERE.glob('test_*.py')", "tests/test_other.py"),
        ("ROOT = pathlib.Path(__file__).parents[1]", "package/unrelated.py"),
        ("# reads: package/*.csv\nROOT = pathlib.Path(__file__).parents[1]", "package/table.csv"),
        ("# reads the text of: package/*.csv\nROOT = pathlib.Path(__file__).parents[1]", "package/table.csv"),
        ("# reads: package/sums.py", "package/deepest.py"),
        ("# reads: package/no_such_file.py", "package/unrelated.py"),
        ("# reads the text of: package/no_such_file.py", "package/unrelated.py"),
        ("def broken(:", "package/unrelated.py"),
    ],
)
def test_what_a_file_names_is_found(root, text, needs):
    write(root, UNIT, "x = 1\n")
    assert needs not in Record("here", root=root).files(UNIT)
    write(root, UNIT, text + "\n")
    assert needs in Record("here", root=root).files(UNIT)


def test_a_text_that_is_read_counts_without_what_it_imports(root):
    write(
        root,
        UNIT,
        "# reads the text of: package/sums.py\n# reads: nothing else\nROOT = Path(__file__).parents[1]\n",
    )
    files = Record("here", root=root).files(UNIT)
    assert "package/sums.py" in files and not {"package/deepest.py", "package/unrelated.py"} & set(files)
    write(root, UNIT, "# reads the text of: package/sums.py\nimport package.sums\n")
    assert "package/deepest.py" in Record("here", root=root).files(UNIT), "it is imported as well"


def test_code_cells_of_a_notebook(root):
    cell = '{"cell_type": "code", "source": ["%matplotlib inline\\n", "from package import late"]}'
    text = '{"cell_type": "markdown", "source": "import package.unrelated"}'
    write(root, "book/chapter.ipynb", f'{{"cells": [{cell}, {text}]}}')
    files = Record("here", root=root).files("book/chapter.ipynb")
    assert "package/late.py" in files and "package/unrelated.py" not in files


def test_a_docstring_imports_nothing(root):
    write(root, "package/late.py", '"""Used as: import package.unrelated"""\n')
    assert "package/unrelated.py" not in Record("here", root=root).files(UNIT)


# The rest of the key


def test_another_version_of_a_distribution(passed, monkeypatch):
    monkeypatch.setattr(circumstances, "installed", lambda: ("jax==0.0.1",))
    assert not ask(passed)


@pytest.mark.parametrize("name", ["XLA_FLAGS", "JAX_ENABLE_X64", "MLAX_SOMETHING"])
def test_another_setting(passed, monkeypatch, name):
    monkeypatch.setitem(circumstances._STARTED, name, "1")
    assert not ask(passed)


def test_settings_that_change_no_outcome(passed, monkeypatch):
    monkeypatch.setitem(circumstances._STARTED, "MLAX_REQUIRE_DATA", "1")
    assert ask(passed)


def test_another_platform_python_tool_runner_or_environment(passed, monkeypatch):
    assert not ask(passed, settings=["twice"])
    assert not ask(passed, installed=["jax==0.7.2"])
    assert not ask(passed, runner=["package/unrelated.py"])
    assert not Record("there", root=passed).covers(UNIT)
    with monkeypatch.context() as patch:
        patch.setattr(circumstances.platform, "machine", lambda: "another")
        assert not ask(passed)
    with monkeypatch.context() as patch:
        patch.setattr(circumstances.platform, "python_version_tuple", lambda: ("3", "99", "0"))
        assert not ask(passed)
    with monkeypatch.context() as patch:
        patch.setattr(record, "_tool", lambda: ["another text"])
        assert not ask(passed)
    assert ask(passed)


# The record


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace('"seconds": 1.5', '"seconds": 0.5'),
        lambda text: text.replace("test_sums", "test_other"),
        lambda text: text.replace('"key": "', '"key": "0', 1),
        lambda text: text.replace('"seal": "', '"seal": "0', 1),
        lambda text: text + "<<<<<<< HEAD\n",
        lambda text: text + text[:60],
        lambda text: text.replace("}", ', "note": "ok"}', 1),
    ],
)
def test_an_edited_record_is_refused_as_a_whole(passed, edit):
    Record("here", root=passed).passed("tests/test_other.py", 1)
    path = line_of(passed)
    edited = edit(path.read_text())
    path.write_text(edited)
    refused = Record("here", root=passed)
    assert isinstance(refused.refusal, Refused) and "repair" in refused.summary()
    assert not refused.covers(UNIT) and not refused.covers("tests/test_other.py")
    refused.passed(UNIT, 1)
    assert path.read_text() == edited, "nothing is written into it"
    assert Record("here", root=passed).repair() == 1
    assert ask(passed, "tests/test_other.py") or ask(passed), "what was not touched stays"


def test_a_record_of_another_environment_is_refused(passed):
    other = Record("there", root=passed)
    other.path.write_text(line_of(passed).read_text())
    assert Record("there", root=passed).refusal


def test_a_missing_line_and_a_missing_record(passed):
    line_of(passed).write_text("")
    assert not ask(passed) and not Record("here", root=passed).refusal
    line_of(passed).unlink()
    assert not ask(passed)


def test_lines_of_two_branches_may_stand_together(passed):
    """As git leaves them: the line that holds is found, and the other goes at the next writing."""
    before = line_of(passed).read_text()
    write(passed, "package/deepest.py", "TWO = 1 + 1\n")
    Record("here", root=passed).passed(UNIT, 2)
    after = line_of(passed).read_text()
    assert after.count("\n") == 1 and after != before
    line_of(passed).write_text(before + after)
    assert ask(passed)
    Record("here", root=passed).passed(UNIT, 2)
    assert line_of(passed).read_text() == after


def test_what_fails_or_vanishes_loses_its_line(passed):
    Record("here", root=passed).passed("tests/test_other.py", 1)
    (passed / "tests/test_other.py").unlink()
    Record("here", root=passed).failed(UNIT)
    assert line_of(passed).read_text() == ""


def test_a_file_that_changes_while_it_runs_has_not_passed(root):
    running = Record("here", root=root)
    assert not running.covers(UNIT)
    write(root, "package/deepest.py", "TWO = 3\n")
    running.passed(UNIT, 1)
    assert not ask(root)


def test_in_ci_nothing_is_written(root, monkeypatch):
    monkeypatch.setenv("CI", "true")
    Record("here", root=root).passed(UNIT, 1)
    assert not line_of(root).exists()


def test_the_record_can_be_ignored(passed, monkeypatch):
    monkeypatch.setenv("MLAX_RECORD", "ignore")
    assert not ask(passed)


def test_a_tenth_runs_nevertheless_another_one_with_each_commit(root, monkeypatch):
    monkeypatch.undo()
    units = [f"tests/test_{number}.py" for number in range(300)]

    def sampled(head):
        here = Record("here", root=root)
        here._head = head
        return {unit for unit in units if here._is_sampled(unit)}

    first, second = sampled("one"), sampled("two")
    assert 15 < len(first) < 50 and 15 < len(second) < 50 and len(first & second) < 12
    assert sampled("one") == first


def test_what_is_in_the_tenth_is_not_left_out(root, monkeypatch):
    Record("here", root=root).passed(UNIT, 1)
    assert ask(root)
    monkeypatch.setattr(Record, "_is_sampled", lambda self, unit: True)
    assert not ask(root)


def git(root, *arguments):
    identity = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def test_what_runs_from_the_last_commit_must_be_committed(root):
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "all")
    Record("here", root=root, committed=True).passed(UNIT, 1)
    assert ask(root, committed=True)
    write(root, "package/deepest.py", "TWO = 1 + 1\n")
    Record("here", root=root, committed=True).passed(UNIT, 1)
    assert not ask(root, committed=True)


# Under pytest


def run(root, *arguments, environment):
    """What pytest said."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.passed.plugin"]
    plain = {name: value for name, value in os.environ.items() if name not in HERE}
    env = plain | {"PYTHONPATH": str(project.ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "--passed", environment, *arguments], cwd=root, env=env, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def environment(root, monkeypatch):
    """A name for which no unit is in the tenth that runs nevertheless."""
    monkeypatch.undo()
    names = (f"here{number}" for number in range(100))
    units = (UNIT, "tests/test_other.py")
    return next(
        name for name in names if not any(Record(name, root=root)._is_sampled(unit) for unit in units)
    )


@pytest.mark.parametrize(
    "workers", [[], ["-p", "xdist", "-n", "2", "--dist", "loadfile"]], ids=["alone", "xdist"]
)
def test_a_second_run_leaves_out_what_passed(root, environment, workers):
    def again(*arguments):
        return run(root, *workers, *arguments, environment=environment)

    assert "3 passed" in again("tests")[1]
    status, said = again("tests")
    assert status == 0 and "passed" not in said.split("left out")[0] and "2 units" in said
    assert "make test-all" in said
    write(root, "package/deepest.py", "TWO = 4\n")
    status, said = again("tests")
    assert status == 1 and "1 failed, 1 passed" in said and "1 units" in said
    write(root, "package/deepest.py", "TWO = 2\n")
    assert "2 passed" in again("tests")[1], "what failed lost its line"
    assert "2 passed" in again(UNIT)[1], "a file that is named runs"
    assert "1 passed" in again("tests", "--passed-under", "package", "--ignore", UNIT)[1]


def test_a_run_of_a_part_remembers_nothing_and_leaves_nothing_out(root, environment):
    part = ["tests", "-k", "double"]
    status, said = run(root, *part, environment=environment)
    assert status == 0 and "nothing remembered" in said, said
    assert not (root / record.RECORDS).exists()
    run(root, "tests", environment=environment)
    assert "1 passed" in run(root, *part, environment=environment)[1]


@pytest.mark.parametrize(
    ("name", "says", "left_out"),
    [
        ("tests/notebooks/test_more.py", "", False),
        ("tests/notebooks/test_more.py", "# reads: package/table.csv\n", True),
        ("tests/notebooks/test_more.py", "# visits: book/jit.html\n", False),
        ("tests/site/test_more.py", "", False),
        ("tests/site/test_more.py", "# reads: nothing else\n", False),
        ("tests/site/test_more.py", "# visits: nothing of the book\n", True),
        ("tests/site/test_more.py", "# visits: book/jit.html\n", True),
        ("tests/site/test_more.py", "# visits: book/jit.html, book/vmap.html\n", True),
        ("tests/site/test_more.py", "# visits: book/jit\n", False),
        ("tests/site/test_more.py", "# visits: nothing\n", False),
        ("tests/site/test_more.py", "# visits: book/jit.html and others\n", False),
    ],
)
def test_what_looks_at_the_repository_always_runs_unless_it_says_what_it_needs(
    root, environment, name, says, left_out
):
    write(root, name, says + "def test_more():\n    pass\n")
    run(root, "tests", environment=environment)
    passed = Record(environment, root=root)
    assert (name in passed.units()) == left_out
    if left_out and not passed._is_sampled(name):
        assert "3 units" in run(root, "tests", environment=environment)[1]


def test_what_says_so_only_while_it_runs_is_not_remembered(root, environment):
    """Its key would be that of a text that nobody ran."""
    name = "tests/site/test_more.py"
    more = "from pathlib import Path\n\ndef test_more():\n    path = Path(__file__)\n    path.write_text('# visits: nothing of the book\\n' + path.read_text())\n"
    write(root, name, more)
    run(root, "tests", environment=environment)
    assert Record(environment, root=root).says_what_it_needs(name)
    assert name not in Record(environment, root=root).units()


def test_another_site_is_not_remembered(root, monkeypatch):
    write(root, VISITOR, "# visits: nothing of the book\n")
    assert Record("here", root=root).says_what_it_needs(VISITOR)
    monkeypatch.setenv("MLAX_SITE", str(root / "another"))
    assert not Record("here", root=root).says_what_it_needs(VISITOR)


@pytest.mark.parametrize(
    "options",
    ["-k double", "-m slow", "-x", "--maxfail 1", "--deselect tests/test_a.py::test_b", "--lf", "--sw", "--new", "a.py::test"],
)  # fmt: skip
@pytest.mark.parametrize("through", ["arguments", "PYTEST_ADDOPTS"])
def test_options_that_choose_among_tests(options, through, monkeypatch):
    if through == "PYTEST_ADDOPTS":
        monkeypatch.setenv(through, options)
    assert _options(["tests", *(options.split() if through == "arguments" else [])])[1]


def test_options_that_do_not():
    assert _options(["-q", "-n", "2", "--dist", "loadfile", "--ignore", "tests/site", "tests"]) == ([], [])
    keyed, foreign = _options(["--nbval", "--nbval-sanitize-with", "a.cfg"])
    assert "--nbval-sanitize-with a.cfg" in keyed and "--nbval" in keyed and not foreign


@pytest.mark.parametrize(
    "test",
    [
        "def test_more():\n    assert False\n",
        "import pytest\n\ndef test_more():\n    pytest.skip('no browser here')\n",
        "import pytest\n\n@pytest.fixture\ndef broken():\n    yield\n    assert False\n\ndef test_more(broken):\n    pass\n",
        "import pytest\n\n@pytest.fixture\ndef broken():\n    assert False\n\ndef test_more(broken):\n    pass\n",
        "raise ImportError\n",
    ],
    ids=["failed", "skipped", "failed at its end", "failed at its start", "not collected"],
)
def test_what_did_not_pass_as_a_whole_is_not_remembered(root, environment, test):
    write(root, UNIT, FILES[UNIT] + test)
    run(root, "tests", "--ignore", "tests/test_other.py", environment=environment)
    assert Record(environment, root=root).units() == []


def test_an_edited_record_is_told_and_everything_runs(root, environment):
    run(root, "tests", environment=environment)
    path = Record(environment, root=root).path
    path.write_text(path.read_text().replace('"key": "', '"key": "0'))
    status, said = run(root, "tests", environment=environment)
    assert "3 passed" in said and "is refused" in said and "repair" in said


# Pages of a built site

PAGE = '<link href="../_static/style.css?v=0123abcd"><img src="../_images/plot.png">'
SITE = {
    "_static/style.css": "body {}",
    "_static/searchindex.js": "[]",
    "_images/plot.png": "a picture",
    "_images/other.png": "another picture",
    "book/jit.html": PAGE,
    "book/vmap.html": "<p>vmap</p>",
    "search.html": "<p>search</p>",
}


@pytest.fixture
def site(root) -> pathlib.Path:
    write(root, MODULE, "from package.sums import double\n\ndef test_page(name):\n    pass\n")
    for name, text in SITE.items():
        path = root / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    visits(root).note({"book/jit.html": 2.0, "book/vmap.html": 2.0, "search.html": 2.0})
    assert left(root) == {"book/jit.html", "book/vmap.html", "search.html"}
    return root / "site"


def visits(root, version="Chromium 1"):
    return Pages(root / "site", root=root, version=version)


def left(root, **options):
    return {
        page
        for page in ("book/jit.html", "book/vmap.html", "search.html")
        if visits(root, **options).covers(page)
    }


@pytest.mark.parametrize(
    "name, text, visited",
    [
        ("book/jit.html", PAGE + "<p>more</p>", {"book/jit.html"}),
        ("book/jit.html", PAGE.replace("?v=0123abcd", ""), set()),
        ("_images/plot.png", "new", {"book/jit.html"}),
        ("_images/other.png", "new", set()),
        ("_static/searchindex.js", "[1]", {"search.html"}),
        ("_static/style.css", "p {}", {"book/jit.html", "book/vmap.html", "search.html"}),
        ("_static/new.js", "", {"book/jit.html", "book/vmap.html", "search.html"}),
    ],
)
def test_a_page_is_visited_again_when_what_its_reader_gets_changed(site, name, text, visited):
    (site / name).write_text(text)
    assert left(site.parent) == {"book/jit.html", "book/vmap.html", "search.html"} - visited


def test_pages_are_visited_again_by_another_browser_and_by_other_tests(site):
    assert not left(site.parent, version="Chromium 2")
    write(site.parent, "package/deepest.py", "TWO = 3\n")
    assert not left(site.parent)


def test_a_page_that_failed_or_vanished_loses_its_line(site):
    (site / "search.html").unlink()
    visits(site.parent).note({"book/jit.html": None})
    assert visits(site.parent).units() == ["book/vmap.html"]


# A test that says which pages it visits


@pytest.mark.parametrize(
    ("says", "changed"),
    [
        ("book/jit.html", {"book/jit.html", "_images/plot.png", "_static/style.css"}),
        ("book/jit.html, book/vmap.html", {"book/jit.html", "_images/plot.png", "_static/style.css", "book/vmap.html"}),
        ("search.html", {"_static/searchindex.js", "_static/style.css", "search.html"}),
        ("nothing of the book", set()),
    ],
)  # fmt: skip
def test_a_visitor_runs_again_when_a_page_of_his_changed(site, says, changed):
    root = site.parent
    write(root, VISITOR, f"# visits: {says}\n\ndef test_it():\n    pass\n")
    Record("here", root=root, site=site).passed(VISITOR, 1)

    def left_out():
        return Record("here", root=root, site=site).covers(VISITOR)

    assert left_out()
    for name, text in SITE.items():
        (site / name).write_text(text + "changed")
        assert left_out() == (name not in changed), name
        (site / name).unlink()
        assert left_out() == (name not in changed), name
        (site / name).write_text(text)
        assert left_out()


def test_a_visitor_runs_again_with_another_browser(site, monkeypatch):
    write(site.parent, VISITOR, "# visits: nothing of the book\n")
    Record("here", root=site.parent, site=site).passed(VISITOR, 1)
    monkeypatch.setattr(rendered, "chromium_version", lambda: "Chromium 1000")
    assert not Record("here", root=site.parent, site=site).covers(VISITOR)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("http://127.0.0.1:1/book/jit.html", []),
        ("http://127.0.0.1:1/book/jit.html?token=1#there", []),
        ("http://127.0.0.1:1/book/vmap.html?token=1#there", ["book/vmap.html"]),
        ("http://127.0.0.1:1/_static/searchindex.js", ["_static/searchindex.js"]),
        ("http://127.0.0.1:1/_static/style.css", []),
        ("http://127.0.0.1:1/_images/plot.png", []),
        ("http://127.0.0.1:1/", ["index.html"]),
        ("http://127.0.0.1:1/book/a%20page.html", ["book/a page.html"]),
        ("http://127.0.0.1:1/_sources/book/jit.ipynb", ["_sources/book/jit.ipynb"]),
        ("http://127.0.0.1:1/nowhere.html", []),
        ("http://127.0.0.1:2/book/vmap.html", []),
    ],
)
def test_what_was_asked_for_and_is_not_in_the_key_is_found(site, asked, found):
    for name in ("index.html", "book/a page.html", "_sources/book/jit.ipynb"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).touch()
    said = rendered.unsaid(["book/jit.html"], [asked, "data:,"], site, ["http://127.0.0.1:2"])
    assert said == found
