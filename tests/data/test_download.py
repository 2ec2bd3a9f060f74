"""A file is there whole or not at all, whatever the network, the disk or the process does."""

import concurrent.futures
import multiprocessing
import signal
import subprocess
import sys
import time

import pytest

from mlax_tutorial.data.download import DataError, fetch
from tests.data.conftest import CONTENT


def check(content):
    if content != CONTENT:
        raise DataError(f"{len(content)} bytes of something else.")


def get(server, path, **options):
    fetch(server.url + "file.gz", path, check, progress=lambda *_: None, **options)
    return path.read_bytes()


def leftovers(folder):
    return sorted(item.name for item in folder.iterdir())


@pytest.mark.parametrize("manner", ["well", "no-length", "slow"])
def test_a_whole_file_arrives(server, tmp_path, manner):
    server.manners = [manner]
    assert get(server, tmp_path / "new" / "file.gz") == CONTENT
    assert leftovers(tmp_path / "new") == ["file.gz"]


def test_a_broken_connection_is_resumed_from_where_it_broke(server, tmp_path):
    server.manners = ["break", "break"]
    assert get(server, tmp_path / "file.gz") == CONTENT
    half = len(CONTENT) // 2
    assert server.requests == [None, f"bytes={half}-", f"bytes={half + (len(CONTENT) - half) // 2}-"]


def test_a_server_that_cannot_resume_sends_it_anew(server, tmp_path):
    server.manners = ["break", "no-range"]
    assert get(server, tmp_path / "file.gz") == CONTENT


def test_a_later_call_resumes(server, tmp_path):
    server.manners = ["break"]
    with pytest.raises(DataError, match=r"could not be fetched .*next call goes on from there") as caught:
        get(server, tmp_path / "file.gz", attempts=1)
    assert leftovers(tmp_path) == ["file.gz.partial"] and str(tmp_path) in str(caught.value)
    assert get(server, tmp_path / "file.gz") == CONTENT
    assert server.requests[1] == f"bytes={len(CONTENT) // 2}-"


def test_a_server_that_hangs_is_given_up(server, tmp_path):
    server.manners = ["hang"] * 2
    with pytest.raises(DataError, match=r"could not be fetched \(.*timed out"):
        get(server, tmp_path / "file.gz", attempts=2)


def test_a_missing_file_is_not_asked_for_again(server, tmp_path):
    server.manners = ["absent"] * 3
    with pytest.raises(DataError, match=r"could not be fetched \(Not Found\).*by hand"):
        get(server, tmp_path / "file.gz")
    assert len(server.requests) == 1 and leftovers(tmp_path) == []  # an empty file is not worth keeping


def test_garbage_is_refused_and_not_kept(server, tmp_path):
    server.manners = ["garbage"]
    with pytest.raises(DataError, match=r"fetched, but it is not what it should be; nothing was kept"):
        get(server, tmp_path / "file.gz")
    assert leftovers(tmp_path) == []
    assert get(server, tmp_path / "file.gz") == CONTENT


def test_a_wrong_partial_file_does_not_survive(server, tmp_path):
    (tmp_path / "file.gz.partial").write_bytes(b"x" * 100)
    with pytest.raises(DataError, match="nothing was kept"):
        get(server, tmp_path / "file.gz")
    assert get(server, tmp_path / "file.gz") == CONTENT


def test_a_whole_partial_file_is_accepted(server, tmp_path):
    (tmp_path / "file.gz.partial").write_bytes(CONTENT)
    assert get(server, tmp_path / "file.gz") == CONTENT
    assert leftovers(tmp_path) == ["file.gz"]


def test_no_server_at_all(tmp_path):
    with pytest.raises(DataError, match="could not be fetched"):
        fetch("http://127.0.0.1:9/file.gz", tmp_path / "file.gz", check, attempts=1)


def test_a_folder_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match=r"cannot be written .*pass another folder"):
        get(server, tmp_path / "file" / "file.gz")


SCRIPT = """
import sys, pathlib
from mlax_tutorial.data.download import fetch
fetch(sys.argv[1], pathlib.Path(sys.argv[2]), lambda content: None, progress=lambda *_: None)
"""


FULL = """
import resource, sys, pathlib
from mlax_tutorial.data import download
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
download.time.sleep = lambda seconds: None
try:
    download.fetch(sys.argv[1], pathlib.Path(sys.argv[2]), lambda content: None, progress=lambda *_: None)
except download.DataError as error:
    sys.exit(str(error))
"""


def test_a_disk_that_is_full_is_told(server, tmp_path):
    target = tmp_path / "file.gz"
    done = subprocess.run(
        [sys.executable, "-c", FULL, server.url + "file.gz", str(target)], capture_output=True, text=True
    )
    assert done.returncode == 1 and "could not be fetched ([Errno 27] File too large)" in done.stderr
    assert leftovers(tmp_path) == ["file.gz.partial"]
    assert get(server, target) == CONTENT


def test_a_killed_process_leaves_nothing_half_written(server, tmp_path):
    server.manners = ["slow"]
    target = tmp_path / "file.gz"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, server.url + "file.gz", str(target)])
    partial = tmp_path / "file.gz.partial"
    deadline = time.monotonic() + 30
    while not (partial.is_file() and partial.stat().st_size > 0):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not target.exists() and 0 < partial.stat().st_size < len(CONTENT)
    assert get(server, target) == CONTENT
    assert server.requests[-1].startswith("bytes=")


def _fetch_in_process(url, path):
    fetch(url, path, check, progress=lambda *_: None)


@pytest.mark.parametrize(
    ("manners", "codes", "requests"), [(["slow"], [0, 0], 1), (["slow garbage"], [0, 1], 2)]
)
def test_two_processes_fetch_once(server, tmp_path, manners, codes, requests):
    """The second waits for the first; if the first got rubbish and threw it away, the second tries for itself."""
    server.manners = manners
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_fetch_in_process, args=(server.url + "file.gz", tmp_path / "file.gz"))
        for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert sorted(process.exitcode for process in processes) == codes
    assert (tmp_path / "file.gz").read_bytes() == CONTENT and leftovers(tmp_path) == ["file.gz"]
    assert len(server.requests) == requests


def test_two_threads_fetch_once(server, tmp_path):
    server.manners = ["slow"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda _: get(server, tmp_path / "file.gz"), range(2)))
    assert got == [CONTENT, CONTENT] and len(server.requests) == 1 and leftovers(tmp_path) == ["file.gz"]


def test_progress_is_told(server, tmp_path):
    calls = []
    fetch(server.url + "file.gz", tmp_path / "file.gz", check, progress=lambda *call: calls.append(call))
    assert calls[-1] == ("file.gz", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)


def test_without_a_terminal_progress_is_one_line(server, tmp_path, capsys):
    fetch(server.url + "file.gz", tmp_path / "file.gz", check)
    assert capsys.readouterr().err == "file.gz: 1.0 MB fetched\n"
