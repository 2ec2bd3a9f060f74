"""``python -m mlax_tutorial exercises``, as a reader types it."""

import io
import json
import os
import subprocess
import sys

import pytest

from mlax_tutorial import __main__
from mlax_tutorial.checking import progress
from mlax_tutorial.exercises import catalog


def command(*arguments, answer="", **environment):
    return subprocess.run(
        [sys.executable, "-m", "mlax_tutorial", *arguments],
        input=answer,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "JAX_PLATFORMS": "cpu", **environment},
        timeout=120,
    )


def run(capsys, *arguments):
    status = __main__.main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def pass_exercise(chapter, name):
    progress.record(chapter, name, "passed")


def pass_chapters(*chapters, but=""):
    for chapter in chapters:
        for exercise in catalog.of(chapter):
            if exercise.name != but:
                pass_exercise(chapter, exercise.name)


@pytest.fixture
def noted(progress_file):
    """Writes a progress file: for each exercise its status, and at what minute; None leaves only the day."""

    def write(entries):
        progress.write(
            {
                key: {"status": status, "on": "2026-11-21"}
                | ({} if minute is None else {"at": f"2026-11-21T10:{minute:02}:00.000+00:00"})
                for key, (status, minute) in entries.items()
            }
        )

    return write


@pytest.mark.parametrize("action", ["list", "next"])
def test_whoever_reads_may_stop(progress_file, action):
    """As in `python -m mlax_tutorial exercises | head -3`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mlax_tutorial", "exercises", action],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    process.stdout.close()
    _, told = process.communicate(timeout=120)
    assert (process.returncode, told) == (1, b"")


def test_list_in_a_process_of_its_own(progress_file):
    pass_chapters("welcome")
    done = command("exercises")
    assert (done.returncode, done.stderr) == (0, "")
    lines, welcome = done.stdout.splitlines(), catalog.of("welcome")
    minutes, count = sum(exercise.minutes for exercise in welcome), len(welcome)
    assert lines[0] == f"Welcome: {count} of {count} done ({minutes} min)"
    assert lines[1].split() == ["[x]", "double", "★☆☆", "2", "min", *"Double every element".split()]
    total = sum(len(catalog.of(chapter)) for chapter in catalog.chapters())
    assert f"{count} of {total} done." in done.stdout


def test_list_on_an_old_terminal(monkeypatch):
    class Old(io.StringIO):
        encoding = "ascii"

    monkeypatch.setattr(sys, "stdout", old := Old())
    assert __main__.main(["exercises"]) == __main__.main(["exercises", "next"]) == 0
    assert "double" in old.getvalue() and "*.." in old.getvalue() and old.getvalue().isascii()


def test_next(capsys, progress_file):
    status, out, _ = run(capsys, "exercises", "next")
    assert (
        status == 0
        and out.startswith("welcome.double: Double every element\n")
        and "book/welcome.ipynb" in out
    )
    pass_chapters(*catalog.chapters())
    assert run(capsys, "exercises", "next")[1] == "All exercises are done.\n"
    out = run(capsys, "exercises", "list")[1]
    assert "Next:" not in out and "left" not in out and "[ ]" not in out


def test_failed_ones_are_marked(capsys, progress_file):
    progress.record("welcome", "double", "failed")
    out = run(capsys, "exercises")[1]
    assert "[-] double" in out and "Next: welcome.double, Double every element (you began it)." in out


def test_minutes_are_summed_up_by_chapter(capsys, progress_file):
    first, *others = catalog.of("jit")
    pass_exercise("jit", first.name)
    lines = run(capsys, "exercises")[1].splitlines()
    left = sum(exercise.minutes for exercise in others)
    assert f"jit: 1 of {len(others) + 1} done ({first.minutes} min), {left} min left" in lines
    welcome = catalog.of("welcome")
    minutes = sum(exercise.minutes for exercise in welcome)
    assert f"Welcome: 0 of {len(welcome)} done (0 min), {minutes} min left" in lines
    whole = sum(exercise.minutes for chapter in catalog.chapters() for exercise in catalog.of(chapter))
    assert f"About {whole - first.minutes} minutes are left." in lines[-2]


# Which one is next


def exercise(chapter, index):
    """An exercise of a chapter, by its place there."""
    return f"{chapter}.{catalog.of(chapter)[index].name}"


def following(capsys):
    """What `next` picks, and why."""
    lines = run(capsys, "exercises", "next")[1].splitlines()
    return lines[0].partition(":")[0], lines[2].removeprefix("Why this one: ")


def test_next_begins_with_the_book(capsys, progress_file):
    assert following(capsys) == ("welcome.double", "the book begins with it.")


def test_next_goes_on_where_the_reader_was_last(capsys, progress_file, noted):
    """And does not go back to chapters that they skipped."""
    arrays, jit = exercise("arrays", 0), exercise("jit", 0)
    noted({arrays: ("passed", 1), jit: ("passed", 2)})
    assert following(capsys) == (exercise("jit", 1), "next in jit.")
    noted({arrays: ("passed", 2), jit: ("passed", 1)})
    assert following(capsys) == (exercise("arrays", 1), "next in Arrays.")


def test_next_is_what_was_tried_and_not_solved(capsys, progress_file, noted):
    noted({"jit.traces": ("failed", 1), "jit.steady": ("failed", 3), "jit.jit_method": ("failed", 2)})
    assert following(capsys) == ("jit.steady", "you began it.")
    noted({"arrays.lookup": ("failed", 1), exercise("jit", 0): ("passed", 2)})
    assert following(capsys) == (exercise("jit", 1), "next in jit.")


def test_next_takes_what_was_skipped_when_the_rest_is_done(capsys, progress_file):
    pass_chapters("jit", but="steady")
    assert following(capsys) == ("jit.steady", "you skipped it.")
    pass_chapters("jit")
    assert following(capsys) == (exercise("compiling", 0), "the next chapter begins with it.")
    progress.record("arrays", "lookup", "failed")
    pass_chapters(*catalog.chapters()[catalog.chapters().index("jit") :])
    assert following(capsys) == ("welcome.double", "you skipped it.")
    pass_chapters("welcome")
    assert following(capsys) == ("arrays.lookup", "you began it.")


def test_next_after_a_further_try(capsys, progress_file, noted):
    noted({"arrays.lookup": ("failed", 1), "jit.counter": ("failed", 2)})
    progress.record("arrays", "lookup", "failed")
    assert following(capsys) == ("arrays.lookup", "you began it.")


def test_next_knows_the_files_of_the_first_edition(capsys, progress_file, noted):
    """They say on which day, and no more: of one day, what stands later in the book counts as later."""
    arrays, jit = exercise("arrays", 0), exercise("jit", 0)
    noted({jit: ("passed", None), arrays: ("passed", None), "later.thing": ("failed", 9)})
    assert following(capsys) == (exercise("jit", 1), "next in jit.")
    noted({arrays: ("passed", None), jit: ("passed", 1)})
    assert following(capsys) == (exercise("jit", 1), "next in jit.")


def test_reset_asks(progress_file):
    pass_exercise("welcome", "double")
    done = command("exercises", "reset", answer="n\n")
    assert done.returncode == 1 and "Nothing was changed." in done.stdout
    assert "welcome.double" in progress_file.read_text()
    done = command("exercises", "reset", answer="y\n")
    assert done.returncode == 0 and "Forgot 1 exercise." in done.stdout
    assert json.loads(progress_file.read_text())["exercises"] == {}
    assert "welcome.double" in progress_file.with_name("progress.json.old").read_text()


@pytest.mark.parametrize("answer", ["", "\n", "nonsense\n", "no\n"])
def test_reset_does_nothing_unless_it_is_wanted(capsys, monkeypatch, progress_file, answer):
    pass_exercise("welcome", "double")
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    status, out, _ = run(capsys, "exercises", "reset")
    assert status == 1 and "Nothing was changed." in out and "welcome.double" in progress_file.read_text()


def test_reset_of_one(capsys, progress_file):
    pass_exercise("welcome", "double")
    pass_exercise("other", "thing")
    assert run(capsys, "exercises", "reset", "welcome.double", "--yes")[0] == 0
    assert list(json.loads(progress_file.read_text())["exercises"]) == ["other.thing"]
    status, out, _ = run(capsys, "exercises", "reset", "welcome", "--yes")
    assert status == 0 and "nothing to forget" in out


@pytest.mark.parametrize(
    "what, says", [("nowhere", "no chapter 'nowhere'"), ("welcome.nothing", "no exercise 'nothing'")]
)
def test_reset_of_what_is_not_there(capsys, what, says):
    status, out, err = run(capsys, "exercises", "reset", what, "--yes")
    assert status == 2 and says in err and "welcome" in err and out == ""


def test_a_damaged_file_is_told(capsys, progress_file):
    progress_file.parent.mkdir()
    progress_file.write_text("{")
    status, out, _ = run(capsys, "exercises")
    assert status == 0 and "was damaged" in out and "0 of" in out


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["exercises", "--help"], ["exercises", "reset", "--help"]]
)
def test_help(capsys, arguments):
    try:
        assert __main__.main(arguments) == 0
    except SystemExit as stop:
        assert stop.code == 0
    assert "usage: mlax-tutorial" in capsys.readouterr().out


def test_what_is_not_a_command(capsys):
    with pytest.raises(SystemExit) as stop:
        __main__.main(["exercise"])
    assert stop.value.code == 2 and "exercises" in capsys.readouterr().err


def test_nothing_heavy_is_imported_early():
    code = (
        "import sys, mlax_tutorial\n"
        "assert not [m for m in sys.modules if m.startswith(('mlax_tutorial.checking', 'mlax_tutorial.exercises'))]\n"
        "from mlax_tutorial import checking, __main__\n"
        "assert __main__.main(['exercises']) == 0\n"
        # a thread imports hypothesis while the reader writes
        "loaded = {'IPython', 'matplotlib', 'pytest'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
