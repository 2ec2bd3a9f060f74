"""Fashion-MNIST: 28 x 28 grey photographs of clothes in ten classes (Xiao, Rasul and Vollgraf, 2017)."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mlax_tutorial.data import packed
from mlax_tutorial.data.download import DataError, cache, fetch

FASHION_MNIST_CLASSES = (
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip

# Made by tools/data/fashion_subset.py.
SUBSET = Path(__file__).with_name("fashion_mnist_subset.xz")
SUBSET_SIZES = {"train": 10_000, "t10k": 2_000}
SUBSET_CONTENTS = "c647bc74d327b606bf73afa07d97aaae0c0d5cfbbf09741ceded0ce173b66649"  # SHA-256, unpacked
URL = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
# SHA-256 of the contents, unpacked: the same contents are around in differently compressed files.
CONTENTS = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
DEBIAN = Path("/usr/share/datasets/fashion-mnist")


class Images(NamedTuple):
    """Images with their classes, as NumPy arrays in the memory of the host.

    They stay on the host because only the reader knows where they should go: all at once to a device, batch by
    batch, or sharded over many. As bytes they take a quarter of the memory that float32 would. They are
    read-only.

    Attributes:
      images: dtype uint8; of `fashion_mnist` shape ``(n, 28, 28)``, 0 is the background, 255 the brightest; of `cifar10` shape
        ``(n, 32, 32, 3)``, the last axis red, green and blue.
      labels: shape ``(n,)``, dtype int32, from 0 to 9: an index into ``FASHION_MNIST_CLASSES`` or ``CIFAR10_CLASSES``.
    """

    images: np.ndarray
    labels: np.ndarray


def fashion_mnist(
    whole: bool = False,
    folder: str | os.PathLike | None = None,
    download: bool = True,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> tuple[Images, Images]:
    """Load Fashion-MNIST: the part that comes with the package, or all 70,000 images.

    The part is balanced: 1,000 training and 200 test images of each class, the first of each in the order of the
    data set. It needs no network.

    The whole set is looked for in ``folder`` if one is given; otherwise in the user's cache
    (``$XDG_CACHE_HOME/mlax-tutorial``), then where Debian's package ``dataset-fashion-mnist`` puts it. What is
    missing is downloaded (30 MB) into ``folder`` or the cache. Contents are checked by SHA-256; a download that
    broke off is resumed, and never takes the place of a whole file.

    Args:
      whole: all 60,000 training and 10,000 test images instead of the part.
      folder: where the four files are, or shall be put; compressed (``.gz``) or not.
      download: whether missing files may be fetched.
      progress: called with the file's name, the bytes so far and the bytes in all (None if unknown); by default
        a line on standard error.

    Returns:
      ``(train, test)``, two `Images`.

    Raises:
      DataError: if a file is missing and may not be or cannot be fetched, or its contents are not Fashion-MNIST.

    Example:
      >>> from mlax_tutorial import data
      >>> train, test = data.fashion_mnist()
      >>> train.images.shape, test.labels.shape
      ((10000, 28, 28), (2000,))
      >>> import jax.numpy as jnp
      >>> x = jnp.asarray(test.images, jnp.float32) / 255  # on the default device, from 0 to 1
      >>> x.shape, float(x.max())
      ((2000, 28, 28), 1.0)

    Reference: Xiao, Rasul and Vollgraf, *Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning
    Algorithms* (2017), arXiv:1708.07747. MIT licence, see ``mlax_tutorial/data/LICENSE-fashion-mnist``.
    """
    if not isinstance(whole, bool):
        raise DataError(
            f"fashion_mnist: whole must be True or False, got {whole!r}: name the folder, folder={whole!r}."
        )
    if not whole:
        if folder is not None:
            raise DataError(
                "fashion_mnist: folder is for the whole set: pass whole=True, too, or leave it out."
            )
        return unpack_subset(SUBSET.read_bytes())
    parts = {name: _whole_file(name, folder, download, progress) for name in CONTENTS}
    train, test = (
        Images(
            np.frombuffer(parts[f"{part}-images-idx3-ubyte"], np.uint8, offset=16).reshape(-1, 28, 28),
            _labels(np.frombuffer(parts[f"{part}-labels-idx1-ubyte"], np.uint8, offset=8)),
        )
        for part in ("train", "t10k")
    )
    return train, test


def pack_subset(train: Images, test: Images) -> bytes:
    """The file that the package ships: for each set its labels, then its images, as bytes."""
    parts = [
        array.astype(np.uint8).tobytes() for part in (train, test) for array in (part.labels, part.images)
    ]
    return packed.pack(b"".join(parts))


def unpack_subset(file: bytes) -> tuple[Images, Images]:
    """What `pack_subset` packed."""
    unpacked = packed.unpack(file, "fashion_mnist", SUBSET, SUBSET_CONTENTS)
    flat, images, start = np.frombuffer(unpacked, np.uint8), [], 0
    for size in SUBSET_SIZES.values():
        labels = _labels(flat[start : start + size])
        pixels = flat[start + size : start + size * 785].reshape(size, 28, 28)
        images.append(Images(pixels, labels))
        start += size * 785
    return tuple(images)


def _labels(flat: np.ndarray) -> np.ndarray:
    labels = flat.astype(np.int32)
    labels.flags.writeable = False  # as the images are, which are views of bytes
    return labels


def _whole_file(name, folder, download, progress) -> bytes:
    """The unpacked contents of one of the four files."""
    target = Path(folder).expanduser() if folder is not None else cache("fashion_mnist", "fashion-mnist")
    for place in [target] if folder is not None else [target, DEBIAN]:
        for path in (place / f"{name}.gz", place / name):
            if path.is_file():
                return _contents(path, path.read_bytes())
    if not download:
        raise DataError(
            f"fashion_mnist: {name}.gz is not in {target}. Allow download=True, or put the four files there from "
            "https://github.com/zalandoresearch/fashion-mnist (on Debian: apt install dataset-fashion-mnist)."
        )
    path = target / f"{name}.gz"
    fetch(URL + path.name, path, lambda file: _contents(path, file), progress)
    return _contents(path, path.read_bytes())


def _contents(path: Path, file: bytes) -> bytes:
    """Unpack if need be, and check."""
    try:
        unpacked = gzip.decompress(file) if file[:2] == b"\x1f\x8b" else file
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"fashion_mnist: {path} is broken ({error}): delete it, and load again to fetch it anew."
        ) from None
    name = path.name.removesuffix(".gz")
    if hashlib.sha256(unpacked).hexdigest() != CONTENTS[name]:
        raise DataError(
            f"fashion_mnist: {path} does not hold the {name} of Fashion-MNIST ({len(unpacked):,} bytes unpacked, and "
            "another SHA-256): delete it, and load again to fetch it anew."
        )
    return unpacked
