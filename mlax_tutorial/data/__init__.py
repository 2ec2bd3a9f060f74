"""Small real data sets: a part of each comes with the package and works offline, the whole from a folder or the network."""

from mlax_tutorial.data.download import DataError
from mlax_tutorial.data.fashion import FASHION_MNIST_CLASSES, Images, fashion_mnist

__all__ = ["FASHION_MNIST_CLASSES", "DataError", "Images", "fashion_mnist"]
