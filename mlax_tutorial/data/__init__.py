"""Real data sets: small ones, or a part, come with the package and work offline; the others from a folder or the network."""

from mlax_tutorial.data.cifar import CIFAR10_CLASSES, cifar10
from mlax_tutorial.data.download import DataError
from mlax_tutorial.data.fashion import FASHION_MNIST_CLASSES, Images, fashion_mnist
from mlax_tutorial.data.jargon_file import Texts, jargon
from mlax_tutorial.data.records import recorded
from mlax_tutorial.data.sentences import SNLI_CLASSES, Pairs, snli
from mlax_tutorial.data.surnames import NAME_LANGUAGES, Names, names

__all__ = [
    "CIFAR10_CLASSES",
    "FASHION_MNIST_CLASSES",
    "NAME_LANGUAGES",
    "SNLI_CLASSES",
    "DataError",
    "Images",
    "Names",
    "Pairs",
    "Texts",
    "cifar10",
    "fashion_mnist",
    "jargon",
    "names",
    "recorded",
    "snli",
]
