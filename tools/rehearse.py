"""Rehearse other devices on this CPU: a TPU's rounding of products, a CPU without AVX2, a device that is no CPU.

    python -m tools.rehearse [--take reached]       the next two, two processes at a time, but for chapters that train, and of the others
                                                    perhaps what a change reaches (tools/reach.py):
                                                    `make test-tpu` rehearses these in the kernel that it needs anyway
    python -m tools.rehearse notebooks [NAME ...]   every chapter, from top to bottom: its assertions must hold
    python -m tools.rehearse exercises              the solution of every exercise must pass its check
    python -m tools.rehearse run SCRIPT [ARGS ...]  any Python program, with rounded products alone

By default a TPU rounds the inputs of float32 products to bfloat16, and a CPU does not; so code that is right on
a CPU may miss its tolerance on a TPU. Here products are rounded where JAX lowers them for the CPU. Nothing else
changes: not the jaxprs, not the dtypes, and products that ask for ``precision="highest"``, by themselves or by
`jax.default_matmul_precision`, stay exact. Any other precision than the highest counts as the default.

In the same run XLA uses no instructions beyond AVX, so multiplications and additions are not fused, vectors are shorter,
and the last bits of numbers differ. One could mask the other only in a product at default precision, where rounding
moves a result ten thousand times further than the last bits do; all else is computed as on the second CPU alone.

And a chapter is told that it does not run on a CPU: `jax.default_backend()` is ``"gpu"``, a result is ready at random, the compiled
text has none of the CPU's operations, the cost analysis two entries. (A GPU's TF32 products are more exact than a TPU's.)
Numbers, aliases and what stands in the jaxpr stay the CPU's: so a chapter may assert what holds *if* this is a CPU, never
what holds only if it is not.

What fails is run again with each setting alone, and the message says which it was. ``--only`` does so by hand.
"""

import argparse
import concurrent.futures
import contextlib
import functools
import importlib
import multiprocessing
import os
import pathlib
import random
import re
import runpy
import sys
import time
import unittest.mock

import jax
import jax.numpy as jnp
from jax._src.array import ArrayImpl  # (To take the type of an array would start the CPU.)
from jax.extend.core import primitives

# The tables of lowering rules have no public name. `register_lowering` has, but a rule that is to call the
# earlier one must find it first.
from jax.interpreters import mlir

from mlax_tutorial.inspection import jaxprs
from tools import project
from tools.notebooks.places import Book, Problem

PRODUCTS = (primitives.dot_general_p, primitives.conv_general_dilated_p)


@contextlib.contextmanager
def rounded_products():
    """In the block, products are rounded as on a TPU. Programs that were compiled before are compiled anew.

    >>> def product():
    ...     return float(jnp.dot(jnp.float32([1.001]), jnp.float32([1.0])))
    >>> with rounded_products():
    ...     rounded = product()
    >>> rounded, round(product(), 3)
    (1.0, 1.001)
    """
    stop = start()
    try:
        yield
    finally:
        stop()


def start():
    """From now on, products are rounded. Returns the function that ends it."""
    table = mlir._platform_specific_lowerings["cpu"]
    before = {primitive: table.get(primitive) for primitive in PRODUCTS}
    for primitive in PRODUCTS:
        entry = before[primitive] or mlir._lowerings[primitive]
        mlir.register_lowering(primitive, functools.partial(_lower_rounded, entry.rule), platform="cpu")
    jax.clear_caches()

    def stop():
        for primitive, entry in before.items():
            del table[primitive]
            if entry is not None:
                table[primitive] = entry
        jax.clear_caches()

    return stop


def _lower_rounded(rule, context, left, right, **params):
    if not jaxprs.asks_for_highest(params["precision"]):

        def both(left, right):
            return jaxprs.round_to(left, jnp.bfloat16), jaxprs.round_to(right, jnp.bfloat16)

        lower = mlir.lower_fun(both, multiple_results=True)
        left, right = lower(context.replace(avals_out=context.avals_in, primitive=None), left, right)
    return rule(context, left, right, **params)


def is_rounding():
    """Whether a product, at default precision, is rounded now."""
    return float(jax.jit(lambda x: jnp.dot(x, x))(jnp.float32([1.001]))) == 1.0


# Operations that the compiled text of any device names: what moves data between devices, and what holds a program together.
_EVERYWHERE = (
    r"all-\w+|collective-\w+|reduce-scatter|while|call|fusion|custom-call|parameter|tuple|get-tuple-element"
)


