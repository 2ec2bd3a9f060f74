"""A build executes what changed, and nothing differs when nothing changed."""

import datetime
import pathlib
import subprocess
import sys

import jax
import pytest

from tools import project
from tools.notebooks import build, canonical, guards, inputs, record, sources
from tools.notebooks.places import Problem

from .conftest import PACKAGE, PYPROJECT, edit_source, read

OTHER_PYTHONS = [".venv/bin/python", ".venv-312/bin/python"]


def everything(book) -> dict[str, bytes]:
    """All files of the book but caches."""
    paths = [
        path
        for path in book.root.rglob("*")
        if path.is_file() and not {".cache", "__pycache__"} & set(path.parts)
    ]
    return {path.relative_to(book.root).as_posix(): path.read_bytes() for path in paths}


def test_the_sample_shows_what_it_should(built):
    notebook = read(built)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, 11))
    assert code[1].outputs[0].text == "X1 holds: a third is 0.3333\n"
    assert code[2].outputs[0].data["text/plain"] == "42"
    assert code[8].outputs[0].text == "and after a warning\n"
    assert code[8].outputs[1].text.startswith("<this cell>: UserWarning: with the path")
    assert code[9].outputs[0].evalue == "'missing'"
    assert "version" not in notebook.metadata.language_info


def test_the_setup_cell_stands_second_and_folds(built):
    cell = read(built).cells[1]
    assert cell.source.startswith("#@title ")
    assert cell.metadata == {"cellView": "form", "tags": ["hide-cell"]}
    assert '"mlax-tutorial[notebooks] @ git+https://github.com/someone/some-book@v1"' in cell.source
    assert 'jax.config.update("jax_debug_key_reuse", True)' in cell.source
    assert 'jax.config.update("jax_check_tracer_leaks", jax.__version_info__ >= (0, 12))' in cell.source


