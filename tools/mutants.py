"""Are the checks of the exercises strict? Changes each solution by one small step after the other, and sees whether its check notices.

    python -m tools.mutants [--check] [CHAPTER | CHAPTER.EXERCISE ...]

A *mutant* is the solution with one step: an operator, a number or a comparison exchanged, an argument left out, a size replaced by
the one that it has in the check, a function that narrows or widens left out, a random key used twice; or its result without a
gradient, rounded to half precision, remembered from the first call, or with a NaN in it; or, where the task promises any pytree,
a solution that knows dicts, lists and tuples alone. A mutant that passes its check shows a hole in it, unless no check could tell
it from the solution. Then the exercise's answers say so (``answers.equivalent("mutant", …, because="…")``), in
`tests/exercises/CHAPTER/EXERCISE.py`. Every other survivor is an error, and so is a note that no survivor needs.

What was found is noted in `book/_mutants.json`, for the page *Status*; with ``--check`` nothing is written, and another number than
what stands there is an error, too.
"""

import argparse
import ast
import collections
import concurrent.futures
import copy
import functools
import importlib
import inspect
import itertools
import json
import linecache
import math
import multiprocessing
import re
import sys
import textwrap
import time

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import devices, guarding
from mlax_tutorial.checking.outcome import NOT_GRADED, PASSED
from mlax_tutorial.exercises import catalog
from tools.notebooks import exercises, record, sources
from tools.notebooks.places import Book

OTHER = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
# Calls that a reader may forget; what is left is their first argument, or what the method belongs to.
FORGOTTEN = set(
    "abs astype block_until_ready clip cumsum exp expm1 flip log log1p max maximum mean min minimum negative reshape round sqrt square "
    "squeeze stop_gradient sum swapaxes transpose".split()
)
METHODS = set(
    "astype block_until_ready clip cumsum max mean min reshape round squeeze sum swapaxes transpose".split()
)
MODULES = {
    "jnp",
    "np",
    "lax",
    "jax",
    "nn",
    "jax.nn",
    "jax.lax",
    "jax.numpy",
    "jax.random",
    "jax.scipy.special",
}


# Steps that change something only when the mutant runs, or nothing at all.
NO_GRADIENT, ROUNDED, REMEMBERS, SPOILED, PLAIN = LATE = (
    "without a gradient",
    "rounded to float16",
    "remembers its first result",
    "the last number is NaN",
    "knows only dicts, lists and tuples",
)


def mutants(source, sizes):
    """Pairs of a text that names the step, and the changed tree of a solution's source.

    ``sizes`` are those that the source's expressions for a size have in the check.
    """
    tree = ast.parse(source)
    seen = collections.Counter()
    said = {id(node) for text in ast.walk(tree) if isinstance(text, ast.JoinedStr) for node in ast.walk(text)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in said:  # what a message says is nobody's business
            continue
        for what, edit in _steps(node, sizes):
            changed = copy.deepcopy(tree)
            edit(list(ast.walk(changed))[place])
            seen[what] += 1
            yield what if seen[what] == 1 else f"{what} ({seen[what]})", ast.fix_missing_locations(changed)


def _steps(node, sizes):
    """Pairs of a text, and a function that changes a copy of the node in place."""
    text = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt | ast.arguments) else ""

    def step(edit):
        trial = copy.deepcopy(node)
        edit(trial)
        return f"{_short(text)} -> {_short(ast.unparse(trial))}", edit

    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:

            def other(node):
                node.op = OTHER[type(node.op)]()

            yield step(other)
        case ast.Compare(ops=[op, *_]) if type(op) in OTHER:

            def other(node):
                node.ops[0] = OTHER[type(node.ops[0])]()

            yield step(other)
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield step(lambda node: _become(node, node.operand))
        case ast.Return(value=ast.expr()):
            yield f"{_short(text)}: {NO_GRADIENT}", lambda node: _wrap(node, "_no_gradient")
            yield f"{_short(text)}: {ROUNDED}", lambda node: _wrap(node, "_halved")
        case ast.Subscript() if text in sizes:
            yield step(lambda node: _become(node, ast.Constant(sizes[text])))
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Attribute(attr="shape")):
            for axis in range(len(parts)):
                if (size := sizes.get(f"{text}[{axis}]")) is not None:
                    yield step(lambda node, axis=axis, size=size: _wrap(node, f"_with_size({axis}, {size})"))
        case ast.Call(func=function):
            name = getattr(function, "attr", getattr(function, "id", ""))
            if text in sizes:
                yield step(lambda node: _become(node, ast.Constant(sizes[text])))
            if name == "split":
                yield step(lambda node: _become(node, _called("_one_key", ast.unparse(node))))
            for number, keyword in enumerate(node.keywords):
                if keyword.arg:
                    yield step(lambda node, number=number: node.keywords.pop(number))
            if name in FORGOTTEN:
                method = isinstance(function, ast.Attribute) and ast.unparse(function.value) not in MODULES
                if method and name in METHODS:
                    yield step(lambda node: _become(node, node.func.value))
                elif not method and node.args:
                    yield step(lambda node: _become(node, node.args[0]))
    yield from _other_numbers(node, step)


