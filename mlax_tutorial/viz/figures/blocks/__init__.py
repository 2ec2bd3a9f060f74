"""``viz.blocks``: what a trained residual network still knows without some of its blocks.

`blocks` evaluates every combination of blocks at once; `Blocks` shows it: in a notebook as a network whose blocks can be switched
off, in a terminal as a listing. The markup is made in `page`.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.viz.figures.blocks import page

MOST = 8  # blocks: 256 combinations
AT_ONCE = 128  # images, in as many copies as there are combinations


class Blocks:
    """What `blocks` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      names: where each block stands in the model, ``"[3]"``, say.
      shapes: what goes into each block and what comes out, a pair of shapes without the batch axis.
      right: how many examples of each class are right, an array of shape ``(2**blocks, classes)``. In row ``m`` block ``i`` is dropped
        if bit ``i`` of ``m`` is set.
      sizes: how many examples of each class there are.
      classes: their names.
    """

    def __init__(self, names, shapes, right, sizes, classes):
        self.names, self.shapes, self.right = names, shapes, right
        self.sizes, self.classes = sizes, classes

    def accuracy(self, *dropped: int) -> float:
        """The accuracy without the blocks of these numbers, counted from 0."""
        row = sum(1 << number for number in set(dropped))
        return float(self.right[row].sum() / self.sizes.sum())

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def blocks(
    model: nn.Series,
    trainables: Any,
    non_trainables: Any,
    images: jax.Array,
    labels: jax.Array,
    *,
    classes: Sequence[str] | None = None,
) -> Blocks:
    """Show how often a trained residual network is right when some of its blocks are dropped, in inference.

    A dropped block passes on what its shortcut makes of the input. Blocks are the ``Residual`` layers of the ``Series``, and layers
    of your own, each a ``Composite``, that return what they are given in another form of the same shape.

    Args:
      model: a ``Series``, of layers and of further ``Series``, with one to eight blocks. Its output is logits.
      trainables, non_trainables: its variables.
      images: a batch of inputs; a thousand are plenty.
      labels: class numbers, ``(n,)``.
      classes: a name for each class, by default its number.

    Returns:
      A `Blocks`: as the last expression of a cell it is a figure with a switch for each block.

    Raises:
      ValueError: if the model is no ``Series`` with one to eight blocks, or the arguments do not fit each other.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, viz
      >>> model = nn.Series(nn.Residual(nn.F(lambda x: 3 * x)), nn.Residual(nn.F(lambda x: -2 * x)))
      >>> viz.blocks(model, (), (), jnp.array([[1.0, 0.0], [2.0, 5.0]]), jnp.array([1, 0]))
      2 blocks, 2 examples, 100.0 % right
        without [0]  100.0 %
        without [1]    0.0 %
    """
    if not isinstance(model, nn.Series):
        raise ValueError(f"viz.blocks: the model must be an nn.Series, got {type(model).__name__}")
    images, labels = jnp.asarray(images), np.asarray(labels)
    if labels.shape != (len(images),) or not len(labels):
        wanted = f"one label for each of {len(images)} images, and at least one"
        raise ValueError(f"viz.blocks: there must be {wanted}, got labels of shape {labels.shape}")
    layers = [*_flat(model, trainables, non_trainables, "")]
    inputs = [*_inputs(layers, images)]
    places = [i for i, each in enumerate(layers) if _is_block(each[1], *inputs[i])]
    if not 1 <= len(places) <= MOST:
        found = f"{len(places)}: {', '.join(layers[i][0] for i in places)}" if places else "none"
        raise ValueError(
            f"viz.blocks: the model must have 1 to {MOST} residual blocks in its Series, found {found}"
        )
    count = int(labels.max()) + 1 if classes is None else len(classes)
    if labels.min() < 0 or labels.max() >= count or inputs[-1][1].shape[-1] < count:
        logits = inputs[-1][1].shape[-1]
        raise ValueError(
            f"viz.blocks: labels must be from 0 to {count - 1}, for {logits} logits, got {labels.min()} to {labels.max()}"
        )
    right = np.zeros((2 ** len(places), count), int)
    variables = [(given, averages) for _, _, given, averages in layers]
    program = jax.jit(functools.partial(_predictions, [each[1] for each in layers], frozenset(places)))
    for start in range(0, len(labels), AT_ONCE):
        some = labels[start : start + AT_ONCE]
        hits = np.asarray(program(variables, images[start : start + AT_ONCE])) == some
        for number in range(count):
            right[:, number] += hits[:, some == number].sum(axis=1)
    shapes = [tuple(each.shape[1:] for each in inputs[i]) for i in places]
    named = [str(name) for name in (classes or range(count))]
    sizes = np.bincount(labels, minlength=count)
    return Blocks([layers[i][0] for i in places], shapes, right, sizes, named)


def _flat(model, trainables, non_trainables, path):
    """The layers of a Series and of those in it, in order: path, layer, variables."""
    for number, layer in enumerate(model.layers):
        key = model.names[number] if model.names else number
        given, averages = (tree[key] if tree != () else () for tree in (trainables, non_trainables))
        if type(layer) is nn.Series:
            yield from _flat(layer, given, averages, f"{path}[{key!r}]")
        else:
            yield f"{path}[{key!r}]", layer, given, averages


def _inputs(layers, images):
    """What goes into each layer and what comes out, as shapes."""
    x = jax.eval_shape(lambda x: x, images)
    for _, layer, given, averages in layers:
        y = jax.eval_shape(lambda x: layer.fwd(x, given, averages, inference_mode=True)[0], x)  # noqa: B023
        yield x, y
        x = y


def _is_block(layer, x, y):
    alike = getattr(x, "shape", 0) == getattr(y, "shape", 1) and getattr(x, "dtype", 0) == getattr(
        y, "dtype", 1
    )
    return isinstance(layer, nn.Residual) or (
        isinstance(layer, nn.Composite) and not isinstance(layer, (nn.Series, nn.Parallel)) and alike
    )


def _predictions(layers, places, variables, images):
    """The class that each combination predicts, ``(2**blocks, n)``. They share all that they have in common: at each block their
    number doubles, so the last blocks cost most, which are the cheapest in most networks.
    """
    x, copies = images, 1  # of the images, one after the other

    def fwd(layer, x, given, averages):
        return layer.fwd(x, given, averages, inference_mode=True)[0]

    for number, (layer, (given, averages)) in enumerate(zip(layers, variables)):
        y = fwd(layer, x, given, averages)
        if number in places:
            dropped = x
            if isinstance(layer, nn.Residual) and layer.shortcut is not None:
                parts = [tree["shortcut"] if tree != () else () for tree in (given, averages)]
                dropped = fwd(layer.shortcut, x, *parts)
            y, copies = jnp.concatenate([y, dropped]), 2 * copies
        x = y
    return jnp.argmax(x, axis=-1).reshape(copies, len(images))
