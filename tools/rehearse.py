"""Rehearse a TPU on a CPU: run programs with the inputs of every product rounded to bfloat16.

    python -m tools.rehearse                        the next two
    python -m tools.rehearse notebooks [NAME ...]   every chapter, from top to bottom: its assertions must hold
    python -m tools.rehearse exercises              the solution of every exercise must pass its check
    python -m tools.rehearse run SCRIPT [ARGS ...]  any Python program

By default a TPU rounds the inputs of float32 products to bfloat16, and a CPU does not; so code that is right on
a CPU may miss its tolerance on a TPU. Here products are rounded where JAX lowers them for the CPU. Nothing else
changes: not the jaxprs, not the dtypes, and products that ask for ``precision="highest"``, by themselves or by
`jax.default_matmul_precision`, stay exact. Any other precision than the highest counts as the default.
"""

import argparse
import concurrent.futures
import contextlib
import functools
import pathlib
import runpy
import sys
import time

import jax
import jax.numpy as jnp
from jax.extend.core import primitives

# The tables of lowering rules have no public name. `register_lowering` has, but a rule that is to call the
# earlier one must find it first.
from jax.interpreters import mlir

from mlax_tutorial.inspection import jaxprs

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


def exercises() -> int:
    """Grades the solutions of all exercises while products are rounded. Returns how many did not pass."""
    from mlax_tutorial.checking import catalog
    from mlax_tutorial.checking.outcome import PASSED

    failed = graded = 0
    with rounded_products():
        assert is_rounding()
        for chapter in catalog.chapters():
            for exercise in catalog.of(chapter):
                outcome = exercise.grade(exercise.answer)
                graded += 1
                if outcome.status != PASSED:
                    failed += 1
                    print(f"{chapter}.{exercise.name}: {outcome}", file=sys.stderr)
    print(f"exercises: {graded - failed} of {graded} solutions pass with rounded products")
    return failed


def notebooks(names=(), jobs: int = 2) -> int:
    """Runs chapters in kernels that round products, `jobs` at a time. Returns how many failed."""
    from tools.notebooks import sources
    from tools.notebooks.places import Book, Problem

    book, failed = Book(), 0
    chosen = [name for name in book.select(names) if sources.read(book, name).executes]
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        tasks = [pool.submit(_notebook, book, name) for name in chosen]
        for task in concurrent.futures.as_completed(tasks):
            try:
                print(task.result(), flush=True)
            except Problem as problem:
                failed += 1
                print(f"\n{problem}\n", file=sys.stderr, flush=True)
    print(f"notebooks: {len(chosen) - failed} of {len(chosen)} ran with rounded products")
    return failed


def _notebook(book, name: str) -> str:
    import nbformat

    from tools.notebooks import kernel, run, sources
    from tools.notebooks.places import Problem

    if not book.notebook(name).exists():
        raise Problem(f"{name}: not built: run `.venv/bin/python -m tools.notebooks build {name}`")
    notebook = nbformat.read(book.notebook(name), as_version=4)
    begun = time.perf_counter()
    with kernel.start(book, notebook, clean=True) as running:
        running.ask("import tools.rehearse as _rehearse\n_rehearse.start()")
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                try:
                    running.run(index, timeout=4 * sources.cell_limit(cell))
                except kernel.CellError as error:
                    path = book.relative(book.notebook(name))
                    raise Problem(run.explain(path, notebook, 1, error)) from error
        if running.ask("print(_rehearse.is_rounding())").strip() != "True":
            raise Problem(f"{name}: at the end of the chapter, products were not rounded")
    return f"{name}: {time.perf_counter() - begun:.1f} s"


def script(path: str, arguments: list[str]) -> int:
    """Runs a Python program as `python PATH ARGUMENTS` would, with rounded products."""
    sys.argv = [path, *arguments]
    sys.path[0] = str(pathlib.Path(path).resolve().parent)
    with rounded_products():
        runpy.run_path(path, run_name="__main__")  # imports: nothing of this project
    return 0


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.rehearse", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    one = commands.add_parser("notebooks", help="run chapters from top to bottom")
    one.add_argument("names", nargs="*", metavar="NAME")
    commands.add_parser("exercises", help="grade the solution of every exercise")
    one = commands.add_parser("run", help="run a Python program")
    one.add_argument("script")
    one.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if options.command == "run":
        return script(options.script, options.arguments)
    failed = 0
    if options.command in ("notebooks", None):
        failed += notebooks(options.names if options.command else ())
    if options.command in ("exercises", None):
        failed += exercises()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
