"""The progress file is small, local, never half-written, and never eaten."""

import json
import os
import pathlib
import stat

import pytest

from mlax_tutorial.checking import progress
from mlax_tutorial.exercises import catalog, welcome


def double(x):
    return 2 * x


def triple(x):
    return 3 * x


def stub(x): ...


def noted(file):
    return json.loads(file.read_text())["exercises"]


def test_check_notes_what_was_passed(progress_file, capsys):
    welcome.double.check(stub)
    assert not progress_file.exists(), "a notebook that is only run through leaves no trace"
    welcome.double.check(triple)
    assert noted(progress_file)["welcome.double"]["status"] == "failed"
    welcome.double.check(double)
    entry = noted(progress_file)["welcome.double"]
    assert entry["status"] == "passed" and len(entry["on"]) == 10
    welcome.double.check(triple)
    assert noted(progress_file)["welcome.double"]["status"] == "passed", "what is passed stays passed"
    assert "progress" not in capsys.readouterr().out


def test_grade_notes_nothing(progress_file):
    welcome.double.grade(double)
    assert not progress_file.exists()


def test_nothing_is_left_beside(progress_file):
    progress.record("welcome", "double", "passed")
    assert os.listdir(progress_file.parent) == ["progress.json"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"version": 2, "exercises": {}}',
        b'{"version": 1}',
        b'{"version": 1, "exercises": {"welcome.double": 3}}',
        b'{"version": 1, "exercises": []}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_set_aside(progress_file, damage, capsys):
    progress_file.parent.mkdir()
    progress_file.write_bytes(damage)
    welcome.double.check(double)
    said = capsys.readouterr().out
    assert "passed" in said and "was damaged" in said
    assert noted(progress_file)["welcome.double"]["status"] == "passed"
    assert (progress_file.parent / "progress.json.bad").read_bytes() == damage
    progress_file.write_bytes(damage)
    progress.read()
    assert (progress_file.parent / "progress.json.bad-2").exists(), "nor is the one set aside before lost"


def test_unknown_entries_are_kept(progress_file):
    """Such as those of a newer edition, or of a chapter that was renamed."""
    progress_file.parent.mkdir()
    progress_file.write_text(
        '{"version": 1, "exercises": {"later.thing": {"status": "passed", "more": [1]}}}'
    )
    progress.record("welcome", "double", "passed")
    assert noted(progress_file)["later.thing"] == {"status": "passed", "more": [1]}


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "file" / "progress.json"))
    welcome.double.check(double)
    first = capsys.readouterr().out
    assert "passed" in first and "cannot be read" in first
    welcome.double.check(double)
    assert "cannot" not in capsys.readouterr().out, "said once is enough"


def test_a_read_only_folder(progress_file, monkeypatch, capsys):
    """Root may write anywhere, so the refusal is played."""
    progress_file.parent.mkdir()
    progress_file.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(progress.tempfile, "NamedTemporaryFile", refuse)
    try:
        welcome.double.check(double)
    finally:
        progress_file.parent.chmod(stat.S_IRWXU)
    said = capsys.readouterr().out
    assert "passed" in said and "cannot be noted" in said and "Permission denied" in said
    assert os.listdir(progress_file.parent) == []


def test_a_disk_that_fills_up(progress_file, monkeypatch):
    progress.record("welcome", "one", "passed")
    before = progress_file.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress.os, "fsync", full)
    assert "No space left" in progress.record("welcome", "two", "passed")
    assert progress_file.read_bytes() == before
    assert os.listdir(progress_file.parent) == ["progress.json"]


def test_a_folder_in_place_of_the_file(progress_file):
    progress_file.mkdir(parents=True)
    assert "cannot be read" in progress.record("welcome", "double", "passed")
    assert progress_file.is_dir()


def test_a_file_that_cannot_be_read_is_not_replaced(progress_file, monkeypatch):
    progress.record("welcome", "one", "passed")
    before = progress_file.read_bytes()

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "read_text", refuse)
    assert "cannot be read (Permission denied)" in progress.record("welcome", "two", "passed")
    assert progress_file.read_bytes() == before


def test_a_damaged_file_that_cannot_be_moved_is_not_replaced(progress_file, monkeypatch):
    progress_file.parent.mkdir()
    progress_file.write_text("{")

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(progress.os, "replace", refuse)
    assert "damaged and cannot be moved" in progress.record("welcome", "double", "passed")
    assert progress_file.read_text() == "{"


def test_where_it_is(monkeypatch, tmp_path):
    monkeypatch.delenv(progress.VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(progress.sys, "platform", "linux")
    assert progress.path() == tmp_path / "mlax-tutorial" / "progress.json"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert progress.path() == tmp_path / ".local" / "share" / "mlax-tutorial" / "progress.json"
    monkeypatch.setattr(progress.sys, "platform", "darwin")
    assert progress.path() == tmp_path / "Library" / "Application Support" / "mlax-tutorial" / "progress.json"
    monkeypatch.setattr(progress.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    assert progress.path() == tmp_path / "Local" / "mlax-tutorial" / "progress.json"
    monkeypatch.setenv(progress.VARIABLE, "~/mine.json")
    assert progress.path() == pathlib.Path(tmp_path / "mine.json")


def test_reset(progress_file):
    for key in ("welcome.double", "arrays.a", "arrays.b", "arrays_more.a"):
        progress.record(*key.split("."), "passed")
    full = progress_file.read_bytes()
    count, backup, remark = progress.reset("arrays", "a")
    assert (count, remark) == (1, "") and backup.read_bytes() == full
    assert list(noted(progress_file)) == ["arrays.b", "arrays_more.a", "welcome.double"]
    assert progress.reset("arrays")[0] == 1
    assert list(noted(progress_file)) == ["arrays_more.a", "welcome.double"]
    assert progress.reset("arrays") == (0, None, "")
    count, backup, _ = progress.reset()
    assert count == 2 and backup.name == "progress.json.old-3" and noted(progress_file) == {}


def test_the_order_of_the_book():
    names = catalog.chapters()
    assert names[0] == "welcome" and not any(name.startswith("_") for name in names)
    order = list(catalog.TITLES)
    assert sorted(names, key=lambda name: order.index(name) if name in order else 99) == names
    assert catalog.title("first_network") == "A first network"
    assert catalog.title("not_known_yet") == "Not known yet"
