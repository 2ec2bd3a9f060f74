"""Runs the reader's code: finds out whether there is any, calls it, and tells their errors from ours."""

import ast
import dis
import functools
import inspect
import linecache
import re
import textwrap
import types

import jax

from mlax_tutorial.checking import limits
from mlax_tutorial.checking.describe import kind
from mlax_tutorial.checking.outcome import Failed, NotAttempted
from mlax_tutorial.inspection.retracing import underlying
from mlax_tutorial.inspection.theirs import is_theirs

waits = False  # whether to wait for what a function returns: where a program that hangs would be taken for the next answer's


class Raised(Failed):
    """The reader's own code raised ``error``. If ``final``, it is no use to try other inputs."""

    def __init__(self, message, error, final=False, **shown):
        super().__init__(message, **shown)
        self.error = error
        self.final = final


# Stubs


def is_open(answer):
    """Whether an answer is only the stub that the book gives: nothing to grade."""
    if answer is ... or answer is NotImplemented:
        return True
    if isinstance(answer, (dict, list, tuple)):  # one that is half filled is an attempt
        items = list(answer.values()) if isinstance(answer, dict) else answer
        return bool(items) and all(item is ... for item in items)
    if isinstance(answer, type):
        methods = [value for value in vars(answer).values() if isinstance(value, types.FunctionType)]
        return any(
            is_open(method) for method in methods if method.__code__.co_filename != "<string>"
        )  # not a dataclass's own
    function = underlying(answer)
    return isinstance(function, types.FunctionType) and (_is_empty(function) or _has_gap(function))


def _is_empty(function):
    """Only ``...``, ``pass``, a docstring, ``return`` or ``raise NotImplementedError``."""
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        return False
    code = [
        (instruction.opname, instruction.argval)
        for instruction in dis.get_instructions(function)
        if instruction.opname not in ("RESUME", "NOP", "CACHE", "MAKE_CELL", "COPY_FREE_VARS")
    ]
    names = [argument for name, argument in code if name == "LOAD_GLOBAL"]
    if names == ["NotImplementedError"] and "RAISE_VARARGS" in [name for name, _ in code]:
        return {name for name, _ in code} <= {
            "LOAD_GLOBAL",
            "LOAD_CONST",
            "CALL",
            "RAISE_VARARGS",
            "PUSH_NULL",
        }
    if {name for name, _ in code} <= {"RETURN_CONST", "LOAD_CONST", "RETURN_VALUE"}:
        return all(argument is None or argument is ... for _, argument in code)
    return False


def _has_gap(function):
    """Whether ``...`` still stands as a statement, or is assigned or returned, in the source (if it is known)."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    return any(
        isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return))
        and isinstance(node.value, ast.Constant)
        and node.value.value is ...
        for node in ast.walk(tree)
    )


# Calling


def guard(function, name, note=lambda args, kwargs: None):
    """The reader's function with its errors turned into `Raised`; what it is and does is otherwise unchanged.

    ``note(args, kwargs)`` is called for each call that gives a result.
    """

    def guarded(*args, **kwargs):
        __tracebackhide__ = True
        try:
            result = function(*args, **kwargs)
        except (Failed, NotAttempted, limits.TimeUp, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise as_theirs(error) from None
        if result is ... or result is NotImplemented:
            raise NotAttempted
        note(args, kwargs)
        return jax.block_until_ready(result) if waits and _is_tree(result) else result

    functools.update_wrapper(guarded, function, updated=())
    guarded.__name__ = getattr(function, "__name__", name)
    guarded.original = function
    return guarded


def _is_tree(result):
    """Whether JAX can flatten it: not a dict whose keys cannot be sorted, such as one from devices to bytes."""
    try:
        jax.tree.structure(result)
    except ValueError:
        return False
    return True


def make(cls, *args, **kwargs):
    """An instance of the reader's class; an error on the way is shown as theirs."""
    if is_open(cls):
        raise NotAttempted
    return guard(cls, cls.__name__)(*args, **kwargs)


def original(function):
    """The reader's function without its guard."""
    return getattr(function, "original", function)


def bare(function):
    """The reader's function without its guard, so that JAX's own errors come through; reports still begin with it."""
    if not hasattr(function, "original"):
        return function

    @functools.wraps(function.original, updated=())
    def unguarded(*args, **kwargs):
        return function.original(*args, **kwargs)

    return unguarded


def as_theirs(error, check=None):
    """The reader's error, to be raised as a `Failed`: type, message, and the lines of their code on the way to it."""
    if isinstance(error, Raised):
        return error
    lines = lines_of(error, check)
    if isinstance(error, NotImplementedError) and not str(error):
        return NotAttempted()
    if limits.is_loop_limit(error):
        message = (
            "A loop inside JAX (`while_loop` or `fori_loop`) went over the limit of iterations and was stopped. "
            "Look at its condition: does what it tests change in the body, and does it come to an end?"
        )
        return Raised(message, error, final=True, shown=lines)
    if isinstance(error, RecursionError):
        message = "Your code calls itself without an end: Python stopped it with a `RecursionError`."
    elif isinstance(error, SystemExit):
        message = "Your code asks Python to exit (`SystemExit`). Return a result instead."
    elif isinstance(error, TypeError) and not lines and "argument" in str(error):
        # A call that the signature refuses is no mistake on a line of the reader's.
        message = f"Your function could not be called as the exercise calls it: {_message(error)}"
    else:
        message = f"Your code raised {describe_error(error)}"
    return Raised(message, error, shown=lines)


