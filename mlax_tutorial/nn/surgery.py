"""``replace``: a model with other layers in the places of some; ``name_layers``: with names in place of numbers."""

from collections import Counter
from collections.abc import Callable

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.layer import Layer, check_layer
from mlax_tutorial.nn.series import Sequence


def replace(model: Layer, change: Callable[[str, Layer], Layer]) -> Layer:
    """The model with ``change(path, layer)`` in place of each layer, from the inside out.

    Every layer is reached, wherever its container holds it: in fields, in what ``children()`` makes, in a :class:`Stack`, in a
    policy. A container is handed over with its new children; what ``change`` returns is not looked into.

    Args:
      model: any layer.
      change: takes the path of a layer, as errors show it (``""`` for the model itself, ``.blocks[2].attention``), and the
        layer; returns a layer, the same one to leave it.

    Raises:
      ValueError: if ``change`` changes nothing, since a misspelt path would do nothing without a word; or returns no layer.

    Example: low-rank adaptation of each product.
      >>> from mlax_tutorial import nn
      >>> model = nn.Series(nn.Linear(8), nn.Residual(nn.Linear(8)))
      >>> nn.replace(model, lambda path, layer: nn.WeightNorm(layer) if isinstance(layer, nn.Linear) else layer)
      Series(WeightNorm(Linear(8)), Residual(WeightNorm(Linear(8))))
    """
    check_layer("replace", model)
    paths = []
    changed = _replace(model, change, "", paths)
    if changed == model:
        known = ", ".join(map(repr, paths))
        raise ValueError(f"replace: change left all layers as they are; their paths are {known}.")
    return changed


def _replace(layer, change, path, paths):
    inner = layer.with_children(lambda place, child: _replace(child, change, path + place, paths))
    paths.append(path)
    new = change(path, inner)
    if not isinstance(new, Layer):
        got = f"{describe(new)} for model{path}, {inner!r}"
        raise ValueError(f"replace: change must return a layer, got {got}.")
    return new


def name_layers(model: Layer) -> Layer:
    """The model whose ``Series`` and ``Parallel`` have names: each layer's is its class', with a number from the second on.

    Variables are then called ``['linear_2']['kernel']`` in place of ``[3]['kernel']``: a layer of another class, a
    :class:`Dropout`, say, may come or go without renaming the others, in checkpoints, patterns and rules.

    Raises:
      ValueError: if ``model`` is no layer.

    Example:
      >>> from mlax_tutorial import nn
      >>> nn.name_layers(nn.Series(nn.Linear(8), nn.Bias(), nn.Dropout(0.1), nn.Linear(2)))
      Series(linear=Linear(8), bias=Bias(), dropout=Dropout(0.1), linear_2=Linear(2))
    """

    check_layer("name_layers", model)

    def change(path, layer):
        if not isinstance(layer, Sequence) or layer.names:
            return layer
        seen, named = Counter(), {}
        for child in layer.layers:
            name = kind = type(child).__name__.lower()
            while name in named:  # also where a class is called Linear_2
                seen[kind] += 1
                name = f"{kind}_{seen[kind] + 1}"
            named[name] = child
        return type(layer)(**named)

    return _replace(model, change, "", [])
