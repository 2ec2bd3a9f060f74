"""Reading a jaxpr for its keys: a ledger of all keys and of what is done with each, in the order of the program.

`read` follows keys through the equations, into ``split`` and ``fold_in``, through slices and reshapes, into jitted
functions, branches and loops. A loop's body is read once.
"""

import dataclasses
import functools
import inspect
import itertools
import linecache
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mlax_tutorial.jaxprs import subjaxprs


def read(function, args, kwargs):
    """The ledger of a function's keys."""
    with jax.debug_key_reuse(False):  # to look at a mistake it has to be let through
        jaxpr = jax.make_jaxpr(function)(*args, **kwargs)
    ledger = Ledger()
    names = _argument_names(function, args, kwargs)
    inputs = [
        ledger.given(variable.aval, name) for variable, name in zip(jaxpr.jaxpr.invars, names, strict=True)
    ]
    for value in _run(ledger, jaxpr, inputs, _Place()):
        if value.keys is not None:
            ledger.returned.update(int(key) for key in value.keys.ravel())
    return ledger


def _argument_names(function, args, kwargs):
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        names = list(bound.arguments)[: len(args)] if len(bound.args) == len(args) else []
    except (TypeError, ValueError):
        names = []
    positional = len(names) == len(args)
    leaves = []
    for index, argument in enumerate(args):
        name = names[index] if positional else ("key" if len(args) == 1 else f"argument {index}")
        leaves += [
            name + jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(argument)
        ]
    for name, argument in sorted(kwargs.items()):  # a dict's leaves are in the order of its keys
        leaves += [
            name + jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(argument)
        ]
    return leaves


# What is known of a program: values, places, keys, uses


@dataclasses.dataclass(frozen=True, eq=False)
class _Value:
    """What a variable holds: the numbers of its keys, if it holds keys, and what is known of it besides.

    ``token`` is equal where two values are known to be equal. ``loops`` are those in which it differs from round to
    round. ``known`` computes it, if it hangs on nothing that is given.
    """

    token: Any
    keys: np.ndarray | None = None
    raw: bool = False  # the keys are in the old style, with an axis of words at the end
    loops: frozenset = frozenset()
    known: Callable[[], np.ndarray | None] = lambda: None
    name: str = ""


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where an equation stands: the loops around it, the branches taken, the reader's line that called for it."""

    loops: tuple[int, ...] = ()
    branches: tuple[tuple[Any, int], ...] = ()
    again: bool = False  # computed a second time, for a backward pass
    source: str = ""


@dataclasses.dataclass(eq=False)
class _Key:
    text: str
    loops: frozenset = frozenset()
    hidden: bool = False  # a random function's own business
    uses: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(eq=False)
class _Use:
    """One equation that does something with keys.

    ``kind`` is ``draw``, ``split``, ``fold``, or ``pass``: into a loop, out of it, out of a branch. What is passed is
    used only if it is used where it arrives.
    """

    number: int
    kind: str
    text: str
    keys: np.ndarray
    place: _Place
    children: np.ndarray | None = None  # for each key: (keys.shape, ...)
    labels: list | None = None


class Ledger:
    """All keys and all uses, in the order of the program."""

    def __init__(self):
        self.keys: list[_Key] = []
        self.uses: list[_Use] = []
        self.roots: list[list[int]] = []
        self.lengths: dict[int, int | None] = {}  # of loops
        self.returned: set[int] = set()
        self.folded: dict[Any, int] = {}
        self.seeds: dict[Any, int] = {}
        self.tokens: dict[Any, int] = {}
        self.counter = itertools.count()

    def new(self, text, loops=frozenset(), hidden=False) -> int:
        self.keys.append(_Key(text, loops, hidden))
        return len(self.keys) - 1

    def root(self, shape, text, loops=frozenset()) -> np.ndarray:
        places = list(np.ndindex(*shape))
        numbers = [
            self.new(text + (str(list(place)).replace(" ", "")) * bool(shape), loops) for place in places
        ]
        self.roots.append(numbers)
        return np.array(numbers, np.int64).reshape(shape)

    def token(self, *parts) -> int:
        return self.tokens.setdefault(parts, len(self.tokens))

    def unique(self) -> int:
        return self.token("unique", next(self.counter))

    def given(self, aval, name) -> _Value:
        """A value that comes from outside."""
        if _holds_keys(aval):
            return _Value(self.unique(), self.root(aval.shape, name), name=name)
        return _Value(self.unique(), name=name)

    def opaque(self, aval, loops=frozenset(), name="") -> _Value:
        """A value of which nothing is known; keys in it are new ones."""
        keys = self.root(aval.shape, "unknown key", loops) if _holds_keys(aval) else None
        return _Value(self.unique(), keys, loops=loops, name=name)

    def use(self, kind, text, keys, place, children=None, labels=None) -> None:
        keys = np.asarray(keys)
        if all(self.keys[key].hidden for key in keys.ravel()):
            return
        use = _Use(len(self.uses) + 1, kind, text, keys, place, children, labels)
        self.uses.append(use)
        for key in dict.fromkeys(keys.ravel().tolist()):
            self.keys[key].uses.append(use)


