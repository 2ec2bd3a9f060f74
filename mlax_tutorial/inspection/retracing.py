"""How often a jitted function is traced, and why: a counter, and an account of every call.

``jax.jit`` keeps what it has traced and compiled under a key, and a call whose key is new is traced again. The
chapter *jit* derives what is in the key: which arguments came by position and which by name, the structure of each, shape, dtype
and weak type of each leaf, the values of static arguments, and some of JAX's settings.

- `counted` counts how often Python runs the body of a function, in any block of code.
- `compilations` lists what XLA compiles in a block.
- `watch` wraps a function, jitted or not: it notes for every call whether it was traced, and what in its key was new.

JAX says such things itself, in its log: ``jax.config.update("jax_explain_cache_misses", True)``. Here they are values, for figures
(``viz.jit_cache``), for tests and for the checks of the exercises.
"""

import contextlib
import dataclasses
import functools
import inspect
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

# Counting


@contextlib.contextmanager
def counted(function: Callable) -> Iterator[Callable[[], int]]:
    """Counts in a block how often Python starts the body of a function; under ``jax.jit`` that is once for each trace.

    Args:
      function: a Python function, however it is wrapped: in ``jax.jit``, ``functools.partial``, ``jax.grad``, as a method.

    Yields:
      A function without arguments that returns the count so far.

    Raises:
      TypeError: if there is no Python function inside, so that nothing can be counted.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> double = jax.jit(lambda x: 2 * x)
      >>> with counted(double) as count:
      ...     for length in (3, 3, 4):
      ...         _ = double(jnp.ones(length))
      >>> count()
      2
    """
    body, runs = underlying(function), 0
    if not isinstance(body, types.FunctionType):
        raise TypeError(f"{_name(function)} has no body in Python whose runs could be counted")

    def started(code, offset):
        nonlocal runs
        runs += 1

    events = sys.monitoring
    tool = next((i for i in (4, 3, 2, 5, 1, 0) if events.get_tool(i) is None), None)
    if tool is None:
        raise RuntimeError("all of Python's places for monitoring tools are taken")
    events.use_tool_id(tool, __name__)
    events.register_callback(tool, events.events.PY_START, started)
    events.set_local_events(tool, body.__code__, events.events.PY_START)
    try:
        yield lambda: runs
    finally:
        events.set_local_events(tool, body.__code__, 0)
        events.register_callback(tool, events.events.PY_START, None)
        events.free_tool_id(tool)


@contextlib.contextmanager
def _uncounted(function):
    yield lambda: None


def underlying(function: Callable) -> Callable:
    """The Python function inside ``jax.jit``, ``functools.partial``, a bound method or a decorated function.

    >>> import functools, jax
    >>> def area(width, height):
    ...     return width * height
    >>> underlying(functools.partial(jax.jit(jax.grad(area)), 2.0)) is area
    True
    """
    for _ in range(20):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, types.FunctionType):
            break
        else:  # an object that is called
            call = type(function).__call__
            if not isinstance(call, types.FunctionType):
                break
            function = call
    return function


