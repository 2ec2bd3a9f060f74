"""``viz.trace``: step through a function, line by line, and watch the equations that JAX records.

`record` runs the function as ``jax.jit`` would, with abstract values, and notes two things: which of its source lines
Python executes, in order, and which equations come from which line. `Trace` shows them: in a notebook as a figure
to step through, in a terminal as a listing. The markup is made in `page`.
"""

import dataclasses
import functools
import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core
from jax.interpreters import mlir

from mlax_tutorial.viz.figures.notation import Names
from mlax_tutorial.viz.figures.trace import page
from mlax_tutorial.viz.figures.trace.program import Program, optimised


@dataclasses.dataclass(frozen=True)
class Step:
    """Python executes one source line.

    Attributes:
      line: its index in `Recording.source`, or None where there is no source.
      equations: indices in `Recording.equations` of what it adds.
      inner: what the line records goes into a jaxpr inside another equation: it is in the body of a scan, say.
      known: the line computed with values that are known while tracing (`jax.ensure_compile_time_eval`).
    """

    line: int | None
    equations: tuple[int, ...] = ()
    inner: bool = False
    known: bool = False


@dataclasses.dataclass(frozen=True)
class Recording:
    """What tracing a function recorded.

    Attributes:
      name: of the function.
      source: its lines, without common indentation; empty if Python cannot find them.
      inputs: the abstract inputs, such as ``a:f32[3]``.
      equations: one text each, in order; equations of inner jaxprs are indented below their own.
      outputs: the names of what is returned.
      steps: the executed lines.
      error: what the function raised while it was traced, or None.
      program: what XLA made of it, or None if it did not compile.
    """

    name: str
    source: tuple[str, ...]
    inputs: tuple[str, ...]
    equations: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[Step, ...]
    error: str | None
    program: Program | None


class Trace:
    """A recorded function; a notebook shows it as a figure to step through, a terminal as a listing."""

    def __init__(self, recording: Recording):
        self.recording = recording

    def _repr_html_(self):
        return page.write(self.recording)

    def __repr__(self):
        return page.listing(self.recording)


def trace(function: Callable, *args: Any, **kwargs: Any) -> Trace:
    """Record what JAX traces of ``function(*args, **kwargs)``, for stepping through.

    The function runs once, with abstract values, so nothing is computed, and Python's own side effects, such as
    ``print``, happen once. A jitted function is looked into. A function that raises shows how far tracing came.

    Args:
      function: any function that ``jax.jit`` takes.
      *args: pytrees of arrays, or of ``jax.ShapeDtypeStruct``.
      **kwargs: likewise.

    Returns:
      A `Trace`: as the last expression of a cell it is a figure with a button for the next line, one for the
      line before, and one for the program that XLA made of it all. Arrow keys work, too.

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> def log2(x):
      ...     return jnp.log(x) / jnp.log(2.0)
      >>> viz.trace(log2, 8.0)
      tracing log2, inputs a:f32[]
        def log2(x):
            return jnp.log(x) / jnp.log(2.0)
              b:f32[] = log a
              c:f32[] = log 2.0:f32[]
              d:f32[] = div b c
      returns d
    """
    return Trace(record(function, *args, **kwargs))


def record(function: Callable, *args: Any, **kwargs: Any) -> Recording:
    """As `trace`, but returns the bare `Recording`."""
    function = _inside_jit(function)
    own = _python_function(function)
    lines, first = _source(own)
    watcher = _Watcher(own, first, len(lines))
    jaxpr, error = _jaxpr(function, args, kwargs, watcher)
    names = Names()
    inputs = tuple(names.typed(variable) for variable in jaxpr.jaxpr.invars)
    constants = [names.typed(variable) for variable in jaxpr.jaxpr.constvars]
    equations = tuple(names.equation(equation) for equation in _unmarked(jaxpr.jaxpr.eqns))
    outputs = () if error else tuple(names.use(variable) for variable in jaxpr.jaxpr.outvars)
    return Recording(
        name=getattr(own or function, "__name__", type(function).__name__),
        source=tuple(lines),
        inputs=inputs + tuple(f"{constant} (a constant from outside)" for constant in constants),
        equations=equations,
        outputs=outputs,
        steps=_steps(jaxpr.jaxpr.eqns, watcher),
        error=error,
        program=None if error else optimised(jaxpr, jax.tree.leaves((args, kwargs))),
    )


def _inside_jit(function):
    """The function that ``jax.jit`` wraps, so that its own lines are what is stepped through."""
    while hasattr(function, "__wrapped__") and hasattr(function, "lower"):
        function = function.__wrapped__
    return function


def _python_function(function):
    """The Python function whose source is shown, or None: inside ``partial``, ``functools.wraps``, ``grad``, …"""
    for _ in range(20):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.ismethod(function):
            function = function.__func__
        elif inspect.isfunction(function):
            return function
        else:
            function = vars(type(function)).get("__call__")
    return None


