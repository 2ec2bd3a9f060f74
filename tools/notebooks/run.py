"""Run every chapter from top to bottom, twice, in one kernel each, comparing nothing.

This is for the environments whose outputs differ from the stored ones: the oldest JAX, another CPU, a GPU, a TPU.
Every cell runs, and every assertion must hold.
"""

import concurrent.futures
import datetime
import json
import platform
import sys
import textwrap
import time

import nbformat

from tools.notebooks import kernel, sources
from tools.notebooks.places import Book, Problem
from tools.notebooks.record import longest_first

DEVICE = "import jax as _jax; print(_jax.devices()[0].device_kind, _jax.__version__, sep='|')"


def explain(path: str, notebook, pass_number: int, error: kernel.CellError) -> str:
    number = sum(cell.cell_type == "code" for cell in notebook.cells[: error.index])
    message = textwrap.indent(str(error), "    ")
    return f"{path}: code cell {number} failed in pass {pass_number}:\n{message}"


def run_one(book: Book, name: str, *, times: int, patience: float) -> tuple[str, dict]:
    """Run one chapter; returns a line for a person, and the facts of the run."""
    notebook = nbformat.read(book.notebook(name), as_version=4)
    seconds = []
    start = time.perf_counter()
    with kernel.start(book, notebook, clean=False) as running:
        for pass_number in range(1, times + 1):
            begin = time.perf_counter()
            try:
                running.run_all(lambda cell: patience * sources.cell_limit(cell))
            except kernel.CellError as error:
                path = book.relative(book.notebook(name))
                raise Problem(explain(path, notebook, pass_number, error)) from error
            seconds.append(time.perf_counter() - begin)
        device, jax_version = running.ask(DEVICE).strip().split("|")
    facts = {
        "chapter": name,
        "device": device,
        "jax": jax_version,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "date": datetime.date.today().isoformat(),
        "seconds": round(seconds[0], 1),
    }
    whole = time.perf_counter() - start
    parts = " + ".join(f"{each:.1f}" for each in seconds)
    return f"{name}: {parts} s, {whole:.1f} s with the kernel's start, on {device}, JAX {jax_version}", facts


def run(
    book: Book, names, *, times: int = 2, jobs: int = 2, patience: float = 10.0, lines: bool = False
) -> int:
    """Run chapters, `jobs` at a time; returns how many failed. `lines` also prints lines for devices.jsonl."""
    chosen = []
    for name in longest_first(book, book.select(names)):
        if not sources.read(book, name).executes:
            print(f"{name}: skipped, its header says `execute: false`")
        elif not book.notebook(name).exists():
            raise Problem(f"book/{name}.ipynb does not exist: run `python -m tools.notebooks build {name}`")
        else:
            chosen.append(name)
    ran, failed, begin = 0, 0, time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = [pool.submit(run_one, book, name, times=times, patience=patience) for name in chosen]
        for task in concurrent.futures.as_completed(tasks):
            try:
                line, facts = task.result()
                ran += 1
                print(line, flush=True)
                if lines:
                    print(json.dumps(facts), flush=True)
            except Problem as problem:
                failed += 1
                print(f"\n{problem}\n", file=sys.stderr, flush=True)
    print(
        f"{ran} of {len(chosen)} chapters ran from top to bottom {times} times in {time.perf_counter() - begin:.0f} s"
        + (f", {failed} failed" if failed else "")
    )
    return failed
