"""What the trainings on images here share: the data that the command line names, held-out images, and testing both ways round."""

import argparse
from pathlib import Path

import jax.numpy as jnp

from mlax_tutorial import data, nn


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which part of Fashion-MNIST is read, and from where."""
    parser.add_argument("--folder", type=Path, help="where the whole set's four files are, or shall be put")
    parser.add_argument("--embedded", action="store_true", help="for a quick look: the part in the package")


def load(parser: argparse.ArgumentParser, options: argparse.Namespace) -> tuple[data.Images, data.Images]:
    """The training set and the test set that the options name; ends the program where they cannot be had."""
    if options.embedded and options.folder:
        parser.error("--folder is for the whole set, --embedded for the part in the package")
    try:
        return data.fashion_mnist(whole=not options.embedded, folder=options.folder)
    except data.DataError as error:
        parser.exit(1, f"{error}\n")


def hold_out(train_set: data.Images, count: int = 5_000) -> tuple[data.Images, data.Images]:
    """The last training images stand in for the test set: ``count`` of them, or a tenth of a small set."""
    images, labels = train_set
    count = min(count, len(images) // 10)
    return data.Images(images[:-count], labels[:-count]), data.Images(images[-count:], labels[-count:])


def halve(x):
    """The maximum of each window of 2 x 2, as nn.MaxPool((2, 2)) has it. On a CPU its gradient is much faster so."""
    x = jnp.maximum(x[..., ::2, :, :], x[..., 1::2, :, :])
    return jnp.maximum(x[..., ::2, :], x[..., 1::2, :])


class BothWays(nn.Layer):
    """For testing: the mean of the logits of an image and of its mirror image, which are of one class."""

    model: nn.Layer

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        fwd = [
            self.model.fwd(view, trainables, non_trainables, inference_mode=True)
            for view in (x, x[..., ::-1, :])
        ]
        return (fwd[0][0] + fwd[1][0]) / 2, non_trainables