def _other_numbers(node, step):
    """A number is named with what it stands in, so the step belongs to the node that holds it."""
    if not isinstance(node, ast.expr | ast.stmt | ast.arguments) or isinstance(node, ast.Constant):
        return
    for field, values in ast.iter_fields(node):
        for number, value in enumerate(values if isinstance(values, list) else [values]):
            held = value.value if isinstance(value, ast.keyword) else value
            if not isinstance(held, ast.Constant) or type(held.value) not in (int, float):
                continue
            for new in sorted(
                {held.value + 1, held.value - 1} if type(held.value) is int else {held.value * 2, 0.0}
            ):
                if new == held.value:
                    continue

                def other(node, field=field, number=number, new=new):
                    inside = getattr(node, field)
                    inside = inside[number] if isinstance(inside, list) else inside
                    (inside.value if isinstance(inside, ast.keyword) else inside).value = new

                yield step(other)


def _become(node, other):
    other = copy.deepcopy(other)
    node.__class__ = other.__class__
    node.__dict__.clear()
    node.__dict__.update(other.__dict__)


def _called(helper, text):
    return ast.parse(f"{helper}({text})", mode="eval").body


def _wrap(node, helper):
    node.value = _called(helper, ast.unparse(node.value))


class _Measured(ast.NodeTransformer):
    """Puts a call of ``_size`` around each expression that is a size."""

    def visit_Subscript(self, node):
        self.generic_visit(node)
        text = ast.unparse(node)
        whole = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        single = not isinstance(node.slice, ast.Slice)
        return _called(f"_size({text!r})", text) if whole and single else node

    def visit_Call(self, node):
        self.generic_visit(node)
        text = ast.unparse(node)
        return _called(f"_size({text!r})", text) if getattr(node.func, "id", "") == "len" else node

    def visit_Assign(self, node):
        text = ast.unparse(node)
        if isinstance(node.targets[0], ast.Tuple) and getattr(node.value, "attr", "") == "shape":
            node.value = _called(f"_all_sizes({text!r})", ast.unparse(node.value))
            return node
        return self.generic_visit(node)


def _short(text):
    return " ".join(text.split())


# What a mutant's source calls.


changed = []  # what the step of this mutant changed while it ran: where it stays empty, there was nothing to notice


def _floats(function, tree):
    def one(x):
        return function(x) if hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating) else x

    return jax.tree.map(one, tree)


@jax.custom_jvp
def _stopped(x):
    return x


def _no_tangent(primals, tangents):
    (x,), (tangent,) = primals, tangents
    if not isinstance(tangent, jax.custom_derivatives.SymbolicZero):
        changed.append(x.dtype)
    return x, jnp.zeros_like(x)


_stopped.defjvp(_no_tangent, symbolic_zeros=True)


def _rounded(x):
    if x.dtype == jnp.float16:
        return x
    new = x.astype(jnp.float16).astype(x.dtype)
    if isinstance(x, jax.core.Tracer) or not bool(jnp.array_equal(x, new, equal_nan=True)):
        changed.append(x.dtype)
    return new


def _one_key(keys):
    return keys[jnp.zeros(keys.shape[0], int)]


