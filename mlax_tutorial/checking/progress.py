"""What the reader has done, in one local file. Nothing of it leaves the machine.

The file is JSON: ``{"version": 1, "exercises": {"arrays.double": {"status": "passed", "on": "2026-11-21", "at": "…"}}}``, with the
day on the reader's calendar and the time in UTC, which tells where they were last. It is ``progress.json`` in the user's data folder, or what the environment variable ``MLAX_TUTORIAL_PROGRESS`` names. A file
that cannot be read is set aside as ``….bad``, never overwritten; a folder that cannot be written is said once and then
left alone.
"""

import contextlib
import datetime
import json
import os
import pathlib
import sys
import tempfile

from mlax_tutorial.checking.outcome import NOT_ATTEMPTED, PASSED

VARIABLE = "MLAX_TUTORIAL_PROGRESS"
_said = set()


def path():
    """Where the progress file is, or would be."""
    if named := os.environ.get(VARIABLE):
        return pathlib.Path(named).expanduser()
    home = pathlib.Path.home()
    if sys.platform == "win32":
        folder = pathlib.Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = pathlib.Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "mlax-tutorial" / "progress.json"


def record(chapter, name, status):
    """Notes the status of an exercise; returns a remark for the reader, mostly an empty one.

    What is passed stays passed, and a further try that fails is noted with its time. An exercise that was not attempted is not noted.
    """
    if status == NOT_ATTEMPTED:
        return ""
    exercises, remark, readable = _load()
    if not readable:
        return remark
    key = f"{chapter}.{name}"
    if exercises.get(key, {}).get("status") == PASSED:
        return remark
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    exercises[key] = {"status": status, "on": datetime.date.today().isoformat(), "at": now}
    return "\n".join(filter(None, (remark, write(exercises))))


def read():
    """``(exercises, remark)``: what is noted, from ``chapter.name`` to its entry."""
    return _load()[:2]


def _load():
    """What is noted, a remark, and whether the file may be written: what cannot be read is not overwritten."""
    file = path()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, "", True
    except UnicodeDecodeError:
        return _set_aside(file)
    except OSError as error:
        remark = (
            f"Your progress file {file} cannot be read ({error.strerror}). The exercises work without it."
        )
        return {}, _once(remark), False
    try:
        content = json.loads(text)
        exercises = content["exercises"]
        if content["version"] != 1 or not all(entry["status"] for entry in exercises.values()):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _set_aside(file)
    return dict(exercises), "", True


def write(exercises):
    """Replaces the file in one step, so that it is never half-written; returns a remark if that fails."""
    file, beside = path(), None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"version": 1, "exercises": dict(sorted(exercises.items()))}, indent=1) + "\n"
        with tempfile.NamedTemporaryFile(
            "w", dir=file.parent, prefix=".progress-", suffix=".json", delete=False, encoding="utf-8"
        ) as new:
            beside = new.name
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
        os.replace(beside, file)
    except OSError as error:
        if beside:
            with contextlib.suppress(OSError):
                os.unlink(beside)
        return _once(
            f"Your progress cannot be noted in {file} ({error.strerror}). The exercises work without it; to keep it "
            f"elsewhere, set the environment variable {VARIABLE}."
        )
    return ""


def reset(chapter="", name=""):
    """Forgets a chapter, one exercise, or everything; the old file is kept beside. Returns ``(count, backup, remark)``."""
    exercises, remark = read()
    kept = {key: entry for key, entry in exercises.items() if not _chosen(key, chapter, name)}
    if len(kept) == len(exercises):
        return 0, None, remark
    file = path()
    backup = _free(file.with_name(file.name + ".old"))
    try:
        backup.write_bytes(file.read_bytes())
    except OSError as error:
        return 0, None, f"Nothing was reset: no backup could be written to {backup} ({error.strerror})."
    return len(exercises) - len(kept), backup, write(kept)


def _chosen(key, chapter, name):
    return key == f"{chapter}.{name}" if name else not chapter or key.startswith(f"{chapter}.")


def _set_aside(file):
    bad = _free(file.with_name(file.name + ".bad"))
    try:
        os.replace(file, bad)
    except OSError as error:
        return (
            {},
            _once(f"Your progress file {file} is damaged and cannot be moved ({error.strerror})."),
            False,
        )
    return {}, f"Your progress file was damaged. It is kept as {bad}, and a new one is begun.", True


def _free(file):
    """The first of FILE, FILE-2, FILE-3, … that does not exist yet."""
    number, free = 1, file
    while free.exists():
        number += 1
        free = file.with_name(f"{file.name}-{number}")
    return free


def _once(remark):
    if remark in _said:
        return ""
    _said.add(remark)
    return remark