def test_the_setup_cell_switches_the_guards_on(built):
    """Run by itself, in a fresh Python: a reused key and a leaked value are errors, arrays print four digits."""
    cell = read(built).cells[1].source
    probe = """
import jax.numpy as jnp
key, said, leaked = jax.random.key(0), [], []
for broken in (
    lambda: (jax.random.uniform(key), jax.random.uniform(key)),
    lambda: jax.jit(lambda x: leaked.append(x + 1))(1.0),
):
    try:
        broken()
    except Exception as error:
        said.append(str(error).splitlines()[0])
print(said, jnp.float32(1 / 3).reshape(1))
"""
    done = subprocess.run(
        [sys.executable, "-c", cell.replace("    %pip", "    pass  # ") + probe],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Previously-consumed key" in done.stdout
    assert ("Leaked trace" in done.stdout) == (jax.__version_info__ >= (0, 12))
    assert "[0.3333]" in done.stdout


def test_the_accelerator_is_named_for_colab(built):
    assert read(built).metadata.accelerator == "GPU"
    assert read(built).metadata.colab.gpuType == "T4"


def test_an_unchanged_chapter_does_not_run(book):
    before = everything(book)
    assert build.build_one(book, "sample") == "sample: unchanged"
    assert everything(book) == before


def test_a_forced_second_build_changes_nothing(book):
    before = everything(book)
    assert "nothing changed" in build.build_one(book, "sample", force=True)
    assert everything(book) == before


@pytest.mark.parametrize("python", OTHER_PYTHONS)
def test_another_python_changes_nothing(book, python):
    """The sample was built by the Python that runs this test; each Python of the project builds the same."""
    path = project.ROOT / python
    if not path.exists():
        pytest.skip(f"{python} does not exist here")
    before = everything(book)
    command = [path, "-m", "tools.notebooks", "--root", book.root, "build", "--force"]
    done = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "nothing changed" in done.stdout
    assert everything(book) == before


def test_ids_follow_the_text(built):
    """Equal cells get different ids, and an edit elsewhere leaves ids alone."""
    source = sources.read(built, "sample")
    ids = [cell["id"] for cell in source.cells]
    assert len(set(ids)) == len(ids)
    text = built.source("sample").read_text()
    twice = text + "\n```{code-cell}\nprint(1)\n```\n\n```{code-cell}\nprint(1)\n```\n"
    built.source("other").write_text(twice)
    try:
        more = [cell["id"] for cell in sources.read(built, "other").cells]
    finally:
        built.source("other").unlink()
    assert more[: len(ids)] == ids
    assert more[-1] == f"{more[-2]}-2"


def test_what_a_chapter_depends_on(book):
    """Its source, the set-up cell, the modules it loads, the files they open, the locked versions, its own notebook."""

    def reason():
        before = build.earlier(book, "sample")
        what, why = build.plan(book, sources.read(book, "sample"), record.entry_of(book, "sample"), before)
        assert (what == "keep") == (why == "unchanged") and (what == "reword") == ("no code" in why)
        return None if what == "keep" else why

    def with_change(path: pathlib.Path, text: str):
        before = path.read_text() if path.exists() else None
        path.write_text(text)
        project._pyproject.cache_clear()
        build.inputs.locked.cache_clear()
        why = reason()
        path.unlink() if before is None else path.write_text(before)
        project._pyproject.cache_clear()
        build.inputs.locked.cache_clear()
        assert reason() is None
        return why

    assert reason() is None
    module, checking = book.package / "__init__.py", book.package / "checking"
    laws = checking / "laws" / "__init__.py"
    answer = book.package / "answer.txt"
    assert record.load(book)["sample"]["modules"] == [book.relative(path) for path in (module, answer, laws)]
    written = book.source("sample").read_text()
    assert with_change(book.source("sample"), written + "\nMore.\n") == "its text changed, and no code"
    more = written + "\n```{code-cell}\nprint(1)\n```\n"
    assert with_change(book.source("sample"), more) == "its source changed"
    assert with_change(module, "ANSWER = 43\n") == "modules of mlax_tutorial that it imports changed"
    assert with_change(module, f'"""What it is."""\n# why\n{PACKAGE}') is None
    assert with_change(laws, "LAWS = 1\n") == "modules of mlax_tutorial that it imports changed"
    assert with_change(checking / "__init__.py", "GRADES = 1\n") is None
    assert with_change(answer, "43") == "modules of mlax_tutorial that it imports changed"
    assert with_change(book.package / "data.bin", "beside a module, but not opened") is None
    assert with_change(book.package / "unused.py", "nobody imports this\n") is None
    assert (
        with_change(book.lock, '[[package]]\nname = "jax"\nversion = "9.9"\n')
        == "the locked versions changed"
    )
    assert with_change(book.root / "pyproject.toml", project_with("v2")) == "its source changed"
    assert (
        with_change(book.notebook("sample"), book.notebook("sample").read_text() + "\n")
        == "its notebook was edited"
    )


def test_a_comment_counts_in_a_module_that_the_chapter_prints(book):
    edit_source(
        book,
        'print("something to lose")',
        "import inspect, mlax_tutorial\nprint(inspect.getsource(mlax_tutorial))",
    )
    build.build_one(book, "sample")
    entry = record.load(book)["sample"]
    assert entry["printed"] == ["mlax_tutorial/__init__.py"] and len(entry["modules"]) == 3
    (book.package / "__init__.py").write_text(f"# why\n{PACKAGE}")
    before = build.earlier(book, "sample")
    what, why = build.plan(book, sources.read(book, "sample"), entry, before)
    assert what == "run" and "modules" in why


@pytest.mark.parametrize(
    "text, same",
    [
        ('"""One."""\nx = 1  # one\n', "x = 1\n"),
        ('def f():\n    """One."""\n', "def f():\n    pass\n"),
        ('class A:\n    "One."\n\n    x = "one"\n', 'class A:\n\n    x = "one"\n'),
        ("async def f():\n    'One.'\n    return 1\n", "async def f():\n    return 1\n"),
    ],
)
def test_code_without_what_is_said_about_it(text, same):
    assert inputs.code(text.encode()) == inputs.code(same.encode())


@pytest.mark.parametrize(
    "one, other", [("x = 1\n", "x = 2\n"), ("f('one')\n", "f('two')\n"), ("(", "(  # no code")]
)
def test_other_code_is_other_code(one, other):
    assert inputs.code(one.encode()) != inputs.code(other.encode())


def project_with(revision: str) -> str:
    return PYPROJECT.replace("v1", revision)


def test_a_changed_package_is_seen_and_ignored_outputs_are_new(book):
    before = read(book)
    (book.package / "__init__.py").write_text("ANSWER = 43\n")
    assert "modules of mlax_tutorial that it imports changed" in build.build_one(book, "sample")
    after = read(book)
    assert after.cells[4].outputs[0].data["text/plain"] == "43"
    clock = [i for i, cell in enumerate(after.cells) if "nbval-ignore-output" in sources.tags(cell)]
    assert before.cells[clock[0]].outputs != after.cells[clock[0]].outputs


def test_ignored_outputs_stay_while_nothing_before_them_changed(built):
    """A forced build keeps the clock's output (shown above); an edit before that cell renews it, one after does not."""

    def outputs_after(edit):
        earlier, fresh = read(built), read(built)
        clock = next(cell for cell in fresh.cells if "nbval-ignore-output" in sources.tags(cell))
        clock.outputs[0].text = "it is later\n"
        edit(fresh.cells)
        canonical.keep_earlier(fresh, earlier, same_surroundings=True)
        return clock.outputs[0].text

    def edit_first(cells):
        cells[2].source += "\n# changed"

    def edit_last(cells):
        cells[-1].source += "\n# changed"

    assert outputs_after(edit_first) == "it is later\n"
    assert outputs_after(edit_last) != "it is later\n"


def test_an_error_names_the_line_and_leaves_the_notebook(book):
    before = everything(book)
    edit_source(book, 'print("something to lose")', "x = 1\nraise RuntimeError('broken on purpose')")
    line = book.source("sample").read_text().splitlines().index("x = 1") + 1
    with pytest.raises(Problem) as caught:
        build.build_one(book, "sample")
    message = str(caught.value)
    assert f"book/_src/sample.md: code cell 6 (line {line}) failed" in message
    assert f"book/_src/sample.md, line {line + 1}:" in message
    assert "broken on purpose" in message
    assert "The notebook of before is left as it was." in message
    after = everything(book)
    assert after.pop("book/_src/sample.md") != before.pop("book/_src/sample.md")
    assert after == before


def test_a_cell_that_never_ends_is_stopped(book):
    edit_source(book, 'print("something to lose")', "import time\ntime.sleep(60)")
    edit_source(
        book,
        "```{code-cell}\nimport time\ntime.sleep",
        "```{code-cell}\n:tags: [limit-1s]\nimport time\ntime.sleep",
    )
    with pytest.raises(Problem, match=r"code cell 6 .* failed(?s:.*)took longer than 10 s"):
        build.build_one(book, "sample")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("  accelerator: GPU", "  accelerator: abacus", "`accelerator` must be one of GPU, TPU"),
        (
            "  accelerator: GPU",
            "  acelerator: GPU",
            "unknown keys under `chapter:` in the header: acelerator",
        ),
        ("# A small chapter", "A small chapter", "start the first markdown cell with '# Title'"),
        (
            "# A small chapter\n\nEach cell shows something of another kind.\n",
            "",
            "the first cell must be markdown",
        ),
        (":tags: [claim-X1]", ":tags: [claim-X1", "cannot be read as a MyST notebook"),
    ],
)
def test_mistakes_in_a_source(empty_book, old, new, message):
    edit_source(empty_book, old, new)
    with pytest.raises(Problem) as caught:
        build.build_one(empty_book, "sample")
    assert message in str(caught.value)
    assert not empty_book.notebook("sample").exists()