def pretend():
    """From now on, JAX seems to run on a GPU. Returns the function that ends it."""
    compiled, array = jax.stages.Compiled, ArrayImpl
    kept = [(jax, "default_backend"), (compiled, "as_text"), (compiled, "cost_analysis"), (array, "is_ready")]
    before = [getattr(owner, name) for owner, name in kept]
    _, as_text, cost_analysis, _ = before
    coin = random.Random(0)

    def some_costs(self):
        return {
            name: value for name, value in cost_analysis(self).items() if name in ("flops", "bytes accessed")
        }

    def other_text(self):
        return re.sub(rf" (?!(?:{_EVERYWHERE})\()[a-z][\w-]*\(", " other(", as_text(self))

    def ready(self):
        return coin.random() < 0.5

    for (owner, name), other in zip(kept, [lambda: "gpu", other_text, some_costs, ready]):
        setattr(owner, name, other)

    def stop():
        for (owner, name), own in zip(kept, before):
            setattr(owner, name, own)

    return stop


# What can be rehearsed, together or alone.
ROUNDING, SECOND_CPU, NO_CPU = "rounding", "second-cpu", "no-cpu"
BOTH = (ROUNDING, SECOND_CPU)  # of an exercise
ALL = (*BOTH, NO_CPU)  # of a chapter
# XLA reads it when JAX first uses a device. Without LLVM's last optimizations, a tenth of the time is saved.
INSTRUCTIONS = {"XLA_FLAGS": "--xla_cpu_max_isa=AVX --xla_backend_optimization_level=1"}


def is_fusing():
    """Whether this CPU multiplies and adds in one instruction, which rounds once: never without AVX2."""
    x = jnp.full(64, 1.0001, jnp.float32)
    square = jax.jit(lambda x: x * x)(x)
    return bool(jnp.any(jax.jit(lambda x, square: x * x - square)(x, square) != 0))


def check(settings):
    """What is rehearsed really is: a kernel or a process asks itself."""
    assert is_rounding() == (ROUNDING in settings), "products are not rounded as they should be"
    assert SECOND_CPU not in settings or not is_fusing(), "instructions beyond AVX are in use"
    assert (jax.default_backend() == "gpu") == (NO_CPU in settings), "JAX does not seem to run on a GPU"


def run(tasks, only=(), jobs: int = 2) -> int:
    """Runs tasks, `jobs` processes at a time, each a function, what it is about, and settings, of which those in `only` are
    rehearsed, if it is given. Returns how many failed.
    """
    failed = 0
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, spawn, _begin, (only or BOTH,)) as pool:
        running = [pool.submit(function, unit, only or settings) for function, unit, settings in tasks]
        for task in concurrent.futures.as_completed(running):
            passed, text = task.result()
            failed += not passed
            print(text, file=sys.stdout if passed else sys.stderr, flush=True)
    print(f"{len(tasks) - failed} of {len(tasks)} passed, rehearsing {' and '.join(only or ALL)}")
    return failed


def _begin(settings):
    """Makes a process one that rehearses. (What it compiled for one exercise, others find.)"""
    if SECOND_CPU in settings:
        os.environ.update(INSTRUCTIONS)
    if ROUNDING in settings:
        start()


def exercises():
    """Every exercise, as tasks: its file in the package."""
    folder = project.ROOT / "mlax_tutorial" / "exercises"
    files = sorted(path for path in folder.glob("*/*.py") if not path.name.startswith("_"))
    return [(_exercise, path.relative_to(project.ROOT).as_posix(), BOTH) for path in files]


def _exercise(unit: str, settings) -> tuple[bool, str]:
    """Grades the solution of an exercise."""
    from mlax_tutorial.checking.outcome import PASSED

    module = importlib.import_module(unit.removesuffix(".py").replace("/", "."))
    exercise = module.exercise
    check(settings)
    # Optimized, as a check runs on a GPU or a TPU; on a CPU it compiles quickly, which `tests/exercises` grades.
    with unittest.mock.patch("mlax_tutorial.checking.settings._quick_to_compile", contextlib.nullcontext):
        outcome = exercise.grade(exercise.answer)
    if outcome.status == PASSED:
        return True, f"{unit}: its solution passes"
    hint = f"which of {' and '.join(settings)} it is: python -m tools.rehearse exercises --only {ROUNDING}"
    return False, "\n".join([f"{unit}: {outcome}", hint if len(settings) > 1 else ""])


def notebooks(names=(), *, elsewhere=True):
    """Chapters, as tasks, the longest first; with those that are rehearsed elsewhere, too, if asked for."""
    from tools.notebooks import record, sources

    book = Book()
    chapters = [sources.read(book, name) for name in record.longest_first(book, book.select(names))]
    return [
        (_notebook, book.relative(book.notebook(chapter.name)), ALL)
        for chapter in chapters
        if chapter.executes and (elsewhere or not trains(chapter.name, chapter.cells))
    ]


# It counts the Python calls behind a call of `jit`, which a recorder adds to. Its programs are those of the chapter on layers.
TAKES_JIT_APART = {"objects"}


