"""Pages made from the record: `book/status.md`, and the README's table of chapters."""

import json
import re

from tools import project
from tools.notebooks import claims, record
from tools.notebooks.places import Book, Problem

BEGIN, END = "<!-- chapters:begin -->", "<!-- chapters:end -->"
TODO = "run `.venv/bin/python -m tools.notebooks pages`"

# What a line of book/_src/devices.jsonl must say.
DEVICE_KEYS = {"chapter": str, "device": str, "jax": str, "python": str, "date": str, "seconds": (int, float)}

STATUS = """\
---
description: For each chapter its run time, the hardware and versions it was last run on, and the claims that it shows.
---

# Status

Every output in this book was made by running the chapter from top to bottom on the versions named here, and is compared
with a fresh run by the tests. This page is generated from that run; the times are without the start of the kernel.

{chapters}

{devices}

## Claims

The book's sources make claims about JAX. Each is shown by a cell in one of the chapters, which runs it, measures it or
breaks it on purpose. These are the claims that the chapters above show.

{claims}
"""


def chapters(book: Book) -> list[tuple[str, dict]]:
    """The recorded chapters in the order of the table of contents, and then what is outside of it."""
    contents = _contents(book)

    def order(item):
        name, entry = item
        place = contents.index(name) if name in contents else len(contents)
        return (place, entry["number"] or 0, name)

    return sorted(record.load(book).items(), key=order)


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


def _contents(book: Book) -> list[str]:
    """The pages of the table of contents, in its order."""
    path = book.root / "_toc.yml"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return re.findall(r"\bbook/(\w+)\s*$", text, re.MULTILINE)


def _link(book: Book, name: str, entry: dict) -> str:
    target = (
        f"{name}.ipynb" if name in _contents(book) else project.colab_url(f"book/{name}.ipynb", book.root)
    )
    return f"[{_heading(entry)}]({target})"


def _heading(entry: dict) -> str:
    number = entry["number"]
    return f"{number}. {entry['title']}" if number else entry["title"]


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _tpu(runs: list[dict], name: str) -> str:
    on_tpu = [run for run in runs if run["chapter"] == name and "tpu" in run["device"].lower()]
    return f"{on_tpu[-1]['device']}, {on_tpu[-1]['date']}" if on_tpu else "not yet run on a TPU"


def status(book: Book) -> str:
    """The text of `book/status.md`."""
    runs, entries = devices(book), chapters(book)
    rows = [
        [
            _link(book, name, entry),
            f"{entry['seconds']} s",
            entry["hardware"],
            f"Python {entry['python']}, JAX {entry['jax']}",
            entry["date"],
            str(len(entry["exercises"])),
            ", ".join(entry["claims"]),
            _tpu(runs, name),
        ]
        for name, entry in entries
    ]
    header = ["Chapter", "Run time", "Hardware", "Versions", "Date", "Exercises", "Claims", "TPU"]
    elsewhere = "No run on another device is recorded yet."
    if runs:
        titles = dict(entries)
        elsewhere = "Runs on other devices:\n\n" + _table(
            ["Chapter", "Device", "Run time", "Versions", "Date"],
            [
                [
                    _heading(titles[run["chapter"]]) if run["chapter"] in titles else run["chapter"],
                    run["device"],
                    f"{record.rounded(run['seconds'])} s",
                    f"Python {run['python']}, JAX {run['jax']}",
                    run["date"],
                ]
                for run in runs
            ],
        )
    places = {claim: [] for claim in claims.known(book)}
    for name, entry in entries:
        for claim in entry["claims"]:
            places.setdefault(claim, []).append(_link(book, name, entry))
    shown = [
        [claim, claims.known(book).get(claim, {}).get("statement", ""), ", ".join(where)]
        for claim, where in places.items()
        if where
    ]
    return STATUS.format(
        chapters=_table(header, rows),
        devices=elsewhere,
        claims=_table(["Claim", "What it says", "Shown in"], shown),
    )


def readme_table(book: Book) -> str:
    """The chapters with a link into Colab and what each teaches."""
    rows = []
    for name, entry in chapters(book):
        url = project.colab_url(f"book/{name}.ipynb", book.root)
        rows.append([_heading(entry), entry["summary"], f"[open in Colab]({url})"])
    return _table(["Chapter", "What it teaches", ""], rows)


def _readme(book: Book) -> str | None:
    """The README with a fresh table; None if it has no place for one."""
    text = book.readme.read_text(encoding="utf-8") if book.readme.exists() else ""
    if BEGIN not in text or END not in text:
        return None
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{readme_table(book)}\n{END}{after}"


def write(book: Book) -> list[str]:
    """Write both pages; returns those that changed."""
    changed = []
    for path, text in ((book.status, status(book)), (book.readme, _readme(book))):
        if text is not None and record.write_beside(path, text):
            changed.append(book.relative(path))
    return changed


def out_of_date(book: Book) -> list[str]:
    """Messages about generated pages that do not say what the record says."""
    messages = []
    try:
        for path, text in ((book.status, status(book)), (book.readme, _readme(book))):
            if text is not None and (not path.exists() or path.read_text(encoding="utf-8") != text):
                messages.append(f"{book.relative(path)} is out of date: {TODO}")
    except Problem as problem:
        messages.append(str(problem))
    return messages