def _source(function) -> tuple[list[str], int]:
    """The lines of a function and the number of its first line in its file; none if they cannot be found."""
    if function is None:
        return [], 0
    linecache.checkcache(function.__code__.co_filename)
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return [], 0
    return textwrap.dedent("".join(lines)).rstrip("\n").split("\n"), first


# Before each line an equation without inputs and outputs is recorded. It marks the place: source lines alone cannot
# tell the rounds of a Python loop apart. It computes nothing and is never shown. Inner traces, of a jitted function
# say, get no marks: JAX keeps those, and the reader would meet our marks again.
_mark = core.Primitive("viz_trace_mark")
_mark.multiple_results = True
_mark.def_abstract_eval(lambda *, visit: [])
_mark.def_impl(lambda *, visit: _known.add(visit) or [])  # run at once, not recorded
mlir.register_lowering(_mark, lambda context, *, visit: [])
_known = set()


_GUARDED = "_viz_trace_guarded"


def _unmarked(equations):
    return [equation for equation in equations if equation.primitive is not _mark]


class _Watcher:
    """Notes which lines of a function Python executes, by ``sys.settrace``, and marks them in the jaxpr."""

    def __init__(self, function, first: int, count: int):
        self.code = function.__code__ if function is not None and count else None
        self.file = self.code.co_filename if self.code else None
        self.first, self.last = first, first + count - 1
        self.visits = []  # (index of the line, whether it records into an inner jaxpr)
        _known.clear()

    def index(self, file: str, number: int) -> int | None:
        """The index of a line of a file among the function's, or None."""
        return number - self.first if file == self.file and self.first <= number <= self.last else None

    def __call__(self, frame, event, argument):
        code = frame.f_code
        if self.index(code.co_filename, code.co_firstlineno) is None:
            return None
        return functools.partial(self._visit, _in_inner_trace(frame))

    def _visit(self, inner, frame, event, argument):
        index = self.index(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and index is not None:
            if not inner:
                _mark.bind(visit=len(self.visits))
            self.visits.append((index, inner))
        return functools.partial(self._visit, inner)


def _in_inner_trace(frame) -> bool:
    """Whether JAX was asked to record something else since the trace of `_jaxpr` began.

    JAX has no public way to ask. Its functions that record have "jaxpr" in their names, on every version we run on;
    `tests/viz` fails where that is no longer so.
    """
    while frame is not None and frame.f_code.co_name != _GUARDED:
        if "jaxpr" in frame.f_code.co_name and "jax" in frame.f_globals.get("__name__", "").split("."):
            return True
        frame = frame.f_back
    return False


def _jaxpr(function, args, kwargs, watcher):
    """The jaxpr, and what was raised on the way, if anything: then the jaxpr holds what was recorded before."""
    failed = []

    def _viz_trace_guarded(*args, **kwargs):
        before = sys.gettrace()
        if watcher.code is not None:
            sys.settrace(watcher)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            failed.append(f"{type(error).__name__}: {_first_line(error)}")
            # The traceback holds the frames, and they hold tracers, which must not outlive this call.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            return ()
        finally:
            sys.settrace(before)

    jaxpr = jax.make_jaxpr(_viz_trace_guarded)(*args, **kwargs)
    return jaxpr, failed[0] if failed else None


def _first_line(error) -> str:
    return str(error).strip().split("\n")[0]


def _line(equation, watcher) -> int | None:
    """The index of the source line that an equation comes from.

    An equation carries the Python frames in which it was recorded. The innermost one that lies in the function's own
    lines is the line to show: it may have called helpers, here or in a library.
    """
    traceback = equation.source_info.traceback
    for frame in traceback.frames if traceback is not None else ():
        index = watcher.index(frame.file_name, frame.line_num)
        if index is not None:
            return index
    return None


def _steps(equations, watcher) -> tuple[Step, ...]:
    """The executed lines, each with the equations that were recorded between its mark and the next."""
    marked = any(equation.primitive is _mark for equation in equations)
    steps = [[line, [], inner, visit in _known] for visit, (line, inner) in enumerate(watcher.visits)]
    visit, number = -1, 0
    later = {}  # by visit: lines that were gone back to without being begun anew, as by a gradient's backward pass
    for equation in equations:
        if equation.primitive is _mark:
            visit = equation.params["visit"]
            continue
        line, back = _line(equation, watcher), later.setdefault(visit, [])
        if visit >= 0 and line == steps[visit][0] and not back:
            steps[visit][1].append(number)
        elif back and back[-1][0] == line is not None:
            back[-1][1].append(number)
        else:
            back.append([line, [number], False, False])
        number += 1
    ordered = []
    for visit, step in enumerate(steps):
        ordered += [step, *later.get(visit, [])]
    # Without a mark of its own: made before the first line, or, where all lines stand in an inner function, after it.
    ordered = later.get(-1, []) + ordered if marked else ordered + later.get(-1, [])
    return tuple(Step(line, tuple(added), inner, known) for line, added, inner, known in ordered)