def _holds_keys(aval) -> bool:
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


# Reading a jaxpr


def _run(ledger, jaxpr, inputs, place) -> list[_Value]:
    """Follows keys through a jaxpr, open or closed; returns what it returns."""
    bare, consts = getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ())
    environment = {}
    for variable, const in zip(bare.constvars, consts, strict=False):
        environment[variable] = _constant(ledger, variable.aval, const)
    for variable in bare.constvars:
        environment.setdefault(variable, None)
        if environment[variable] is None:
            environment[variable] = ledger.given(variable.aval, "a key from outside")
    environment.update(zip(bare.invars, inputs, strict=True))

    def read(atom):
        if not hasattr(atom, "val"):
            return environment[atom]
        value = np.asarray(atom.val)
        return _Value(
            ledger.token("literal", value.dtype.str, value.shape, value.tobytes()), known=lambda: value
        )

    for equation in bare.eqns:
        values = [read(atom) for atom in equation.invars]
        outputs = _step(ledger, equation, values, place)
        environment.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in bare.outvars]


def _constant(ledger, aval, const):
    if _holds_keys(aval):
        token = ledger.token("constant", id(const))
        if token not in ledger.seeds:
            ledger.seeds[token] = ledger.root(aval.shape, "a key from outside")
        return _Value(token, ledger.seeds[token])
    value = np.asarray(const) if getattr(aval, "size", 0) <= 4096 else None
    return _Value(ledger.token("constant", id(const)), known=lambda: value)


def _step(ledger, equation, values, place) -> list[_Value]:
    sampler, source = _site(equation)
    place = dataclasses.replace(place, source=source or place.source)
    if sampler is not None and any(value.keys is not None and not value.raw for value in values):
        return _draw(ledger, equation, values, place, sampler)
    rule = _RULES.get(equation.primitive.name)
    if rule is not None:
        return rule(ledger, equation, values, place)
    inner = [jaxpr for _, jaxpr in subjaxprs(equation)]
    if len(inner) == 1 and _fits(inner[0], equation):
        again = place.again or bool(equation.params.get("differentiated"))
        return _run(ledger, inner[0], values, dataclasses.replace(place, again=again))
    return _plain(ledger, equation, values)


def _fits(jaxpr, equation) -> bool:
    bare = getattr(jaxpr, "jaxpr", jaxpr)

    def shapes(variables):
        return [getattr(variable.aval, "shape", None) for variable in variables]

    return shapes(bare.invars) == shapes(equation.invars) and shapes(bare.outvars) == shapes(equation.outvars)


def _loops(values) -> frozenset:
    return frozenset().union(*(value.loops for value in values))


def _plain(ledger, equation, values) -> list[_Value]:
    """An operation that has nothing to do with randomness, though it may move keys about."""
    parameters = str(sorted((name, str(value)) for name, value in equation.params.items()))
    token = ledger.token(equation.primitive.name, parameters, *(value.token for value in values))
    loops = _loops(values)
    name = values[0].name if values and equation.primitive.name in _KEEPS_NAME else ""
    outputs = []
    moved = _moved(equation, values) if any(value.keys is not None for value in values) else None
    for index, variable in enumerate(equation.outvars):
        keys = moved[index] if moved is not None else None
        raw = keys is not None and not _holds_keys(variable.aval)
        if keys is None and _holds_keys(variable.aval):  # some of them, and it is not known which
            shape = variable.aval.shape
            which = (token, index)
            if which not in ledger.seeds:
                from_all = [value.keys for value in values if value.keys is not None]
                ledger.seeds[which] = _chosen(ledger, from_all, shape, loops)
            keys = ledger.seeds[which]
        known = functools.cache(functools.partial(_compute, equation, values, index))
        outputs.append(_Value(ledger.token(token, index), keys, raw, loops, known, name))
    return outputs


