"""``viz.attention``: who looks at whom, for each layer and head.

`attention` takes weights, or finds them in a function: each softmax over the last axis whose result enters a matrix product.
`Attention` shows them: in a notebook as a heat map for each head and the weights of one query at a time, in a terminal as a
listing. The markup is made in `page`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from mlax_tutorial.viz.figures.attention import page

MOST = 64  # queries or keys, and heads in all, that a figure can hold
MOST_TUNED = 1100  # weights and places of masks that fit into 60 kB of markup, if the page computes with them


class Attention:
    """What `attention` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      layers: for each layer the weights, ``(heads, queries, keys)``, NumPy arrays.
      queries, keys: the names of the tokens.
    """

    def __init__(self, layers: list[np.ndarray], queries: list[str], keys: list[str], masks=None):
        self.layers, self.queries, self.keys, self._masks = layers, queries, keys, masks

    def _repr_html_(self):
        return page.write(self, self._masks)

    def __repr__(self):
        return page.listing(self)


def attention(
    function: Any,
    *args,
    tokens: Sequence | None = None,
    keys: Sequence | None = None,
    tune: Mapping[str, Any] | None = None,
    **kwargs,
) -> Attention:
    """Show who looks at whom: the attention weights of each layer and head, for one input.

    Args:
      function: runs a model, ``lambda x: model.fwd(x, trainables, ())[0]``, say; of this library, of another, or your own. Or the weights
        themselves: an array ``(..., queries, keys)``, or a sequence of them, one for each layer.
      *args, **kwargs: what the function gets: one example, without a batch axis. All axes before the last two of the weights are
        taken for heads.
      tokens: a name for each query, a string or any sequence; by default their numbers. It also names the keys if they are as many.
      keys: names of the keys, where they are others, as in cross attention.
      tune: masks by name, Boolean, ``(queries, keys)`` or ``(keys,)``; True means "may be looked at". The figure gets a slider for the
        temperature, by which the scores are divided before the softmax, and a choice among no mask, these and, if there are as many
        keys as queries, the causal one. ``{}`` adds none. The page itself computes the weights, without a kernel, from those at
        temperature 1: what is 0 there, under a mask of the model's own, stays 0. So each row must sum to 1 or be all 0.

    Returns:
      An `Attention`: as the last expression of a cell it is a figure, with a button for each head and one for the next query. It has
      ``layers``, the weights, too.

    Raises:
      TypeError: if the first argument is neither a function nor weights, or ``tune`` no mapping.
      ValueError: if the function has no attention, keeps no weights (in chunks, in a fused kernel), the names do not fit, or masks
        or weights do not fit ``tune``.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> viz.attention(jnp.array([[1.0, 0.0], [0.25, 0.75]]), tokens="ab")
      1 layer, 1 head, 2 queries, 2 keys
        layer 0 head 0: a -> a 1.00, b -> b 0.75

      With a temperature to set, and a mask under which the first token is padding:

      >>> figure = viz.attention(jnp.full((3, 3), 1 / 3), tokens="abc", tune={"padding": jnp.array([False, True, True])})
    """
    if callable(function):
        layers = [_heads(array) for array in _found(function, args, kwargs)]
        if not layers:
            raise ValueError(
                "viz.attention: no attention was found in the function, that is no softmax over the last axis whose result enters "
                "a matrix product. In chunks or in a fused kernel, the weights are never stored: look at the plain form."
            )
    else:
        layers = [_heads(array) for array in _given(function, args)]
    shapes = {layer.shape[1:] for layer in layers}
    if len(shapes) > 1:
        # An encoder and a decoder, say: those of the last shape are shown. A prompt without a choice would be a riddle.
        listed = ", ".join(f"{q} x {k}" for q, k in sorted(shapes))
        raise ValueError(
            f"viz.attention: the layers differ in queries and keys ({listed}): show one part of the model at a time"
        )
    queries_count, keys_count = layers[0].shape[1:]
    heads = sum(len(layer) for layer in layers)
    if max(queries_count, keys_count, heads) > MOST or min(queries_count, keys_count, heads) < 1:
        got = f"{heads} heads, {queries_count} queries and {keys_count} keys"
        raise ValueError(
            f"viz.attention: shows from 1 to {MOST} heads, queries and keys, got {got}: give one example, without a batch axis"
        )
    names = _names("tokens", tokens, queries_count)
    if keys is None and tokens is not None and queries_count == keys_count:
        keys = names
    masks = None if tune is None else _masks(tune, layers)
    return Attention(layers, names, _names("keys", keys, keys_count), masks)


def _masks(given, layers) -> dict[str, np.ndarray]:
    """The masks to choose from, the weights being such that the page can compute them."""
    if not isinstance(given, Mapping):
        raise TypeError(
            f"viz.attention: tune must be masks by name, such as {{}} or {{'padding': mask}}, got {type(given).__name__}"
        )
    shape = layers[0].shape[1:]
    masks = {"none": np.ones(shape, bool)}
    if shape[0] == shape[1]:
        masks["causal"] = np.tri(shape[0], dtype=bool)
    for name, mask in given.items():
        if name in ("none", "causal"):
            raise ValueError(f"viz.attention: tune has a mask {name!r} anyway; give yours another name")
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape not in (shape, shape[1:]):
            raise ValueError(
                f"viz.attention: tune's mask {name!r} must be Boolean, {shape} or {shape[1:]}, got {mask.dtype}{list(mask.shape)}"
            )
        masks[str(name)] = np.broadcast_to(mask, shape)
    for layer in layers:
        sums = layer.sum(axis=-1)
        if not (layer >= 0).all() or not ((np.abs(sums - 1) < 2e-2) | (sums == 0)).all():
            raise ValueError(
                "viz.attention: tune needs weights of a softmax, whose rows sum to 1 or are all 0; these are not"
            )
    count = sum(layer.size for layer in layers) + shape[0] * shape[1] * len(given)
    if count > MOST_TUNED:
        raise ValueError(
            f"viz.attention: tune can hold {MOST_TUNED:,} numbers, weights and masks together, got {count:,}: "
            "show fewer tokens, heads or masks"
        )
    return masks


def _given(weights, args) -> list:
    """Weights that were given: one array, or one for each layer."""
    if args:
        raise TypeError("viz.attention: weights come alone; what follows is for a function")
    if hasattr(weights, "values") and not hasattr(weights, "shape"):
        weights = list(weights.values())
    if isinstance(weights, (list, tuple)) and weights and all(np.ndim(layer) >= 2 for layer in weights):
        return list(weights)
    return [weights]


def _heads(array) -> np.ndarray:
    try:
        array = np.asarray(array, np.float32)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.ndim < 2:
        raise TypeError(
            "viz.attention: wants a function, or weights of shape (..., queries, keys), one array or one for each layer"
        )
    return array.reshape(int(np.prod(array.shape[:-2])), *array.shape[-2:])


def _names(role, names, count) -> list[str]:
    if names is None:
        return [str(i) for i in range(count)]
    names = [str(name) for name in (names.tolist() if hasattr(names, "tolist") else names)]
    if len(names) != count:
        raise ValueError(f"viz.attention: {role} must name {count}, got {len(names)} names")
    return names


# Weights are found in the jaxpr of the function, which is evaluated once more, with a note beside each value that is on the way from
# a softmax to a product. What is called is looked into, and so are the bodies of scans (a Stack), which give theirs with a leading
# axis; cond, while and kernels are not.


def _found(function: Callable, args, kwargs) -> list[np.ndarray]:
    closed = jax.make_jaxpr(lambda: function(*args, **kwargs))()
    depths = []

    def run():
        search = _Search()
        search.evaluate(closed.jaxpr, closed.consts, ())
        depths.extend(depth for depth, _ in search.found)
        return [weights for _, weights in search.found]

    layers = []
    for weights, depth in zip(jax.jit(run)(), depths):
        layers += list(weights.reshape(-1, *weights.shape[depth:])) if depth else [weights]
    return layers


# What may stand between a softmax and the product: a mask, dropout, another dtype, axes of size 1, heads in groups.
_PASSING = {
    "select_n", "convert_element_type", "mul", "div", "squeeze", "reshape", "broadcast_in_dim", "expand_dims", "transpose",
    "stop_gradient", "copy", "optimization_barrier", "name", "reduce_precision", "sharding_constraint",
}  # fmt: skip
_CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters that hold what an equation calls
_NOT_CALLED = {"scan", "while", "cond", "pallas_call", "custom_partitioning", "shard_map"}


class _Search:
    """Evaluates a jaxpr, and notes attention weights.

    Attributes:
      found: pairs of how many axes scans have put in front of the weights, and the weights.
    """

    def __init__(self):
        self.found, self._waiting = [], {}  # waiting: a softmax that has not met a product yet, by its number

    def evaluate(self, jaxpr, consts, args, notes=()):
        """The outputs, and a note on each: ``("exp" | "sum" | "weights", number)``, or None."""
        values, known = dict(zip(jaxpr.constvars, consts)), {}
        values.update(zip(jaxpr.invars, args))
        known.update(zip(jaxpr.invars, notes))

        def read(var):
            return var.val if hasattr(var, "val") else values[var]

        def note(var):
            return None if hasattr(var, "val") else known.get(var)

        for eqn in jaxpr.eqns:
            inputs, given = [read(var) for var in eqn.invars], [note(var) for var in eqn.invars]
            called = next((eqn.params[name] for name in _CALLED if name in eqn.params), None)
            if eqn.primitive.name == "scan":
                outputs, notes = self._scan(eqn, inputs), []
            elif called is not None and eqn.primitive.name not in _NOT_CALLED:
                inner, consts = getattr(called, "jaxpr", called), getattr(called, "consts", ())
                outputs, notes = self.evaluate(inner, consts, inputs, given)
            else:
                params = eqn.primitive.get_bind_params(eqn.params)
                functions, params = params if isinstance(params, tuple) else ((), params)  # before jax 0.12
                with eqn.ctx.manager:
                    outputs = eqn.primitive.bind(*functions, *inputs, **params)
                outputs = outputs if eqn.primitive.multiple_results else [outputs]
                notes = [self._note(eqn, given, outputs)]
            values.update(zip(eqn.outvars, outputs))
            known.update(zip(eqn.outvars, notes))
        return [read(var) for var in jaxpr.outvars], [note(var) for var in jaxpr.outvars]

    def _note(self, eqn, given, outputs):
        name, first = eqn.primitive.name, given[0] if given else None
        if name == "exp":
            return "exp", object()
        if name == "reduce_sum" and first and first[0] == "exp":
            along_last = tuple(eqn.params["axes"]) == (eqn.invars[0].aval.ndim - 1,)
            return ("sum", first[1]) if along_last else None
        if name == "div" and first and first[0] == "exp" and given[1] == ("sum", first[1]):
            self._waiting[first[1]] = outputs[0]
            return "weights", first[1]
        if name == "dot_general":
            for which in given:
                if which and which[0] == "weights" and which[1] in self._waiting:
                    self.found.append((0, self._waiting.pop(which[1])))
        elif name in _PASSING:
            for var, which in zip(eqn.invars, given):
                if which and (which[0] == "sum" or var.aval.size == outputs[0].size):
                    same = var.aval.shape[-2:] == outputs[0].shape[-2:]  # still queries and keys
                    if which[0] == "weights" and which[1] in self._waiting and same:
                        self._waiting[which[1]] = outputs[0]
                    return which
        return None

    def _scan(self, eqn, inputs):
        closed, depths = eqn.params["jaxpr"], []
        # What is scanned has one more axis outside of the body. (The parameters that count it have other names in jax 0.12.)
        scanned = [out.aval.ndim - aval.ndim for out, aval in zip(eqn.invars, closed.in_avals)]
        carry = sum(out.aval.ndim == aval.ndim for out, aval in zip(eqn.outvars, closed.out_avals))
        consts = len(scanned) - sum(scanned) - carry
        fixed, first, every = inputs[:consts], inputs[consts : consts + carry], inputs[consts + carry :]

        def body(state, each):
            search = _Search()
            outputs, _ = search.evaluate(closed.jaxpr, closed.consts, [*fixed, *state, *each])
            depths[:] = [depth + 1 for depth, _ in search.found]
            return outputs[:carry], (outputs[carry:], [weights for _, weights in search.found])

        options = {"length": eqn.params["length"], "reverse": eqn.params["reverse"]}
        last, (ys, found) = jax.lax.scan(body, list(first), list(every), **options)
        self.found += zip(depths, found)
        return [*last, *ys]
