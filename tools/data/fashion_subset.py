"""Make the part of Fashion-MNIST that the package ships: the first images of each class, in the data set's order.

.venv/bin/python -m tools.data.fashion_subset [FOLDER]     # FOLDER holds the whole set; else as fashion_mnist finds it
"""

import sys

import numpy as np

from mlax_tutorial.data import FASHION_MNIST_CLASSES, Images, fashion_mnist
from mlax_tutorial.data.fashion import SUBSET, SUBSET_SIZES, pack_subset


def choose(whole: Images, size: int) -> Images:
    """As many of each class, and the order of the whole set kept."""
    each = size // len(FASHION_MNIST_CLASSES)
    chosen = [np.flatnonzero(whole.labels == label)[:each] for label in range(len(FASHION_MNIST_CLASSES))]
    order = np.sort(np.concatenate(chosen))
    return Images(whole.images[order], whole.labels[order])


def make(folder=None) -> bytes:
    return pack_subset(*map(choose, fashion_mnist(whole=True, folder=folder), SUBSET_SIZES.values()))


if __name__ == "__main__":
    packed = make(*sys.argv[1:])
    partial = SUBSET.with_suffix(".partial")
    partial.write_bytes(packed)
    partial.replace(SUBSET)
    print(f"{SUBSET}: {len(packed):,} bytes")