def _remembering(function):
    """A function that gives for arguments of known shapes what it gave the first time."""
    results = {}

    @functools.wraps(function)
    def remembering(*args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return function(*args, **kwargs)
        arrays = [leaf for leaf in leaves if hasattr(leaf, "shape")]
        known = structure, tuple(getattr(leaf, "shape", leaf) for leaf in leaves)
        try:
            hash(known)
        except TypeError:
            return function(*args, **kwargs)
        if known not in results:
            results[known] = arrays, function(*args, **kwargs)
        first, result = results[known]
        if not all(one is other or _equal(one, other) for one, other in zip(first, arrays, strict=True)):
            changed.append(known)
        return result

    return remembering


def _spoiled(function):
    """A function whose results end with a NaN."""

    def one(x):
        if isinstance(x, float):
            changed.append(float)
            return math.nan
        if not (hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating) and x.size):
            return x
        changed.append(x.dtype)
        return jnp.where(jnp.arange(x.size) == x.size - 1, jnp.nan, jnp.ravel(x)).reshape(x.shape)

    @functools.wraps(function)
    def spoiled(*args, **kwargs):
        return jax.tree.map(one, function(*args, **kwargs))

    return spoiled


def _plain(function):
    """A function that knows no trees but plain ones."""

    def look(tree):
        if isinstance(tree, dict | list | tuple):
            changed.append(type(tree))
        if type(tree) in (dict, list, tuple):
            for part in tree.values() if isinstance(tree, dict) else tree:
                look(part)
        elif tree is not None and not jax.tree_util.all_leaves([tree]):
            raise TypeError(f"a tree of another kind: {type(tree).__name__}")

    @functools.wraps(function)
    def plain(*args, **kwargs):
        look((args, kwargs))
        return function(*args, **kwargs)

    return plain


def _equal(one, other):
    if one.dtype != other.dtype:
        return False
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        one, other = jax.random.key_data(one), jax.random.key_data(other)
    return np.array_equal(one, other)


def _with_size(axis, size):
    return lambda shape: (*shape[:axis], size, *shape[axis + 1 :])


HELPERS = {
    "_with_size": _with_size,
    "_no_gradient": functools.partial(_floats, _stopped),
    "_halved": functools.partial(_floats, _rounded),
    "_one_key": _one_key,
}


class Report:
    """What became of the mutants of one exercise."""

    def __init__(self, name):
        self.name, self.count, self.alive, self.broke, self.seconds = name, 0, [], [], 0.0

    def add(self, step, grade):
        """Grades a mutant, and counts it, unless it is no program or its step had nothing to change."""
        changed.clear()
        outcome = grade()
        if outcome is None or (step.endswith(LATE) and not changed):
            return
        self.count += 1
        if outcome.status == PASSED:
            self.alive.append(step)
        elif outcome.status == NOT_GRADED:
            self.broke.append(f"{step}: {outcome.message}")


def examine(names):
    """The reports on exercises of one chapter that need as many devices, in a process of its own."""
    chapter = names[0].partition(".")[0]
    chosen = [one for one in catalog.of(chapter) if f"{chapter}.{one.name}" in names]
    jax.config.update("jax_num_cpu_devices", max(2, chosen[0].devices))  # two, as in the tests
    if chosen[0].devices > 1:
        devices.inside = guarding.waits = True
    jax.config.update("jax_disable_most_optimizations", True)
    tasks = dict(exercises.tasks(sources.read(Book(), chapter).cells))
    return [report_on(one, f"{chapter}.{one.name}", tasks[one.name]) for one in chosen]


def report_on(exercise, name, task=""):
    """The `Report` on an exercise that asks for ``task``; without mutants where its solution is a value."""
    function = guarding.underlying(exercise.answer)
    began, report = time.monotonic(), Report(name)
    if not (inspect.isfunction(function) or inspect.isclass(function)):
        return report
    source = textwrap.dedent(inspect.getsource(function))
    outcome, sizes = _sizes_in_the_check(
        functools.partial(_grade, exercise, function, exercise.seconds), source
    )
    if outcome is None or outcome.status != PASSED:  # as it was measured, or as it stands?
        outcome = exercise.grade(exercise.answer)
    if outcome.status != PASSED:  # then its mutants fail, too, and say nothing
        report.broke.append(f"the solution itself does not pass: {outcome.message}")
        return report
    seconds = 2 + 4 * (time.monotonic() - began)  # a mutant may loop for ever
    for step, tree in mutants(source, sizes):
        if step.endswith(NO_GRADIENT) and not exercise.differentiable:
            continue
        report.add(step, lambda tree=tree: _grade(exercise, function, seconds, tree))
    if inspect.isfunction(function):
        report.add(REMEMBERS, lambda: exercise.grade(_remembering(exercise.answer), seconds))
        report.add(SPOILED, lambda: exercise.grade(_spoiled(exercise.answer), seconds))
        if re.search(r"\b(any (py)?tree|is a pytree)\b", task):
            report.add(PLAIN, lambda: exercise.grade(_plain(exercise.answer), seconds))
    report.seconds = time.monotonic() - began
    return report


