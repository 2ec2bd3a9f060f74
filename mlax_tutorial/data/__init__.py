"""Small real data sets: a part of each comes with the package and works offline, the whole from a folder or the network."""

from mlax_tutorial.data.download import DataError
from mlax_tutorial.data.fashion import FASHION_MNIST_CLASSES, Images, fashion_mnist
from mlax_tutorial.data.jargon_file import Texts, jargon
from mlax_tutorial.data.surnames import NAME_LANGUAGES, Names, names

__all__ = [
    "FASHION_MNIST_CLASSES",
    "NAME_LANGUAGES",
    "DataError",
    "Images",
    "Names",
    "Texts",
    "fashion_mnist",
    "jargon",
    "names",
]
