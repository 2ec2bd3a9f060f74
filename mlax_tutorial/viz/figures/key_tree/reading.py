"""Reading a jaxpr for its keys, into a `Ledger`.

`read` follows keys through the equations, into ``split`` and ``fold_in`` (`rules`), through slices and reshapes,
into jitted functions, branches and loops (`loops`).
"""

import dataclasses
import functools
import inspect
import linecache
import math

import jax
import numpy as np

from mlax_tutorial.inspection.jaxprs import subjaxprs
from mlax_tutorial.viz.figures.key_tree import loops, rules
from mlax_tutorial.viz.figures.key_tree.ledger import Ledger, Place, Use, Value, holds_keys, loops_of


def read(function, args, kwargs):
    """The ledger of a function's keys."""
    with jax.debug_key_reuse(False):  # to look at a mistake it has to be let through
        jaxpr = jax.make_jaxpr(function)(*args, **kwargs)
    ledger = Ledger()
    names = _argument_names(function, args, kwargs)
    inputs = [
        ledger.given(variable.aval, name) for variable, name in zip(jaxpr.jaxpr.invars, names, strict=True)
    ]
    for value in _run(ledger, jaxpr, inputs, Place()):
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


# Programs and equations


def _run(ledger, jaxpr, inputs, place) -> list[Value]:
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
        return Value(
            ledger.token("literal", value.dtype.str, value.shape, value.tobytes()), known=lambda: value
        )

    for equation in bare.eqns:
        values = [read(atom) for atom in equation.invars]
        outputs = _step(ledger, equation, values, place)
        environment.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in bare.outvars]


def _constant(ledger, aval, const):
    if holds_keys(aval):
        token = ledger.token("constant", id(const))
        if token not in ledger.seeds:
            ledger.seeds[token] = ledger.root(aval.shape, "a key from outside")
        return Value(token, ledger.seeds[token])
    value = np.asarray(const) if getattr(aval, "size", 0) <= 4096 else None
    return Value(ledger.token("constant", id(const)), known=lambda: value)


def _step(ledger, equation, values, place) -> list[Value]:
    sampler, source = _site(equation)
    place = dataclasses.replace(place, source=source or place.source)
    if sampler is not None and any(value.keys is not None and not value.raw for value in values):
        return rules.draw(ledger, equation, values, place, sampler)
    name = equation.primitive.name
    if name in rules.RULES:
        return rules.RULES[name](ledger, equation, values, place)
    if name in loops.RULES:
        return loops.RULES[name](ledger, equation, values, place, _run)
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


# Operations that have nothing to do with randomness


def _plain(ledger, equation, values) -> list[Value]:
    """An operation that has nothing to do with randomness, though it may move keys about."""
    parameters = str(sorted((name, str(value)) for name, value in equation.params.items()))
    token = ledger.token(equation.primitive.name, parameters, *(value.token for value in values))
    loops = loops_of(values)
    name = values[0].name if values and equation.primitive.name in _KEEPS_NAME else ""
    outputs = []
    moved = _moved(equation, values) if any(value.keys is not None for value in values) else None
    for index, variable in enumerate(equation.outvars):
        keys = moved[index] if moved is not None else None
        raw = keys is not None and not holds_keys(variable.aval)
        if keys is None and holds_keys(variable.aval):  # some of them, and it is not known which
            shape = variable.aval.shape
            which = (token, index)
            if which not in ledger.seeds:
                from_all = [value.keys for value in values if value.keys is not None]
                ledger.seeds[which] = _chosen(ledger, from_all, shape, loops)
            keys = ledger.seeds[which]
        known = functools.cache(functools.partial(_compute, equation, values, index))
        outputs.append(Value(ledger.token(token, index), keys, raw, loops, known, name))
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
        use = Use(0, "choose", "one of them", parents, Place(), shared, ["[i]"] * children.size)
        for key in parents.tolist():
            ledger.keys[key].uses.append(use)
    return children.reshape(shape)


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
