"""Keys in loops and branches: what is carried, scanned over, collected, and chosen.

Rules as in `rules`, which also take ``run``, to follow keys through an inner program. A loop's body is read once.
"""

import dataclasses
import math

import numpy as np

from mlax_tutorial.viz.figures.key_tree.ledger import Value, holds_keys, loops_of


def _passed(ledger, value, text, place, loops, name=""):
    """A loop's or a branch's own names for keys that come from elsewhere."""
    if value.keys is None:
        return Value(ledger.unique(), loops=loops, name=name)
    children = ledger.one_each(value.keys, text, lambda outer: outer | loops)
    ledger.use("pass", text, value.keys, place, children, [text])
    return Value(ledger.unique(), children[..., 0], value.raw, value.loops | loops, name=name)


def _rows(ledger, value, place, loops):
    """The keys that a loop scans over: in the body one stands for each round's."""
    if value.keys is None:
        return Value(ledger.unique(), loops=loops, name="i")
    keys = value.keys  # (length, ...)
    rows = np.array([0] * math.prod(keys.shape[1:]), np.int64).reshape(keys.shape[1:])
    for position in np.ndindex(*keys.shape[1:]):
        column = keys[(slice(None), *position)]
        outer = frozenset().union(*(ledger.keys[key].loops for key in column))
        hidden = all(ledger.keys[key].hidden for key in column)
        rows[position] = ledger.new("each", outer | loops, hidden)
        children = np.full((len(column), 1), rows[position])
        ledger.use("pass", "one a round", column, place, children, ["each"])
    return Value(ledger.unique(), rows, value.raw, value.loops | loops)


def _scan(ledger, equation, values, place, run):
    body = equation.params["jaxpr"]
    bare = getattr(body, "jaxpr", body)
    length = equation.params["length"]
    stacked = [
        len(v.aval.shape) > len(inner.aval.shape)
        for v, inner in zip(equation.invars, bare.invars, strict=True)
    ]
    carried = sum(
        len(v.aval.shape) == len(inner.aval.shape)
        for v, inner in zip(equation.outvars, bare.outvars, strict=True)
    )
    first = sum(not each for each in stacked) - carried
    outputs, loop = _loop(ledger, run, body, values, place, length, first, carried, stacked)
    results = outputs[:carried]
    for variable, value in zip(equation.outvars[carried:], outputs[carried:], strict=True):
        results.append(_stacked(ledger, variable.aval, value, place, loop))
    return results


def _while(ledger, equation, values, place, run):
    params = equation.params
    for_condition, for_body = params["cond_nconsts"], params["body_nconsts"]
    carried = len(values) - for_condition - for_body
    seen = values[:for_condition]  # by the condition alone

    def condition(carry, inside):
        run(ledger, params["cond_jaxpr"], [*seen, *carry], inside)

    given = values[for_condition:]
    outputs, _ = _loop(
        ledger,
        run,
        params["body_jaxpr"],
        given,
        place,
        length=None,
        first=for_body,
        carried=carried,
        stacked=[False] * len(given),
        condition=condition,
    )
    return outputs


def _loop(ledger, run, body, values, place, length, first, carried, stacked, condition=None):
    """A loop's body, read once: constants first, then what is carried, then what is scanned over.

    A ``condition`` is a function of the carry and of the place inside the loop.
    """
    bare = getattr(body, "jaxpr", body)
    loop = next(ledger.counter)
    ledger.lengths[loop] = length
    inside = dataclasses.replace(place, loops=(*place.loops, loop))
    varies = frozenset([loop])
    inputs, changed = [], {}
    for index, value in enumerate(values):
        if stacked[index]:
            inputs.append(_rows(ledger, value, place, varies))
        elif index < first or bare.outvars[index - first] is bare.invars[index]:
            inputs.append(value)  # the same in each round
        else:
            inputs.append(_passed(ledger, value, "carried", place, varies, "i"))
            changed[index - first] = inputs[-1]
    if condition is not None:
        condition(inputs[first:], inside)
    results = []
    for index, value in enumerate(run(ledger, body, inputs, inside)):
        if index >= carried:
            results.append(value)
        elif index not in changed:
            results.append(values[first + index])
        elif value.keys is None:
            results.append(Value(ledger.unique(), loops=values[first + index].loops | value.loops - varies))
        else:
            results.append(_after(ledger, value, changed[index], inside, loop))
    return results, loop


def _after(ledger, value, carry, place, loop):
    """The last of the carried keys, after the loop. Until then each goes into the next round."""
    if carry.keys is not None and carry.keys.shape == value.keys.shape:
        following = dataclasses.replace(place, branches=(*place.branches, (("loop", loop), 0)))
        ledger.use("pass", "next round", value.keys, following, carry.keys[..., None], ["next round"])
    ending = dataclasses.replace(place, branches=(*place.branches, (("loop", loop), 1)))
    loops = frozenset([loop])
    children = ledger.one_each(value.keys, "after the loop", lambda inner: inner - loops)
    ledger.use("pass", "after the loop", value.keys, ending, children, ["after the loop"])
    return Value(ledger.unique(), children[..., 0], value.raw, value.loops - loops)


def _stacked(ledger, aval, value, place, loop):
    """What a scan collects: a row for each round."""
    loops = value.loops - {loop}
    if value.keys is None:
        return Value(ledger.unique(), loops=loops)
    length = aval.shape[0]
    keys = value.keys
    children = np.empty((*keys.shape, length), np.int64)
    for position in np.ndindex(*keys.shape):
        parent = ledger.keys[keys[position]]
        for row in range(length):
            children[(*position, row)] = ledger.new(f"round {row}", parent.loops - {loop}, parent.hidden)
    ledger.use("pass", "collected", keys, place, children, [f"round {row}" for row in range(length)])
    return Value(ledger.unique(), np.moveaxis(children, -1, 0), value.raw, loops)


def _cond(ledger, equation, values, place, run):
    which = next(ledger.counter)
    results = []
    for number, branch in enumerate(equation.params["branches"]):
        inside = dataclasses.replace(place, branches=(*place.branches, (which, number)))
        results.append((run(ledger, branch, values[1:], inside), inside))
    outputs = []
    for index, variable in enumerate(equation.outvars):
        loops = loops_of([outs[index] for outs, _ in results]) | values[0].loops
        keys = None
        if holds_keys(variable.aval):
            shape = variable.aval.shape
            keys = np.array([ledger.new("from a branch", loops) for _ in range(math.prod(shape))], np.int64)
            keys = keys.reshape(shape)
            for outs, inside in results:
                given = outs[index].keys
                ledger.use("pass", "from a branch", given, inside, keys[..., None], ["from a branch"])
        outputs.append(Value(ledger.unique(), keys, loops=loops))
    return outputs


RULES = {"scan": _scan, "while": _while, "cond": _cond}