def test_another_jax_than_the_locked_one_is_refused(empty_book, capsys):
    empty_book.lock.write_text('[[package]]\nname = "jax"\nversion = "0.0.1"\n')
    from tools.notebooks import __main__

    assert __main__.main(["--root", str(empty_book.root), "build"]) == 1
    assert "the lock says 0.0.1" in capsys.readouterr().err
    assert not empty_book.notebook("sample").exists()


def test_work_over_its_limit_is_told(book, monkeypatch):
    """The machine may be slow, so it is a warning."""
    ran = build.Executed(read(book), 205.0, {2: 50.4}, [], [])
    monkeypatch.setattr(build, "execute", lambda book, source: ran)
    told = build.build_one(book, "sample", force=True)
    assert "took 205 processor seconds of at most 200" in told
    assert "code cell 1 (line 17): took 50 processor seconds, its limit is 40" in told
    entry = record.load(book)["sample"]
    assert entry["seconds"] == 205
    assert entry["date"] == datetime.date.today().isoformat()


def test_each_chapter_has_a_record_of_its_own(book):
    entry = record.load(book)["sample"]
    book.source("second").write_text("# Second\n")
    record.store(book, "second", entry)
    assert list(record.load(book)) == ["sample", "second"]
    book.source("second").unlink()
    assert list(record.load(book)) == ["sample"]
    assert any("second.json has no source" in message for message in guards.check_book(book))
