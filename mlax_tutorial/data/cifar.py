"""CIFAR-10: 32 x 32 color photographs in ten classes (Krizhevsky, 2009)."""

import io
import os
import tarfile
import zlib
from collections.abc import Callable

import numpy as np

from mlax_tutorial.data.download import DataError, archive
from mlax_tutorial.data.fashion import Images

CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip

# The version of bytes: the one for Python is made of pickles, which run what they like when they are read.
URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
TRAIN = [f"data_batch_{number}.bin" for number in range(1, 6)]
TEST = ["test_batch.bin"]
RECORD = 1 + 3 * 32 * 32  # the label, then all of red, of green and of blue


def cifar10(
    folder: str | os.PathLike | None = None,
    download: bool = True,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> tuple[Images, Images]:
    """Load CIFAR-10: 50,000 training and 10,000 test images.

    The archive ``cifar-10-binary.tar.gz`` is looked for in ``folder`` if one is given, otherwise in the user's cache
    (``$XDG_CACHE_HOME/mlax-tutorial/cifar-10``), and downloaded to there (170 MB) if it is missing. It is checked by SHA-256 and
    read where it lies; a download that broke off is resumed.

    Args:
      folder: where the archive is, or shall be put.
      download: whether a missing archive may be fetched.
      progress: as for `fashion_mnist`.

    Returns:
      ``(train, test)``, two `Images`, shape ``(n, 32, 32, 3)``.

    Raises:
      DataError: if the archive is missing and may not be or cannot be fetched, or is not that of CIFAR-10.

    Reference: Krizhevsky, *Learning Multiple Layers of Features from Tiny Images* (2009).
    """
    file = archive("cifar10", URL, SHA256, "cifar-10", folder, download, progress)
    found = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(file), mode="r:gz") as members:
            for member in members:  # in their order: to go back would unpack all again
                name = member.name.rsplit("/", 1)[-1]
                if member.isfile() and name in [*TRAIN, *TEST]:
                    found[name] = np.frombuffer(members.extractfile(member).read(), np.uint8)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"cifar10: the archive cannot be read ({error}).") from None
    wrong = [name for name in [*TRAIN, *TEST] if name not in found or found[name].size % RECORD]
    if wrong:
        raise DataError(
            f"cifar10: {wrong[0]} is missing from the archive, or is not records of {RECORD:,} bytes."
        )
    return tuple(_images(np.concatenate([found[name] for name in names])) for names in (TRAIN, TEST))


def _images(flat: np.ndarray) -> Images:
    records = flat.reshape(-1, RECORD)
    images = np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    labels = records[:, 0].astype(np.int32)
    images.flags.writeable = labels.flags.writeable = False
    return Images(images, labels)