_KEEPS_NAME = {"convert_element_type", "squeeze", "broadcast_in_dim", "reshape", "copy"}
# Operations that move keys without looking at them. They are run on the keys' numbers.
_MOVES = {
    "broadcast_in_dim", "concatenate", "copy", "copy_p", "dynamic_slice", "dynamic_update_slice", "gather",
    "optimization_barrier", "reshape", "rev", "select_n", "slice", "split", "squeeze", "stack", "transpose", "unstack",
}  # fmt: skip


def _moved(equation, values):
    """The keys' numbers after an operation that moves them, one array for each output, or None."""
    if equation.primitive.name not in _MOVES:
        return None
    arguments = []
    for value in values:
        argument = value.keys if value.keys is not None else value.known()
        if argument is None:
            return None
        arguments.append(argument.astype(np.int32) if value.keys is not None else argument)
    params = dict(equation.params)
    if equation.primitive.name == "gather":
        params["fill_value"] = None
    try:
        with jax.ensure_compile_time_eval():
            outputs = equation.primitive.bind(*map(jax.numpy.asarray, arguments), **params)
    except Exception:  # a parameter that only suits keys: then it is not known which they are
        return None
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [np.asarray(output, np.int64) for output in outputs]


def _compute(equation, values, index):
    """The value of an operation all of whose inputs are known, if it is small."""
    if any(subjaxprs(equation)) or equation.effects or sum(v.aval.size for v in equation.outvars) > 4096:
        return None
    arguments = [value.known() for value in values]
    if any(argument is None for argument in arguments):
        return None
    try:
        with jax.ensure_compile_time_eval():
            outputs = equation.primitive.bind(*map(jax.numpy.asarray, arguments), **equation.params)
    except Exception:
        return None
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return np.asarray(outputs[index])


def _chosen(ledger, from_all, shape, loops):
    """Keys of which it is not known which of the given ones they are."""
    parents = np.concatenate([keys.ravel() for keys in from_all])
    loops = loops.union(*(ledger.keys[key].loops for key in parents))
    hidden = all(ledger.keys[key].hidden for key in parents)
    children = np.array([ledger.new("[i]", loops, hidden) for _ in range(math.prod(shape))], np.int64)
    if not hidden:
        shared = np.broadcast_to(children, (parents.size, children.size))
        use = _Use(0, "choose", "one of them", parents, _Place(), shared, ["[i]"] * children.size)
        for key in parents.tolist():
            ledger.keys[key].uses.append(use)
    return children.reshape(shape)


# Rules for what has to do with keys


def _draw(ledger, equation, values, place, sampler):
    """Everything that a function such as ``normal`` does with the key that it gets is one draw."""
    keys = [value.keys for value in values if value.keys is not None]
    for each in keys:
        aval = equation.outvars[0].aval
        short = "" if _holds_keys(aval) else " " + _type(aval, each.shape)
        ledger.use("draw", sampler + short, each, place)
    loops = _loops(values).union(*(ledger.keys[key].loops for each in keys for key in each.ravel()))
    outputs = []
    for variable in equation.outvars:
        hidden = None
        if _holds_keys(variable.aval):
            count = math.prod(variable.aval.shape)
            hidden = np.array([ledger.new("", loops, True) for _ in range(count)], np.int64)
            hidden = hidden.reshape(variable.aval.shape)
        outputs.append(_Value(ledger.unique(), hidden, loops=loops))
    return outputs


def _type(aval, batch) -> str:
    shape = aval.shape[len(batch) :] if aval.shape[: len(batch)] == batch else aval.shape
    aval = aval.update(shape=shape, weak_type=False, sharding=None) if batch else aval.update(weak_type=False)
    return aval.str_short(short_dtypes=True)


def _bits(ledger, equation, values, place):
    return _draw(ledger, equation, values, place, "bits")


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
    return [_Value(ledger.unique(), children.reshape(keys.shape + shape), loops=value.loops)]


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
    return [_Value(ledger.unique(), children[..., 0], loops=value.loops | data.loops)]


def _seed(ledger, equation, values, place):
    (value,) = values
    known, shape = value.known(), equation.outvars[0].aval.shape
    implementation = str(equation.params.get("impl", ""))
    if known is None:
        which = (implementation, value.token)
        if which not in ledger.seeds:
            ledger.seeds[which] = ledger.root(shape, f"key({value.name or '…'})", value.loops)
        return [_Value(ledger.unique(), ledger.seeds[which], loops=value.loops)]
    keys = np.empty(shape, np.int64)
    for position, number in zip(np.ndindex(*shape), np.broadcast_to(known, shape).ravel(), strict=True):
        which = (implementation, int(number))
        if which not in ledger.seeds:
            ledger.seeds[which] = int(ledger.root((), f"key({int(number)})"))
        keys[position] = ledger.seeds[which]
    return [_Value(ledger.unique(), keys)]