# The key


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of a key: a leaf of the arguments, or a static argument.

    Attributes:
      name: where it is, such as ``x`` or ``params['kernel']``.
      text: its type, such as ``f32[3]``, or the static value in short.
      static: whether its value is in the key, not only its type.
      value: the abstract value, or the static value.
      place: the devices it is bound to, or "" if it may go anywhere. Not compared when it is traced, but compiled for.
    """

    name: str
    text: str
    static: bool
    value: Any
    place: str = ""


@dataclasses.dataclass(frozen=True)
class Key:
    """What a call is looked up by.

    Attributes:
      form: the names of the arguments, those given by name with an equals sign.
      structures: for each argument that is not static, its name and tree definition.
      parts: leaves and static arguments.
      settings: those of JAX's settings that a trace depends on.
    """

    form: tuple[str, ...]
    structures: tuple[tuple[str, Any], ...]
    parts: tuple[Part, ...]
    settings: tuple[tuple[str, Any], ...]

    def __str__(self):
        return ", ".join(f"{p.name}={p.text}" if p.static else f"{p.name} {p.text}" for p in self.parts)


# JAX has more that count, but these are the ones that programs change while they run.
_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_device",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_debug_key_reuse",
    "jax_disable_jit",
)


def key(function: Callable, args: tuple, kwargs: dict) -> Key:
    """The key of ``function(*args, **kwargs)``, for a jitted function."""
    given, parts, structures = _arguments(function, args, kwargs), [], []
    for name, value, static, _ in given:
        if static:
            parts.append(Part(name, _short(value), True, value))
            continue
        leaves, structure = jax.tree_util.tree_flatten_with_path(value)
        structures.append((name, structure))
        for path, leaf in leaves:
            parts.append(_leaf(name + jax.tree_util.keystr(path), leaf))
    form = tuple(f"{name}=" if by_name else name for name, _, _, by_name in given)
    settings = [(name, getattr(jax.config, name, None)) for name in _SETTINGS]
    return Key(form, tuple(structures), tuple(parts), (*settings, ("jax.set_mesh", _mesh())))


def _mesh():
    """The mesh that `jax.set_mesh` has set, in words."""
    mesh = jax.sharding.get_abstract_mesh()
    axes = zip(mesh.axis_names, mesh.axis_sizes, mesh.axis_types, strict=True)
    return ", ".join(f"{name}={size} {kind.name}" for name, size, kind in axes) or None


def _arguments(function, args, kwargs):
    """For each argument its name, its value, whether it is static, and whether it was given by name."""
    options = getattr(function, "_jit_info", None)  # JAX has no public name for it; a test fails if it moves
    numbers = {i % len(args) for i in getattr(options, "static_argnums", ()) if -len(args) <= i < len(args)}
    names = set(getattr(options, "static_argnames", ()))
    positional = list(positional_names(function, len(args)))
    given = [
        (name, value, i in numbers, False)
        for i, (name, value) in enumerate(zip(positional, args, strict=True))
    ]
    return given + [(name, value, name in names, True) for name, value in sorted(kwargs.items())]


def positional_names(function, count):
    """What a function calls its first arguments, so many of them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "argument ")
    for i in range(count):
        yield names[i] if i < len(names) else f"{rest}{i - len(names)}"


def _leaf(name, leaf):
    try:
        kind = jax.typeof(leaf)
        text = kind.str_short(short_dtypes=True) + " weak" * getattr(kind, "weak_type", False)
    except Exception:
        return Part(name, _short(leaf), False, leaf)
    place = ""
    if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.committed:
        place = ", ".join(sorted(f"{d.platform}:{d.id}" for d in leaf.sharding.device_set))
    return Part(name, text, False, kind, place)


def differences(new: Key, old: Key) -> list[str]:
    """What is new in one key against another, in words; empty if the two are equal, as far as can be seen.

    >>> import jax, jax.numpy as jnp
    >>> f = jax.jit(lambda x, n: x * n, static_argnames="n")
    >>> differences(key(f, (jnp.ones(3), 2), {}), key(f, (jnp.ones(4), 3), {}))
    ['x: f32[4] -> f32[3], another shape', 'n: 3 -> 2, another static value']
    """
    found = _other_form(new.form, old.form)
    structures, parts = dict(old.structures), {part.name: part for part in old.parts}
    changed = set()
    for name, structure in new.structures:
        if name in structures and structure != structures[name]:
            changed.add(name)
            one, two = (_short(str(s).removeprefix("PyTreeDef(")[:-1]) for s in (structures[name], structure))
            found.append(
                f"{name}: " + ("another structure" if one == two else f"{one} -> {two}, another structure")
            )
    for part in new.parts:
        other = parts.get(part.name)
        if other is not None and not any(
            re.match(rf"{re.escape(name)}(?!\w)", part.name) for name in changed
        ):
            found += _other_part(part, other)
    for (name, value), (_, before) in zip(new.settings, old.settings, strict=True):
        if value != before:
            found.append(f"the setting {name}: {before} -> {value}")
    return found


def nearest(new: Key, known: list[Key]) -> list[str]:
    """The `differences` of a key to that one of several which is most like it; the latest, if there are more."""

    def extent(found):
        return len(found), sum(text.count(" and another ") for text in found)

    return min((differences(new, old) for old in reversed(known)), key=extent, default=[])


def _other_form(new, old):
    if new == old:
        return []
    ways = {name.rstrip("="): name for name in old}
    found = []
    for name in new:
        bare = name.rstrip("=")
        if bare not in ways:
            found.append(f"{bare} is given, and was left out")
        elif ways[bare] != name:
            found.append(
                f"{bare} comes by name, and came by position"
                if name != bare
                else f"{bare} comes by position, and came by name"
            )
    left_out = [bare for bare in ways if bare not in {name.rstrip("=") for name in new}]
    return found + [f"{name} is left out, and was given" for name in left_out] or ["other arguments"]


