"""What layers inside a model gave, and what they noted: :func:`capture` and :func:`notes`."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.layer import Layer, check_layer
from mlax_tutorial.nn.rules import names


@functools.partial(jax.tree_util.register_dataclass, data_fields=["tree", "found"], meta_fields=["wanted"])
@dataclass
class Captured:
    """Non-trainables on their way through a model that is looked into, and what was found by now, by path and name.

    What is ``wanted``: ``""`` for the outputs of all layers; or, besides what a ``forward`` notes, the names of what layers compute only
    to show it.
    """

    tree: Any
    found: dict[tuple[str, str], Any]
    wanted: str | tuple[str, ...]


def apply(
    layer: Layer, place: str, method: str, x, trainables, non_trainables, *cache, **options
) -> tuple[Any, Any]:
    """Call a child; where a model is looked into, collect what it and the layers in it show."""
    call = getattr(layer, method)
    if isinstance(options.get("inference_mode"), np.bool_):  # a layer of one's own may ask `is True`
        options["inference_mode"] = bool(options["inference_mode"])
    if not isinstance(non_trainables, Captured):
        return layer.check_pair(method, call(x, trainables, non_trainables, *cache, **options))
    given, wanted = non_trainables.tree, non_trainables.wanted
    inner = Captured(given, {}, wanted) if layer.holds_layers else given
    y, updated = layer.check_pair(method, call(x, trainables, inner, **options))
    if not isinstance(updated, Captured):
        shown = layer.observe(x, trainables, given, **options) if wanted and method == "fwd" else {}
        shown = {("", name): value for name, value in shown.items() if name in wanted}
        updated = Captured(updated, shown, wanted)
    found = {(place + path, name): value for (path, name), value in updated.found.items()}
    return y, Captured(updated.tree, {(place, ""): y, **found} if wanted == "" else found, wanted)


def capture(model: Layer, name: str = "") -> Callable:
    """``model.fwd``, which also returns what each layer inside gave: ``(y, non_trainables), captured``; pure.

    ``captured`` is a dict by the path of the layer, as errors show it. The layers of a :class:`Stack` stand there together,
    with the depth as a leading axis; a layer that is called again, as ``"…#2"``. Outputs of what is called inside a
    transformation of one's own are left out.

    Args:
      model: any layer; or a further entry of one, ``model.encode``.
      name: of what to return in place of the outputs: what layers noted under this name, by ``call.note(name, value)``, and
        ``"weights"`` for those of :class:`MultiHeadAttention`.

    Raises:
      ValueError: if ``model`` is no layer; when it is called, if no layer noted anything under this name.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, x = nn.Series(nn.Linear(4), nn.Residual(nn.MultiHeadAttention(2))), jnp.ones((3, 6))
      >>> trainables, non_trainables = model.init(jax.random.key(0), x)
      >>> (y, non_trainables), captured = nn.capture(model)(x, trainables, non_trainables, inference_mode=True)
      >>> jax.tree.map(jnp.shape, captured)
      {'[0]': (3, 4), '[1]': (3, 4), '[1].layer': (3, 4)}
    """
    wanted = (name,) if name else ""
    look = _looking("capture", model, wanted)

    def fwd(x, trainables, non_trainables, **options):
        result, found = look(x, trainables, non_trainables, **options)
        _check_found("capture", wanted, found)
        return result, {path: value for path, value in found.get(name, {}).items() if path or name}

    return fwd


def notes(model: Layer, observe: str | tuple[str, ...] = ()) -> Callable:
    """``model.fwd``, which also returns all that layers noted: ``(y, non_trainables), noted``; pure.

    ``noted`` is a dict by name, of dicts by the path of the layer: ``noted["balance"]["[3].router"]`` is what the ``forward`` of
    the layer ``[3].router`` gave to ``call.note("balance", value)``. A loss adds such values up:
    ``sum(noted["balance"].values())``. What is noted in each of the layers of a ``Stack`` has the depth as a leading axis.

    Args:
      model: any layer; or a further entry of one, ``model.encode``.
      observe: names of what layers compute only for who asks, as for :func:`capture`: ``"weights"``, those of
        :class:`MultiHeadAttention`. They stand beside what is noted.

    Raises:
      ValueError: if ``model`` is no layer, or ``observe`` no name or several; when it is called, if no layer shows what it names.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> class Sparse(nn.Composite):
      ...     layer: nn.Layer
      ...     def forward(self, call, x):
      ...         y = jax.nn.relu(call.layer(x))
      ...         call.note("penalty", jnp.mean(y))
      ...         return y
      >>> model, x = nn.Series(nn.Flatten(1), Sparse(nn.Linear(3))), jnp.ones(2)
      >>> (y, _), noted = nn.notes(model)(x, *model.init(jax.random.key(0), x))
      >>> jax.tree.map(jnp.shape, noted)
      {'penalty': {'[1]': ()}}
    """
    wanted = observed("notes: observe", observe)
    look = _looking("notes", model, wanted)

    def fwd(x, trainables, non_trainables, **options):
        result, found = look(x, trainables, non_trainables, **options)
        _check_found("notes", wanted, found)
        return result, found

    return fwd


def observed(what: str, value: Any) -> tuple[str, ...]:
    """The names that ``observe`` of :func:`notes` gives, one or several or none; what else it is, is refused in the name of ``what``."""
    return () if isinstance(value, (tuple, list)) and not value else checked(what, _NAMES, value)


_NAMES = names("must be names of what layers show, such as 'weights'")


def _check_found(asker, wanted, found):
    if missing := [name for name in wanted if name not in found]:
        noted = sorted(found) or "nothing"
        raise ValueError(f"{asker}: no layer notes {missing[0]!r}; what is noted is {noted}.")


def _looking(name, model, wanted):
    """A function of what ``fwd`` takes, which returns ``(y, non_trainables)`` and what was found, by name and path."""
    layer, method = getattr(model, "__self__", model), getattr(model, "__name__", "fwd")
    check_layer(name, layer)

    def look(x, trainables, non_trainables, **options):
        y, updated = apply(layer, "", method, x, trainables, Captured(non_trainables, {}, wanted), **options)
        found = {}
        for (path, called), value in updated.found.items():
            found.setdefault(called, {})[path] = value
        return (y, updated.tree), found

    return look
