"""``fetch``: a file from the network that is there whole or not at all; ``archive``: one that is kept in the user's cache."""

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows, where two downloads at once are on their own
    fcntl = None

TIMEOUT = 20.0  # seconds without a byte
CHUNK = 1 << 16


class DataError(RuntimeError):
    """A data set is missing, broken, or cannot be fetched."""


def fetch(url: str, path: Path, check: Callable[[bytes], object], progress=None, attempts: int = 3) -> None:
    """Download ``url`` to ``path``; on any failure ``path`` is as it was before.

    Bytes go to a file beside, ``NAME.partial``, which a later call resumes. When it is whole, ``check`` looks at
    it, and only then is it renamed. Processes that fetch the same file wait for one another.

    Args:
      url: what to fetch.
      path: where it goes; its folder is made.
      check: called with all bytes; raises `DataError` if they are not what was wanted.
      progress: called with name, bytes so far, and bytes in all or None; by default a line on standard error.
      attempts: how often to resume when the connection breaks.

    Raises:
      DataError: if it cannot be fetched or ``check`` refuses it, with what to do.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = _open_alone(partial)
    except OSError as error:
        raise DataError(f"{path.parent} cannot be written ({error.strerror}): pass another folder.") from None
    with stream:
        if path.is_file():  # somebody else was faster, while this process waited
            partial.unlink()
            return
        for attempt in range(attempts):
            try:
                _download(url, stream, progress or _print_progress)
                break
            except (OSError, http.client.HTTPException) as error:
                refused = isinstance(error, urllib.error.HTTPError)
                if refused or attempt == attempts - 1:
                    reason, kept = getattr(error, "reason", None) or error, ""
                    if stream.tell():
                        kept = (
                            f"What came so far is kept in {partial}, and the next call goes on from there. "
                        )
                    else:
                        partial.unlink()
                    raise DataError(
                        f"{url} could not be fetched ({reason}). {kept}Without a network, put the file into "
                        f"{path.parent} by hand."
                    ) from None
                time.sleep(0.5 * 2**attempt)
        stream.flush()
        os.fsync(stream.fileno())
        try:
            check(partial.read_bytes())
        except DataError as error:
            partial.unlink()  # there is nothing to resume in a wrong file
            raise DataError(
                f"{url} was fetched, but it is not what it should be; nothing was kept. {error}"
            ) from None
        partial.replace(path)


def archive(
    function: str,
    url: str,
    sha256: str,
    place: str,
    folder: str | os.PathLike | None,
    download: bool,
    progress=None,
) -> bytes:
    """The bytes of one archive: from ``folder`` or the user's cache, fetched first if they are not there.

    Args:
      function: the reader's function, named in errors.
      url: where it comes from; the last part is its name.
      sha256: of the archive, as hexadecimal digits.
      place: the folder's name in the cache.
      folder, download, progress: as for `fashion_mnist`.

    Raises:
      DataError: if it is not there and may not be or cannot be fetched, or holds something else.
    """
    target = Path(folder).expanduser() if folder is not None else cache(function, place)
    path = target / url.rsplit("/", 1)[-1]

    def check(file):
        if hashlib.sha256(file).hexdigest() != sha256:
            raise DataError(
                f"{function}: {path} is not the archive that it should be ({len(file):,} bytes, and another SHA-256): "
                "delete it, and load again to fetch it anew."
            )

    if path.is_file():
        check(file := path.read_bytes())
        return file
    if not download:
        raise DataError(
            f"{function}: {path.name} is not in {target}. Allow download=True, or put the file there from {url}."
        )
    fetch(url, path, check, progress)
    return path.read_bytes()


def cache(function: str, place: str) -> Path:
    """Where a data set lies that was fetched: ``$XDG_CACHE_HOME/mlax-tutorial/PLACE``."""
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a container, say, whose user has none
        raise DataError(f"{function}: the user has no home directory: pass a folder.") from None
    return root / "mlax-tutorial" / place


def _download(url: str, stream, progress) -> None:
    """Append to ``stream`` what is still missing of ``url``."""
    have = stream.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing beyond what is here: whole already, or check will say
            return
        raise
    with answer:
        if have and answer.status != 206:  # the server starts from the beginning, and so do we
            stream.truncate(0)
            have = 0
        rest = answer.headers.get("Content-Length")
        total = have + int(rest) if rest is not None else None
        while chunk := answer.read(CHUNK):
            stream.write(chunk)
            have += len(chunk)
            progress(url.rsplit("/", 1)[-1], have, total)
        if total is not None and have < total:
            raise http.client.IncompleteRead(b"", total - have)


def _open_alone(partial: Path):
    """Open ``partial`` to append, and wait until no other process has it open so."""
    while True:
        stream = open(partial, "ab")
        if fcntl is None:
            return stream
        fcntl.flock(stream, fcntl.LOCK_EX)  # released when the file is closed, or its process dies
        if partial.is_file() and os.path.samestat(os.fstat(stream.fileno()), partial.stat()):
            return stream
        stream.close()  # meanwhile it was renamed or removed by the process that this one waited for


def _print_progress(name: str, done: int, total: int | None) -> None:
    """In a terminal one line that is redrawn; elsewhere one line when the file is whole."""
    if sys.stderr.isatty():
        share = f"{done / total:4.0%} of {total / 1e6:.1f} MB" if total else f"{done / 1e6:.1f} MB"
        end = "\n" if done == total else ""
        print(f"\r{name}: {share}", end=end, file=sys.stderr, flush=True)
    elif done == total:
        print(f"{name}: {done / 1e6:.1f} MB fetched", file=sys.stderr)
