"""Files that are there as a whole or not at all, whoever else writes them."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def written_beside(path: str | os.PathLike) -> Iterator[Path]:
    """In the block, write the file that it is given; at the end it takes the name ``path``, and after an error it goes.

    Its name is its own: two writers do not meet, and the one that ends last has its file there. An existing file's permissions stay.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    try:
        partial.touch()
        mode = (path if path.exists() else partial).stat().st_mode
        yield partial
        partial.chmod(mode & 0o777)
        flush(partial)
        os.replace(partial, path)
        flush(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Have the system write a file, or the names in a directory, to the disk."""
    with contextlib.suppress(PermissionError):  # no directories on Windows
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
