"""Sends what the reader wrote to another process of the same Python, with everything that it refers to.

`pickle` sends a function by its name, and a function of a notebook stands in no module that another process could import. So it
goes by value: its compiled code, its defaults, the variables that it closes over, and those globals that its code names, each
followed in the same way. The lines of its source go along, so that errors show them. What comes from Python, JAX or another
library still goes by its name. Arrays go as numbers with their sharding, devices by their position.
"""

import builtins
import dataclasses
import dis
import importlib
import io
import linecache
import marshal
import pickle
import sys
import types

import jax
import numpy as np
from jax.sharding import NamedSharding

from mlax_tutorial.inspection.theirs import is_theirs
from mlax_tutorial.inspection.values import is_key, kind

_READS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "DELETE_GLOBAL"}
_FIELDS = ("__defaults__", "__kwdefaults__", "__doc__", "__module__", "__name__", "__qualname__")
# Every class gets its own of these.
_OF_EACH_CLASS = {"__dict__", "__weakref__", "__firstlineno__", "__static_attributes__"}


class CannotBeSent(Exception):
    """A value that only its own process can use: an open file, a generator, a lock."""


def dumps(thing):
    """The thing as bytes for `loads`, in a process of the same ``sys.executable``."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    try:
        pickler.dump(thing)
    except (TypeError, AttributeError, ValueError, RuntimeError, pickle.PicklingError) as error:
        raise CannotBeSent(_culprit(pickler.named, error)) from error
    return pickle.dumps((pickler.sources, buffer.getvalue()))


def loads(data):
    """What `dumps` was given. ``linecache`` knows the lines of its functions from now on."""
    sources, data = pickle.loads(data)
    for name, lines in sources.items():
        linecache.cache[name] = sum(map(len, lines)), None, lines, name
    return pickle.loads(data)


def _culprit(named, error):
    """What could not be sent, in words: the innermost of the variables that fail by themselves."""
    for name, value in reversed(named):
        try:
            _Pickler(io.BytesIO()).dump(value)
        except Exception:
            return f"`{name}`, {kind(value)},"
    return f"something in it ({error})"


class _Pickler(pickle.Pickler):
    def __init__(self, file):
        super().__init__(file, protocol=5)
        self.sources = {}  # the lines of each of the reader's files
        self.named = []  # the variables that functions refer to, from the outside in
        self._shared = {}  # the globals of each module of the reader's, by id

    def reducer_override(self, thing):
        if isinstance(thing, types.ModuleType):
            return importlib.import_module, (thing.__name__,)
        if isinstance(thing, jax.Device):
            return _device, (jax.devices(thing.platform).index(thing),)
        if isinstance(thing, jax.Array) and not isinstance(thing, jax.core.Tracer):
            return _reduced_array(thing)
        if isinstance(thing, types.CellType):
            try:
                return _cell, (), (thing.cell_contents,), None, None, _fill
            except ValueError:  # it is empty
                return _cell, ()
        if _in_library(thing):
            return thing.__qualname__
        if isinstance(thing, types.FunctionType):
            return self._function(thing)
        if hasattr(thing, "_jit_info") and hasattr(thing, "_fun"):
            return _jitted, (thing._fun, _jit_options(thing._jit_info))
        if isinstance(thing, type) and _is_readers(thing.__module__):
            return _reduced_class(thing)
        if isinstance(thing, (staticmethod, classmethod)):
            return type(thing), (thing.__func__,)
        if isinstance(thing, property):
            return property, (thing.fget, thing.fset, thing.fdel, thing.__doc__)
        if isinstance(thing, types.MappingProxyType):  # these three are parts of a dataclass
            return _proxy, (dict(thing),)
        if isinstance(thing, dataclasses._FIELD_BASE):
            return getattr, (dataclasses, thing.name)
        if thing is dataclasses.MISSING:
            return getattr, (dataclasses, "MISSING")
        return NotImplemented

    def _function(self, function):
        code, names = function.__code__, function.__globals__
        if is_theirs(code.co_filename):
            self.sources.setdefault(code.co_filename, linecache.getlines(code.co_filename, names))
        cells = function.__closure__ or ()
        for name, cell in zip(code.co_freevars, cells):
            try:
                self.named.append((name, cell.cell_contents))
            except ValueError:
                pass
        used, name = {}, names.get("__name__", "__main__")
        if vars(sys.modules.get(name, object)) is names and not _is_readers(name):
            namespace = _Library(name)
        else:
            namespace = self._shared.setdefault(id(names), _Names(name))
            used = {name: names[name] for name in sorted(_globals(code)) if name in names}
            self.named += used.items()
        state = used, vars(function), {field: getattr(function, field) for field in _FIELDS}
        return _function, (marshal.dumps(code), namespace, cells), state, None, None, _complete


def _globals(code):
    """The names of the globals that code and the functions in it use."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in _READS}
    inner = (_globals(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return found.union(*inner)


def _in_library(thing):
    """Whether the other process finds it by its name: a function or a class that is not the reader's."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or _is_readers(module):
        return False
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing


def _is_readers(module):
    file = getattr(sys.modules.get(module), "__file__", None)
    return module == "__main__" or (file is not None and is_theirs(file))


def _reduced_array(array):
    if is_key(array):
        return _key, (np.asarray(jax.random.key_data(array)), str(jax.random.key_impl(array)))
    place = array.sharding if isinstance(array.sharding, NamedSharding) else None
    return jax.device_put, (np.asarray(array), place)


def _reduced_class(cls):
    body = {name: value for name, value in vars(cls).items() if name not in _OF_EACH_CLASS}
    body = {name: value for name, value in body.items() if not isinstance(value, types.MemberDescriptorType)}
    return _class, (type(cls), cls.__name__, cls.__bases__), body, None, None, _add


def _jit_options(info):
    """What ``jax.jit`` was told; its fields are called so in JAX 0.7.2 and in 0.12."""
    options = {
        name: getattr(info, name)
        for name in ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused")
    }
    for name in ("in_shardings", "out_shardings"):
        leaves = getattr(info, f"{name}_leaves")
        if not any(type(leaf).__name__ == "UnspecifiedValue" for leaf in leaves):
            options[name] = jax.tree.unflatten(getattr(info, f"{name}_treedef"), leaves)
    return options


# In the other process


class _Names:
    """The globals that several functions share."""

    def __init__(self, name):
        self.name = name
        self.names = {"__name__": name, "__builtins__": builtins}

    def __reduce__(self):
        return type(self), (self.name,)


class _Library(_Names):
    def __init__(self, name):
        self.name = name
        self.names = vars(importlib.import_module(name))


def _function(code, namespace, cells):
    return types.FunctionType(marshal.loads(code), namespace.names, None, None, cells)


def _complete(function, state):
    used, attributes, fields = state
    function.__globals__.update(used)
    vars(function).update(attributes)
    for name, value in fields.items():
        setattr(function, name, value)


def _cell():
    return types.CellType()


def _proxy(content):
    return types.MappingProxyType(content)


def _fill(cell, contents):
    (cell.cell_contents,) = contents


def _class(metaclass, name, bases):
    return types.new_class(name, bases, {"metaclass": metaclass} if metaclass is not type else {})


def _add(cls, body):
    for name, value in body.items():
        setattr(cls, name, value)


def _jitted(function, options):
    return jax.jit(function, **options)


def _key(data, impl):
    return jax.random.wrap_key_data(data, impl=impl)


def _device(position):
    return jax.devices()[position]