def _clone(ledger, equation, values, place):
    (value,) = values
    parents = value.keys
    children = np.empty((*parents.shape, 1), np.int64)
    for position in np.ndindex(*parents.shape):
        parent = ledger.keys[parents[position]]
        children[position] = ledger.new("clone", parent.loops, parent.hidden)
    ledger.use("clone", "clone", parents, place, children, ["clone"])
    return [_Value(ledger.unique(), children[..., 0], loops=value.loops)]


def _unwrap(ledger, equation, values, place):
    """Keys in the old style, as words: each of the words keeps the key's number."""
    (value,) = values
    words = equation.outvars[0].aval.shape[value.keys.ndim]
    raw = np.repeat(value.keys[..., None], words, axis=-1)
    return [_Value(ledger.unique(), raw, raw=True, loops=value.loops)]


def _wrap(ledger, equation, values, place):
    (value,) = values
    aval = equation.outvars[0].aval
    if value.keys is not None and value.raw and (value.keys == value.keys[..., :1]).all():
        return [_Value(ledger.unique(), value.keys[..., 0].reshape(aval.shape), loops=value.loops)]
    which = ("raw", value.token)
    if which not in ledger.seeds:
        ledger.seeds[which] = ledger.root(aval.shape, value.name or "key in the old style", value.loops)
    return [_Value(ledger.unique(), ledger.seeds[which], loops=value.loops)]


# Loops and branches


def _passed(ledger, value, text, place, loops, name=""):
    """A loop's or a branch's own names for keys that come from elsewhere."""
    if value.keys is None:
        return _Value(ledger.unique(), loops=loops, name=name)
    keys = value.keys
    children = np.empty((*keys.shape, 1), np.int64)
    for position in np.ndindex(*keys.shape):
        parent = ledger.keys[keys[position]]
        children[position] = ledger.new(text, parent.loops | loops, parent.hidden)
    ledger.use("pass", text, keys, place, children, [text])
    return _Value(ledger.unique(), children[..., 0], value.raw, value.loops | loops, name=name)


def _rows(ledger, value, place, loops):
    """The keys that a loop scans over: in the body one stands for each round's."""
    if value.keys is None:
        return _Value(ledger.unique(), loops=loops, name="i")
    keys = value.keys  # (length, ...)
    rows = np.array([0] * math.prod(keys.shape[1:]), np.int64).reshape(keys.shape[1:])
    for position in np.ndindex(*keys.shape[1:]):
        column = keys[(slice(None), *position)]
        outer = frozenset().union(*(ledger.keys[key].loops for key in column))
        hidden = all(ledger.keys[key].hidden for key in column)
        rows[position] = ledger.new("each", outer | loops, hidden)
        children = np.full((len(column), 1), rows[position])
        ledger.use("pass", "one a round", column, place, children, ["each"])
    return _Value(ledger.unique(), rows, value.raw, value.loops | loops)


def _scan(ledger, equation, values, place):
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
    outputs, loop = _loop(ledger, [body], values, place, length, first, carried, stacked, bare)
    results = outputs[:carried]
    for variable, value in zip(equation.outvars[carried:], outputs[carried:], strict=True):
        results.append(_stacked(ledger, variable.aval, value, place, loop))
    return results


def _loop(ledger, jaxprs, values, place, length, first, carried, stacked, bare):
    """A loop's body, read once: constants first, then what is carried, then what is scanned over."""
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
    outputs = []
    for jaxpr in jaxprs:  # all but the last one see the carry only
        given = len(getattr(jaxpr, "jaxpr", jaxpr).invars)
        outputs = _run(ledger, jaxpr, inputs[:given] if jaxpr is jaxprs[-1] else inputs[first:], inside)
    results = []
    for index, value in enumerate(outputs):
        if index >= carried:
            results.append(value)
        elif index not in changed:
            results.append(values[first + index])
        elif value.keys is None:
            results.append(_Value(ledger.unique(), loops=values[first + index].loops | value.loops - varies))
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
    children = np.empty((*value.keys.shape, 1), np.int64)
    for position in np.ndindex(*value.keys.shape):
        parent = ledger.keys[value.keys[position]]
        children[position] = ledger.new("after the loop", parent.loops - loops, parent.hidden)
    ledger.use("pass", "after the loop", value.keys, ending, children, ["after the loop"])
    return _Value(ledger.unique(), children[..., 0], value.raw, value.loops - loops)


