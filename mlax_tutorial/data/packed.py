"""The files that the package ships: under LZMA, and checked by a SHA-256 of what they hold."""

import hashlib
import lzma
from pathlib import Path

from mlax_tutorial.data.download import DataError


def pack(contents: bytes) -> bytes:
    """As small as LZMA can make it."""
    return lzma.compress(contents, preset=9 | lzma.PRESET_EXTREME)


def unpack(packed: bytes, function: str, path: Path, sha256: str) -> bytes:
    """What `pack` packed.

    Args:
      packed: the contents of the file at ``path``.
      function: the reader's function, named in errors.
      path: the file, named in errors.
      sha256: of the contents, unpacked, as hexadecimal digits.

    Raises:
      DataError: if the file is broken or holds something else.
    """
    try:
        contents = lzma.decompress(packed)
    except (lzma.LZMAError, EOFError) as error:
        raise DataError(f"{function}: {path} is broken ({error}): install mlax-tutorial anew.") from None
    if hashlib.sha256(contents).hexdigest() != sha256:
        raise DataError(
            f"{function}: {path} does not hold what it should ({len(contents):,} bytes unpacked, and another SHA-256): "
            "install mlax-tutorial anew."
        )
    return contents
