"""Generated pages: `book/status.md`, those on claims, exercises and names, and the README's table of chapters."""

import json

from tools import project
from tools.notebooks import claims, exercises, names, record
from tools.notebooks.places import Book, Problem
from tools.notebooks.tables import chapters, contents, heading, link, table

BEGIN, END = "<!-- chapters:begin -->", "<!-- chapters:end -->"
TODO = "run `.venv/bin/python -m tools.notebooks pages`"

# What a line of book/_src/devices.jsonl must say.
DEVICE_KEYS = {"chapter": str, "device": str, "jax": str, "python": str, "date": str, "seconds": (int, float)}

STATUS = """\
---
description: For each chapter its processor time, the hardware and versions it was last run on, and the claims that it shows.
---

# Status

Every output in this book was made by running the chapter from top to bottom on the versions named here, and is compared
with a fresh run by the tests. This page is generated from that run. Processor time is that of all cores together, without the
start of the kernel; on two cores a chapter takes about two thirds of it. What the claims say, and what came out, stands on the page [Claims](claims.md); the exercises are listed in [Exercises](exercises.md).

How strict their checks are was tried with *mutants*: solutions in which one small thing was changed. The column says how many
of them the checks notice, and how many give nothing to notice, because they do what the solution does.

{chapters}

{devices}
"""


def devices(book: Book) -> list[dict]:
    """The runs on devices that the build does not have, oldest first."""
    if not book.devices.exists():
        return []
    runs = []
    where = book.relative(book.devices)
    for number, line in enumerate(book.devices.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            run = json.loads(line)
        except json.JSONDecodeError as error:
            raise Problem(
                f"{where}, line {number}: not a JSON object ({error}): paste the line as it was printed"
            ) from error
        for key, kind in DEVICE_KEYS.items():
            if not isinstance(run, dict) or not isinstance(run.get(key), kind):
                raise Problem(
                    f"{where}, line {number}: {key!r} is missing or of another type: paste the line as printed"
                )
        if run["chapter"] not in book.names():
            raise Problem(f"{where}, line {number}: no chapter {run['chapter']!r} in book/_src/")
        runs.append(run)
    return sorted(runs, key=lambda run: (run["date"], run["chapter"], run["device"]))


def _tpu(runs: list[dict], name: str) -> str:
    on_tpu = [run for run in runs if run["chapter"] == name and "tpu" in run["device"].lower()]
    return f"{on_tpu[-1]['device']}, {on_tpu[-1]['date']}" if on_tpu else "not yet run on a TPU"


def _mutants(book: Book, name: str) -> str:
    """How many mutants of a chapter's solutions its checks notice."""
    known = json.loads(book.mutants.read_text(encoding="utf-8")) if book.mutants.exists() else {}
    keys = [f"{name}.{exercise.name}" for exercise in exercises.defined(book, name)]
    missing = [key for key in keys if key not in known]
    if missing:
        raise Problem(
            f"{book.relative(book.mutants)} does not say how many mutants of {missing[0]} its check notices: "
            f"run `.venv/bin/python -m tools.mutants {missing[0]}`"
        )
    count, alive, alike = (sum(known[key][what] for key in keys) for what in ("mutants", "alive", "alike"))
    return f"{count - alive - alike} of {count - alike}, {alike} alike" if count else ""


def status(book: Book) -> str:
    """The text of `book/status.md`."""
    runs, entries = devices(book), chapters(book)
    rows = [
        [
            link(book, name, heading(entry)),
            f"{entry['seconds']} s",
            entry["hardware"],
            f"Python {entry['python']}, JAX {entry['jax']}",
            entry["date"],
            str(len(entry["exercises"])),
            _mutants(book, name),
            ", ".join(entry["claims"]),
            _tpu(runs, name),
        ]
        for name, entry in entries
    ]
    header = [
        "Chapter",
        "Processor time",
        "Hardware",
        "Versions",
        "Date",
        "Exercises",
        "Mutants noticed",
        "Claims",
        "TPU",
    ]
    elsewhere = "No run on another device is recorded yet."
    if runs:
        titles = dict(entries)
        elsewhere = "Runs on other devices:\n\n" + table(
            ["Chapter", "Device", "Run time", "Versions", "Date"],
            [
                [
                    heading(titles[run["chapter"]]) if run["chapter"] in titles else run["chapter"],
                    run["device"],
                    f"{record.rounded(run['seconds'])} s",
                    f"Python {run['python']}, JAX {run['jax']}",
                    run["date"],
                ]
                for run in runs
            ],
        )
    return STATUS.format(chapters=table(header, rows), devices=elsewhere)


def readme_table(book: Book) -> str:
    """The chapters with a link to the page and one into Colab, and what each teaches."""
    rows = []
    for name, entry in chapters(book):
        url = project.colab_url(f"book/{name}.ipynb", book.root)
        title = heading(entry)
        if name in contents(book):
            title = f"[{title}]({project.page_url(f'book/{name}', book.root)})"
        rows.append([title, entry["summary"], f"[open in Colab]({url})"])
    return table(["Chapter: read it online", "What it teaches", "Run it"], rows)


def _readme(book: Book) -> str | None:
    """The README with a fresh table; None if it has no place for one."""
    text = book.readme.read_text(encoding="utf-8") if book.readme.exists() else ""
    if BEGIN not in text or END not in text:
        return None
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{readme_table(book)}\n{END}{after}"


def _texts(book: Book) -> dict:
    """What each generated file should say, by its path."""
    texts = {
        book.status: status(book),
        book.claims_page: claims.page(book, devices(book)),
        book.exercises_page: exercises.page(book),
        book.names_page: names.page(book),
    }
    readme = _readme(book)
    return texts if readme is None else texts | {book.readme: readme}


def write(book: Book) -> list[str]:
    """Write the pages; returns those that changed."""
    return [book.relative(path) for path, text in _texts(book).items() if record.write_beside(path, text)]


def out_of_date(book: Book) -> list[str]:
    """Messages about generated pages that do not say what the record says."""
    try:
        return [
            f"{book.relative(path)} is out of date: {TODO}"
            for path, text in _texts(book).items()
            if not path.exists() or path.read_text(encoding="utf-8") != text
        ]
    except Problem as problem:
        return [str(problem)]