def _other_part(new, old):
    if new.static or old.static:
        if new.static == old.static and _equal(new.value, old.value):
            return []
        if new.text == old.text:
            return [f"{new.name}: another {type(new.value).__name__} object, equal to no other"]
        if type(new.value) is not type(old.value) and _equal(new.value, old.value, typed=False):
            return [f"{new.name}: {old.text} -> {new.text}, equal, but of another type"]
        return [f"{new.name}: {old.text} -> {new.text}, another static value"]
    if new.value == old.value:
        return []
    whys = []
    for attribute, what in (("shape", "shape"), ("dtype", "dtype")):
        if getattr(new.value, attribute, None) != getattr(old.value, attribute, None):
            whys.append(f"another {what}")
    if not whys and getattr(new.value, "weak_type", None) != getattr(old.value, "weak_type", None):
        whys.append("one of them is weakly typed")
    if not whys:  # of an array that is spread over devices, the type says how
        places = [getattr(kind, "sharding", None) for kind in (new.value, old.value)]
        if places[0] != places[1]:
            meshes = [getattr(place, "mesh", None) for place in places]
            whys.append("another mesh" if meshes[0] != meshes[1] else "another sharding")
    return [f"{new.name}: {old.text} -> {new.text}, {' and '.join(whys) or 'another type'}"]


def _equal(one, two, typed=True):
    try:
        return bool(one == two) and hash(one) == hash(two) and (type(one) is type(two) or not typed)
    except Exception:
        return one is two


def _short(value, most=40):
    """A value in a few letters that are the same in every run."""
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    if isinstance(value, (jax.Array, np.ndarray)):
        return f"an array {value.dtype}{list(value.shape)}".replace(" ", "")
    try:
        text = " ".join((value if isinstance(value, str) else repr(value)).split())
    except Exception:
        text = type(value).__name__
    if " at 0x" in text:
        text = type(value).__name__
    return text if len(text) <= most else text[: most - 3] + "..."