def _grade(exercise, function, seconds, tree, **helpers):
    """The outcome of a changed solution; None where it is not even a program."""
    source = ast.unparse(tree)
    module = sys.modules[function.__module__]
    scope = vars(module) | HELPERS | helpers
    file = f"<mutant of {exercise.name} {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    try:
        exec(compile(source, file, "exec"), scope)
    except Exception:
        return None
    return exercise.grade(scope[function.__name__], seconds)


def _sizes_in_the_check(grade, source):
    """The outcome, and for each expression that is a size, the size that it has most often in the check."""
    found = collections.defaultdict(collections.Counter)

    def size(text):
        def note(value):
            if isinstance(value, int):
                found[text][value] += 1
            return value

        return note

    def all_sizes(text):
        def note(shape):
            for axis, value in enumerate(shape):
                size(f"{text}[{axis}]")(value)
            return shape

        return note

    tree = ast.fix_missing_locations(_Measured().visit(ast.parse(source)))
    outcome = grade(tree, _size=size, _all_sizes=all_sizes)
    return outcome, {text: counts.most_common(1)[0][0] for text, counts in found.items()}


def chosen(names):
    """Lists of names of exercises, those of one chapter together if they need as many devices."""
    groups = {}
    for chapter in catalog.chapters():
        for exercise in catalog.of(chapter):
            name = f"{chapter}.{exercise.name}"
            if not names or chapter in names or name in names:
                groups.setdefault((chapter, exercise.devices), []).append(name)
    return [*groups.values()]


def excused(name):
    """The mutants that the exercise's answers call equivalent."""
    return importlib.import_module(f"tests.exercises.{name}").answers.equivalents


def reports(names):
    """Yields the `Report` on each exercise that was asked for."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context, max_tasks_per_child=1) as pool:
        yield from itertools.chain.from_iterable(pool.map(examine, chosen(names)))


def faults(report):
    """What there is to mend, in lines."""
    equal = excused(report.name)
    for step in report.alive:
        if step not in equal:
            yield f"alive: {step}: let the check notice it, or say answers.equivalent({step!r}, because=…)"
    for step in equal:
        if step not in report.alive:
            yield f"called equivalent, but the check notices it, or there is no such mutant: {step}"
    yield from (f"the check broke: {step}" for step in report.broke)


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; another number than the noted one is an error"
    )
    parser.add_argument("names", nargs="*", metavar="CHAPTER[.EXERCISE]")
    options = parser.parse_args()
    for name in options.names:
        if not chosen([name]):
            known = list(itertools.chain(*chosen([name.partition(".")[0]]))) or catalog.chapters()
            parser.error(f"no chapter and no exercise {name!r}; there are: {', '.join(known)}")
    book = Book()
    noted = json.loads(book.mutants.read_text()) if book.mutants.exists() else {}
    found, wrong = {}, 0
    for report in reports(options.names):
        alike = len(set(report.alive) & set(excused(report.name)))
        score = {"mutants": report.count, "alive": len(report.alive) - alike, "alike": alike}
        if not report.broke:
            found[report.name] = score
        lines = [*faults(report)]
        if options.check and noted.get(report.name) != score:
            lines.append(f"{book.relative(book.mutants)} says {noted.get(report.name)}, and this run {score}")
        print(f"{report.name}: {report.count} mutants, {alike} alike, {report.seconds:.0f} s", flush=True)
        print(*(f"    {line}\n" for line in lines), sep="", end="", flush=True)
        wrong += len(lines)
    if not options.check:
        kept = (noted if options.names else {}) | found
        order = [name for names in chosen(()) for name in names if name in kept]
        lines = (f"  {json.dumps(name)}: {json.dumps(kept[name])}" for name in order)
        record.write_beside(book.mutants, "{\n" + ",\n".join(lines) + "\n}\n")
    total = {what: sum(score[what] for score in found.values()) for what in ("mutants", "alive", "alike")}
    print(", ".join(f"{count} {what}" for what, count in total.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