def trains(name: str, cells) -> bool:
    """Whether a chapter uses an optimizer: then what it jits is compiled for a TPU, in a kernel that rehearses, too (`tests/tpu`).
    (Chapters of Part I take `jit` itself apart, which the recorder of programs disturbs.)
    """
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    return name not in TAKES_JIT_APART and any(re.search(r"\b(optax|optim)\b", source) for source in code)


@contextlib.contextmanager
def kernel_for(book, notebook, settings=ALL):
    """A kernel for the cells of a notebook, which rehearses."""
    from tools.notebooks import kernel

    variables = INSTRUCTIONS if SECOND_CPU in settings else {}
    with kernel.start(book, notebook, clean=True, variables=variables) as running:
        running.ask("import tools.rehearse as _rehearse")
        if ROUNDING in settings:
            running.ask("_rehearse.start()")
        if NO_CPU in settings:
            running.ask("_rehearse.pretend()")
        yield running


def lost(running, settings=ALL) -> str | None:
    """What such a kernel no longer rehearses when the cells have run, or None."""
    said = running.ask(f"print(_rehearse.lost_here({settings!r}))").strip().splitlines()
    return None if said[-1] == "None" else said[-1]


def lost_here(settings) -> str | None:
    try:
        check(settings)
    except AssertionError as error:
        return str(error)


def _notebook(unit: str, settings=ALL, book=None) -> tuple[bool, str]:
    """Runs a chapter; if it fails, again with each setting alone, to tell which one it was."""
    name = pathlib.PurePath(unit).stem
    begun = time.perf_counter()
    if (problem := _problem(name, settings, book)) is None:
        return True, f"{name}: {time.perf_counter() - begun:.1f} s"
    lines = [f"\n{problem}"]
    if len(settings) > 1:
        alone = {each: _problem(name, (each,), book) is None for each in settings}
        lines += [
            f"{name}, {each} alone: {'passes' if passes else 'fails'}" for each, passes in alone.items()
        ]
    return False, "\n".join(lines)


def _problem(name: str, settings, book=None) -> str | None:
    """Runs a chapter from top to bottom; returns what went wrong."""
    import nbformat

    from tools.notebooks import kernel, sources
    from tools.notebooks import run as chapters

    book = book or Book()
    if not book.notebook(name).exists():
        return f"{name}: not built: run `.venv/bin/python -m tools.notebooks build {name}`"
    notebook = nbformat.read(book.notebook(name), as_version=4)
    with kernel_for(book, notebook, settings) as running:
        try:
            running.run_all(lambda cell: 10 * sources.cell_limit(cell))
        except kernel.CellError as error:
            return chapters.explain(book.relative(book.notebook(name)), notebook, 1, error)
        said = lost(running, settings)
        return said and f"{name}: at the end, {said}"


def script(path: str, arguments: list[str]) -> int:
    """Runs a Python program as `python PATH ARGUMENTS` would, with rounded products."""
    sys.argv = [path, *arguments]
    sys.path[0] = str(pathlib.Path(path).resolve().parent)
    with rounded_products():
        runpy.run_path(path, run_name="__main__")
    return 0


def main(arguments=None) -> int:
    from tools import reach

    parser = argparse.ArgumentParser(prog="python -m tools.rehearse", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    parts = {
        "notebooks": commands.add_parser("notebooks", help="run chapters from top to bottom"),
        "exercises": commands.add_parser("exercises", help="grade the solution of every exercise"),
    }
    parts["notebooks"].add_argument("names", nargs="*", metavar="NAME")
    for part, settings in zip(parts.values(), [ALL, BOTH]):
        part.add_argument("--only", choices=settings, help="rehearse this alone")
    one = commands.add_parser("run", help="run a Python program")
    one.add_argument("script")
    one.add_argument("arguments", nargs=argparse.REMAINDER)
    parser.add_argument("--take", choices=reach.CHOICES, default="all", help="of chapters")
    parser.add_argument("--minutes", type=float, default=0, help="for chapters, if not all are taken")
    options = parser.parse_args(arguments)
    if options.command == "run":
        return script(options.script, options.arguments)
    if options.command:
        try:
            tasks = notebooks(options.names) if options.command == "notebooks" else exercises()
        except Problem as problem:
            parser.error(str(problem))
        return bool(run(tasks, (options.only,) if options.only else ()))
    chapters, taken = notebooks(elsewhere=False), reach.Taken(options.take, options.minutes)
    chosen = set(taken.choose({unit for _, unit, _ in chapters}))
    failed = run([*exercises(), *(task for task in chapters if task[1] in chosen)])
    print("Chapters that train: `make test-tpu`, or `python -m tools.rehearse notebooks` for all of them.")
    print(*taken.report("test-rounding"), sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
