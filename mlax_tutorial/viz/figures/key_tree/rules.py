"""What `jax.random` does with keys: draws, and the primitives that derive one key from another.

A rule takes the ledger, an equation, the values of its inputs and its place; it notes what becomes of the keys, and returns
the values of the outputs.
"""

import math

import numpy as np

from mlax_tutorial.viz.figures.key_tree.ledger import Value, holds_keys, loops_of


def draw(ledger, equation, values, place, sampler):
    """Everything that a function such as ``normal`` does with the key that it gets is one draw."""
    keys = [value.keys for value in values if value.keys is not None]
    for each in keys:
        aval = equation.outvars[0].aval
        short = "" if holds_keys(aval) else " " + _type(aval, each.shape)
        ledger.use("draw", sampler + short, each, place)
    loops = loops_of(values).union(*(ledger.keys[key].loops for each in keys for key in each.ravel()))
    outputs = []
    for variable in equation.outvars:
        hidden = None
        if holds_keys(variable.aval):
            count = math.prod(variable.aval.shape)
            hidden = np.array([ledger.new("", loops, True) for _ in range(count)], np.int64)
            hidden = hidden.reshape(variable.aval.shape)
        outputs.append(Value(ledger.unique(), hidden, loops=loops))
    return outputs


def _type(aval, batch) -> str:
    shape = aval.shape[len(batch) :] if aval.shape[: len(batch)] == batch else aval.shape
    aval = aval.update(shape=shape, weak_type=False, sharding=None) if batch else aval.update(weak_type=False)
    return aval.str_short(short_dtypes=True)


def _bits(ledger, equation, values, place):
    return draw(ledger, equation, values, place, "bits")


def _split(ledger, equation, values, place):
    (value,) = values
    shape = tuple(equation.params["shape"])
    keys = value.keys
    indices = list(np.ndindex(*shape))
    labels = [f"split{str(list(index)).replace(' ', '')}" for index in indices]
    children = np.empty((*keys.shape, len(indices)), np.int64)
    for position in np.ndindex(*keys.shape):
        parent = ledger.keys[keys[position]]
        children[position] = [ledger.new(label, parent.loops, parent.hidden) for label in labels]
    text = f"split into {math.prod(shape)}" if shape else "split"
    ledger.use("split", text, keys, place, children, labels)
    return [Value(ledger.unique(), children.reshape(keys.shape + shape), loops=value.loops)]


def _fold(ledger, equation, values, place):
    value, data = values
    shape = equation.outvars[0].aval.shape
    keys = np.broadcast_to(value.keys.reshape(value.keys.shape or ()), shape)
    known = data.known()
    numbers = np.broadcast_to(known, shape) if known is not None else None
    children = np.empty((*shape, 1), np.int64)
    labels = []
    for position in np.ndindex(*shape):
        parent = int(keys[position])
        number = int(numbers[position]) if numbers is not None else None
        which = (
            (parent, number) if number is not None else (parent, data.token, position if data.token else 0)
        )
        if which not in ledger.folded:
            text = f"fold_in({number if number is not None else data.name or '…'})"
            loops = ledger.keys[parent].loops | data.loops
            ledger.folded[which] = ledger.new(text, loops, ledger.keys[parent].hidden)
        children[position] = ledger.folded[which]
        labels.append(ledger.keys[ledger.folded[which]].text)
    ledger.use("fold", "fold_in", keys, place, children, labels[:1])
    return [Value(ledger.unique(), children[..., 0], loops=value.loops | data.loops)]


def _seed(ledger, equation, values, place):
    (value,) = values
    known, shape = value.known(), equation.outvars[0].aval.shape
    implementation = str(equation.params.get("impl", ""))
    if known is None:
        which = (implementation, value.token)
        if which not in ledger.seeds:
            ledger.seeds[which] = ledger.root(shape, f"key({value.name or '…'})", value.loops)
        return [Value(ledger.unique(), ledger.seeds[which], loops=value.loops)]
    keys = np.empty(shape, np.int64)
    for position, number in zip(np.ndindex(*shape), np.broadcast_to(known, shape).ravel(), strict=True):
        which = (implementation, int(number))
        if which not in ledger.seeds:
            ledger.seeds[which] = int(ledger.root((), f"key({int(number)})"))
        keys[position] = ledger.seeds[which]
    return [Value(ledger.unique(), keys)]


def _clone(ledger, equation, values, place):
    (value,) = values
    children = ledger.one_each(value.keys, "clone")
    ledger.use("clone", "clone", value.keys, place, children, ["clone"])
    return [Value(ledger.unique(), children[..., 0], loops=value.loops)]


def _unwrap(ledger, equation, values, place):
    """Keys in the old style, as words: each of the words keeps the key's number."""
    (value,) = values
    words = equation.outvars[0].aval.shape[value.keys.ndim]
    raw = np.repeat(value.keys[..., None], words, axis=-1)
    return [Value(ledger.unique(), raw, raw=True, loops=value.loops)]


def _wrap(ledger, equation, values, place):
    (value,) = values
    aval = equation.outvars[0].aval
    if value.keys is not None and value.raw and (value.keys == value.keys[..., :1]).all():
        return [Value(ledger.unique(), value.keys[..., 0].reshape(aval.shape), loops=value.loops)]
    which = ("raw", value.token)
    if which not in ledger.seeds:
        ledger.seeds[which] = ledger.root(aval.shape, value.name or "key in the old style", value.loops)
    return [Value(ledger.unique(), ledger.seeds[which], loops=value.loops)]


RULES = {
    "random_bits": _bits,
    "random_clone": _clone,
    "random_fold_in": _fold,
    "random_seed": _seed,
    "random_split": _split,
    "random_unwrap": _unwrap,
    "random_wrap": _wrap,
}