# JAX's errors that learners meet, most special first, and what is behind them.
_BEHIND = (
    (
        "TracerBoolConversionError",
        "an `if`, `while` or `and` asks for the value of a traced array, which has none yet",
    ),
    ("TracerArrayConversionError", "a traced array was given to NumPy: use the function of `jnp`"),
    (
        "TracerIntegerConversionError",
        "a traced array is used where Python needs a whole number, as in `range` or a shape",
    ),
    (
        "NonConcreteBooleanIndexError",
        "a mask as an index gives a shape that depends on values: use `jnp.where`",
    ),
    ("ConcretizationTypeError", "Python needs a number here, and a traced array has none yet"),
    (
        "UnexpectedTracerError",
        "a tracer has outlived its trace: it was kept in a global, a list or an attribute",
    ),
    ("KeyReuseError", "a random key is used twice: split it, and use each new one once"),
)


# Errors of Python's own types, known by their words.
_WORDS_BEHIND = (
    (
        "Non-hashable static arguments",
        "an argument that is declared static has to be a plain Python value, and this one is an array",
    ),
    (
        "'_IndexUpdate(Helper|Ref)'.*item assignment|unsupported operand.*'_IndexUpdate",
        "`.at[…]` is no place to assign to: it has methods, as in `x = x.at[i].set(y)`",
    ),
    (
        "parameters to jaxpr equations must have __hash__",
        "a traced number stands where a plain one is needed, as for a size or for how many keys are split off",
    ),
)


def describe_error(error):
    """Type, message, and for JAX's own errors what is behind them."""
    text = f"{type(error).__name__}: {_message(error)}"
    names = [base.__name__ for base in type(error).__mro__]
    for name, behind in _BEHIND:
        if name in names:
            return f"{text}\nThat is: {behind}."
    for words, behind in _WORDS_BEHIND:
        if re.search(words, str(error)):
            return f"{text}\nThat is: {behind}."
    return text


def _message(error):
    """The first paragraph of an error's message, without addresses and temporary paths."""
    text = str(error).strip() or "(no message)"
    text = text.split("\n\n")[0]
    lines = [
        line
        for line in text.splitlines()
        if not line.startswith(("See https://", "The error occurred while"))
    ]
    text = "\n".join(lines[:6])
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", text)
    text = re.sub(r"(?<!\w)/[^\s:,\"']*/([^\s/:,\"']+)", r"\1", text) if "://" not in text else text
    return text if len(text) <= 600 else text[:596] + " ..."


def lines_of(error, check=None, most=4):
    """The reader's lines in a traceback, outermost first, as a row to show; nothing of JAX's or the checker's.

    ``check`` is the exercise's own function, whose file is not the reader's.
    """
    ours = check.__code__.co_filename if check is not None else ""
    found = []
    frames = _frames(error.__traceback__, ours)
    # A second alarm may ring on the way out of the reader's code; the first stands behind it.
    while not frames and (error := error.__cause__ or error.__context__) is not None:
        frames = _frames(error.__traceback__, ours)
    for frame, line in frames:
        code = frame.f_code
        source = linecache.getline(code.co_filename, line, frame.f_globals).strip()
        found.append(f"line {line}, in {code.co_name}" + (f":  {source}" if source else ""))
    if len(found) > most:
        found = [*found[:2], "... and further calls ...", found[-1]]
    return [("your code", "\n".join(found))] if found else []


def _frames(traceback, ours):
    """The reader's frames and line numbers: what came after the first `guard` or `bare`; else what is not ours."""
    frames, guarded = [], False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not guarded and code.co_filename == __file__ and code.co_name in ("guarded", "unguarded"):
            frames, guarded = [], True
        elif is_theirs(code.co_filename) and (guarded or code.co_filename != ours):
            frames.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return frames


# What was handed in


def admit(answer, solution):
    """Says at once what is wrong with a thing that is not even a function, where a function is asked for."""
    if isinstance(solution, type):
        if not isinstance(answer, type):
            instance = type(answer).__name__
            made = hasattr(answer, "__dict__") and not callable(underlying(answer))
            hint = f": hand in `{instance}`, not `{instance}(…)`" if made or hasattr(answer, "fwd") else ""
            raise Failed(f"You gave {kind(answer)}, but a class is asked for{hint}.")
        return
    if not callable(solution):
        return
    name = "the exercise's function"
    if isinstance(answer, type):
        raise Failed(
            f"You gave the class `{answer.__name__}`, but {name} is asked for: a `def`, not a `class`."
        )
    if not callable(answer):
        raise Failed(
            f"You gave {kind(answer)}, but a function is asked for. Hand in the function itself, without calling "
            "it: `check(f)`, not `check(f(x))`.",
            got=answer,
        )
    function = underlying(answer)
    if inspect.isgeneratorfunction(function):
        raise Failed(
            "Your function is a generator: it has a `yield`, so a call returns at once and computes nothing. "
            "Collect the results and `return` them."
        )
    if inspect.iscoroutinefunction(function):
        raise Failed("Your function is `async`: a call only makes a coroutine. Use a plain `def`.")
    wanted, given = _signature(solution), _signature(answer)
    if wanted is None or given is None:
        return
    placeholders = [p for p in wanted.parameters.values() if p.default is p.empty]
    positional = [p for p in placeholders if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    keywords = {p.name: None for p in placeholders if p.kind is p.KEYWORD_ONLY}
    try:
        given.bind(*[None] * len(positional), **keywords)
    except TypeError:
        raise Failed(
            f"Your function takes {_parameters(given)}, but the exercise calls it with {_parameters(wanted)}."
        ) from None


def _signature(function):
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _parameters(signature):
    plain = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    return f"`{signature.replace(parameters=plain, return_annotation=signature.empty)}`"