def _stacked(ledger, aval, value, place, loop):
    """What a scan collects: a row for each round."""
    loops = value.loops - {loop}
    if value.keys is None:
        return _Value(ledger.unique(), loops=loops)
    length = aval.shape[0]
    keys = value.keys
    children = np.empty((*keys.shape, length), np.int64)
    for position in np.ndindex(*keys.shape):
        parent = ledger.keys[keys[position]]
        for row in range(length):
            children[(*position, row)] = ledger.new(f"round {row}", parent.loops - {loop}, parent.hidden)
    ledger.use("pass", "collected", keys, place, children, [f"round {row}" for row in range(length)])
    return _Value(ledger.unique(), np.moveaxis(children, -1, 0), value.raw, loops)


def _while(ledger, equation, values, place):
    params = equation.params
    for_condition, for_body = params["cond_nconsts"], params["body_nconsts"]
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    bare = getattr(body, "jaxpr", body)
    carried = len(values) - for_condition - for_body
    # The condition's constants go in front of the carry, as the body's do.
    seen = values[:for_condition]

    loop_values = values[for_condition:]
    loop = next(ledger.counter)
    ledger.lengths[loop] = None
    inside = dataclasses.replace(place, loops=(*place.loops, loop))
    varies = frozenset([loop])
    inputs, changed = list(loop_values[:for_body]), {}
    for index in range(carried):
        value = loop_values[for_body + index]
        if bare.outvars[index] is bare.invars[for_body + index]:
            inputs.append(value)
        else:
            inputs.append(_passed(ledger, value, "carried", place, varies, "i"))
            changed[index] = inputs[-1]
    _run(ledger, condition, [*seen, *inputs[for_body:]], inside)
    outputs = _run(ledger, body, inputs, inside)
    results = []
    for index, value in enumerate(outputs):
        if index not in changed:
            results.append(loop_values[for_body + index])
        elif value.keys is None:
            results.append(_Value(ledger.unique(), loops=value.loops - varies))
        else:
            results.append(_after(ledger, value, changed[index], inside, loop))
    return results


def _cond(ledger, equation, values, place):
    which = next(ledger.counter)
    results = []
    for number, branch in enumerate(equation.params["branches"]):
        inside = dataclasses.replace(place, branches=(*place.branches, (which, number)))
        results.append((_run(ledger, branch, values[1:], inside), inside))
    outputs = []
    for index, variable in enumerate(equation.outvars):
        loops = _loops([outs[index] for outs, _ in results]) | values[0].loops
        keys = None
        if _holds_keys(variable.aval):
            shape = variable.aval.shape
            keys = np.array([ledger.new("from a branch", loops) for _ in range(math.prod(shape))], np.int64)
            keys = keys.reshape(shape)
            for outs, inside in results:
                given = outs[index].keys
                ledger.use("pass", "from a branch", given, inside, keys[..., None], ["from a branch"])
        outputs.append(_Value(ledger.unique(), keys, loops=loops))
    return outputs


_RULES = {
    "random_bits": _bits,
    "random_clone": _clone,
    "random_fold_in": _fold,
    "random_seed": _seed,
    "random_split": _split,
    "random_unwrap": _unwrap,
    "random_wrap": _wrap,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}


# Where in the reader's program


_STRUCTURE = {"Key", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_impl", "split", "wrap_key_data"}


def _site(equation) -> tuple[str | None, str]:
    """The function of `jax.random` that made an equation, unless it is one that derives keys; the reader's line."""
    traceback = equation.source_info.traceback
    frames = list(traceback.frames) if traceback is not None else []
    files = [frame.file_name.replace("\\", "/") for frame in frames]
    inside = [index for index, file in enumerate(files) if "/jax/_src/random" in file]
    name = frames[inside[-1]].function_name.rpartition(".")[2].lstrip("_") if inside else None
    line = ""
    for file, frame in zip(files, frames, strict=True):
        if not any(
            part in file for part in ("/site-packages/", "/dist-packages/", "/mlax_tutorial/viz/", "<frozen")
        ):
            line = linecache.getline(frame.file_name, frame.line_num).strip()
            break
    if name is None:  # a random function that JAX itself calls, for a branch say, keeps at least its name
        called = str(equation.params.get("name", ""))
        name = called.lstrip("_") if called.startswith("_") else None
    return (None if name is None or name in _STRUCTURE or not hasattr(jax.random, name) else name), line