# Watching


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of a watched function.

    Attributes:
      key: what it was looked up by.
      program: the index in `Watched.programs` of what ran; None if it raised while it was traced.
      traced: whether Python ran the function for it.
      compiled: how many times XLA compiled for it: once after a trace, and where a known trace meets another device.
      why: what was new, in words.
      error: what it raised, or "".
    """

    key: Key
    program: int | None
    traced: bool
    compiled: int
    why: tuple[str, ...] = ()
    error: str = ""

    @property
    def outcome(self) -> str:
        """In a word or two: ``traced``, ``from the cache``, ``compiled``, or the error."""
        if self.error:
            return f"raised {self.error.partition(':')[0]}"
        return "traced" if self.traced else "compiled" if self.compiled else "from the cache"


@dataclasses.dataclass(frozen=True)
class Program:
    """What was traced once: its key, its jaxpr, and how many equations that has."""

    key: Key
    jaxpr: Any
    equations: int


class Watched:
    """A jitted function that notes of each call whether it was traced, and why; it prints as a table.

    Attributes:
      calls: a `Call` each.
      programs: a `Program` for each trace that was met.
    """

    def __init__(self, function: Callable, **options: Any):
        if hasattr(function, "lower") and hasattr(function, "trace"):
            if options:
                raise TypeError("the function is jitted already: its options cannot be changed here")
            self.function = function
        else:
            self.function = jax.jit(function, **options)
        self.first = ()  # the object that a jitted method is bound to: to JAX an argument like the others
        if isinstance(self.function, types.MethodType):
            self.function, self.first = self.function.__func__, (self.function.__self__,)
        self.name = _name(function)
        self.calls: list[Call] = []
        self.programs: list[Program] = []

    @property
    def traces(self) -> int:
        """How many of the calls were traced."""
        return sum(call.traced for call in self.calls)

    def __call__(self, *args, **kwargs):
        return self._call(args, kwargs, run=True)

    def trace(self, *args, **kwargs):
        """As a call, but only traced, so that ``jax.ShapeDtypeStruct`` will do. Returns what ``jit(f).trace`` returns."""
        return self._call(args, kwargs, run=False)

    def _call(self, args, kwargs, run):
        args = (*self.first, *args)
        looked_up = key(self.function, args, kwargs)
        counter = counted if isinstance(underlying(self.function), types.FunctionType) else _uncounted
        try:
            with counter(self.function) as count, compilations() as compiled:
                # A trace is kept, and the call right after it finds it: so it can be looked at, and is not made twice.
                traced = self.function.trace(*args, **kwargs)
                result = self.function(*args, **kwargs) if run else traced
                runs = count()
        except Exception as error:
            self._note_error(looked_up, error)
            raise
        jaxpr = traced.jaxpr
        known = next((i for i, p in enumerate(self.programs) if p.jaxpr is jaxpr), None)
        new = known is None if runs is None else runs > 0
        times = compiled.count(f"jit({traced.fun_name})")
        why = self._why(looked_up, known, new, times)
        if known is None:
            known = len(self.programs)
            self.programs.append(Program(looked_up, jaxpr, len(jaxpr.eqns)))
        self.calls.append(Call(looked_up, known, new, times, why))
        return result

    def _note_error(self, looked_up, error):
        text = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        self.calls.append(Call(looked_up, None, False, 0, (), text))

    def _why(self, looked_up, known, new, compiled):
        before = [call.key for call in self.calls if call.program is not None]
        if new:
            if not before:
                return ("the first call",)
            return tuple(nearest(looked_up, before)) or (
                "nothing that can be seen here differs: was the cache cleared?",
            )
        if known is None:
            return ("traced before it was watched",)
        if compiled:
            return tuple(_other_places(looked_up, self.programs[known].key)) or (
                "for another place or layout",
            )
        return ()

    def __repr__(self):
        rows = [(str(i), str(c.key), c.outcome, "; ".join(c.why)) for i, c in enumerate(self.calls, 1)]
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
        lines = [f"{self.name}: {len(rows)} calls, {self.traces} traced"]
        for row in rows:
            cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)]
            lines.append("  ".join(["", *cells, row[3]]).rstrip())
        return "\n".join(lines)


def watch(function: Callable, **options: Any) -> Watched:
    """Wraps a function so that each call is noted: traced or not, and what in its key was new.

    Args:
      function: jitted or not. What is not jitted is jitted here.
      **options: for ``jax.jit``, such as ``static_argnames``, if it is not jitted yet.

    Returns:
      A `Watched`, to be called like the function. It is slower: each call is also looked up by hand.

    Raises:
      TypeError: if options are given for a function that is jitted already.

    Example:
      >>> import jax.numpy as jnp
      >>> power = watch(lambda x, n: x**n, static_argnames="n")
      >>> for x, n in [(jnp.ones(3), 2), (jnp.ones(3), 2), (jnp.ones(4), 2), (jnp.ones(4), 3), (1.0, 3)]:
      ...     _ = power(x, n)
      >>> power
      <lambda>: 5 calls, 4 traced
        1  x f32[3], n=2      traced          the first call
        2  x f32[3], n=2      from the cache
        3  x f32[4], n=2      traced          x: f32[3] -> f32[4], another shape
        4  x f32[4], n=3      traced          n: 2 -> 3, another static value
        5  x f32[] weak, n=3  traced          x: f32[4] -> f32[] weak, another shape
    """
    return Watched(function, **options)


def _other_places(new, old):
    places = {part.name: part.place for part in old.parts}
    for part in new.parts:
        before = places.get(part.name, "")
        if part.place != before:
            yield f"{part.name} is bound to {part.place or 'no device'}, and was to {before or 'none'}"


def _name(function):
    return getattr(function, "__name__", None) or getattr(
        underlying(function), "__name__", type(function).__name__
    )


# What XLA compiles, JAX tells to whoever listens. A listener cannot be taken away again on every version, so there is one.
_listening = threading.local()
_registered = False


@contextlib.contextmanager
def compilations() -> Iterator[list[str]]:
    """The names of the programs that XLA compiles in a block: a list that grows as they come.

    An operation of ``jax.numpy`` that is called by itself is a small jitted function, and counts. What comes from JAX's
    persistent cache counts as well, though it is only loaded.

    >>> import jax, jax.numpy as jnp
    >>> half = jax.jit(lambda x: x / 2)
    >>> x = jnp.ones(13)
    >>> with compilations() as names:
    ...     for _ in range(3):
    ...         _ = half(x)
    >>> names
    ['jit(<lambda>)']
    """
    global _registered
    if not _registered:
        jax.monitoring.register_event_duration_secs_listener(_hear)
        _registered = True
    names, outer = [], getattr(_listening, "names", None)
    _listening.names = names
    try:
        yield names
    finally:
        _listening.names = outer
        if outer is not None:
            outer += names


def _hear(event, duration, **details):
    names = getattr(_listening, "names", None)
    if names is not None and event.endswith("/backend_compile_duration"):
        names.append(details.get("fun_name", ""))
