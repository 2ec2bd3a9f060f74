"""The claims that the book owes, the cells that show them, and what came out: the page `book/claims.md`.

`book/_src/claims.json` lists each claim: its id, what it says, and the chapters that owe it. A cell that shows claim J4
carries the tag `claim-J4`. One such cell in each chapter prints the verdict, and nothing after it:

    J4 holds: without waiting, the clock is too fast (cpu, jax 0.12.0)

It begins with one of `OUTCOMES`; what stands in the last parentheses, with the version of JAX, is left out of the page,
which takes device, versions and date from the record.
"""

import dataclasses
import json
import re

import nbformat

from tools.notebooks import tables
from tools.notebooks.places import Book
from tools.notebooks.sources import tags

PREFIX = "claim-"
OUTCOMES = ("holds", "no longer holds", "does not hold")

VERDICT = re.compile(rf"^([A-Z]\d+) (?=(?:{'|'.join(OUTCOMES)})\b)", re.MULTILINE)
MACHINE = re.compile(r"\s*\([^()]*\bjax \d[^()]*\)\s*$")

PAGE = """\
---
description: Each claim about JAX that the book puts to the test, what came out, and the cell that shows it.
---

# Claims

The book's sources make claims about JAX: lectures, posts and notes, some of them years old. None is repeated on trust. Each is
shown by cells of a chapter, which run it, measure it or break it on purpose, and which assert what came out. The verdicts on
this page are what those cells printed when the chapter was last run; the page is generated from that run. On your device
a verdict about time or memory may be another: run the cell.

{shown}
{owed}"""

OWED = """
## Still owed

Chapters that are not written yet owe these.

{table}
"""


@dataclasses.dataclass
class Shown:
    """A cell that shows a claim: where it stands, and the verdicts that it prints."""

    claim: str
    section: str  # the heading under which the cell stands
    anchor: str
    verdicts: list[str]


def known(book: Book) -> dict[str, dict]:
    """Claims by id, each with `statement` and `chapters`."""
    if not book.claims.exists():
        return {}
    return json.loads(book.claims.read_text(encoding="utf-8"))


def of(cell) -> list[str]:
    """The ids of the claims that a cell shows."""
    return [tag.removeprefix(PREFIX) for tag in tags(cell) if tag.startswith(PREFIX)]


def shown(cells) -> list[str]:
    """The ids of the claims that these cells show, in their order."""
    return list(dict.fromkeys(claim for cell in cells for claim in of(cell)))


def anchor(claim: str, count: int) -> str:
    """The name by which the page links to a cell: the chapter's first, second, … that shows the claim."""
    return f"{PREFIX}{claim}" if count == 1 else f"{PREFIX}{claim}-{count}"


def verdicts(cell) -> list[tuple[str, str]]:
    """What a cell printed about claims, as pairs of id and verdict."""
    found = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            parts = VERDICT.split(output.text)[1:]  # id, text, id, text, …
            for claim, text in zip(parts[::2], parts[1::2], strict=True):
                found.append((claim, " ".join(MACHINE.sub("", text).split())))
    return found


def places(cells) -> list[Shown]:
    """The cells of a chapter that show claims, in their order."""
    found, section, counts = [], "", {}
    for cell in cells:
        if cell.cell_type == "markdown":
            section = _last_heading(cell.source) or section
            continue
        for claim in of(cell):
            says = [text for id_, text in verdicts(cell) if id_ == claim]
            shown_before = next((place for place in reversed(found) if place.claim == claim), None)
            if (
                "remove-cell" in tags(cell) and shown_before
            ):  # not on the page: the verdict on the cell before it
                shown_before.verdicts += says
                continue
            counts[claim] = counts.get(claim, 0) + 1
            found.append(Shown(claim, section, anchor(claim, counts[claim]), says))
    return found


def _last_heading(text: str) -> str:
    prose = re.sub(r"^(`{3,}|~{3,}).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#{1,3}\s+(.*\S)", prose, re.MULTILINE)
    return found[-1] if found else ""


def page(book: Book, devices: list[dict]) -> str:
    """The text of `book/claims.md`; `devices` are the runs on devices that the build does not have."""
    cells = {}
    for name, entry in tables.chapters(book):
        if entry["claims"] and book.notebook(name).exists():
            for place in places(nbformat.read(book.notebook(name), as_version=4).cells):
                cells.setdefault(place.claim, {}).setdefault(name, []).append(place)
    entries = tables.chapters(book)
    rows = []
    for claim, stated in known(book).items():
        for name, entry in entries:
            if there := cells.get(claim, {}).get(name):
                says = [tables.plain(text) for place in there for text in place.verdicts]
                rows.append(
                    [
                        claim,
                        tables.plain(stated["statement"]),
                        "<br>".join(says) or "no verdict is recorded",
                        f"{tables.heading(entry)}: {_links(book, name, there)}",
                        "; ".join([entry["hardware"], *_elsewhere(devices, name)]),
                        f"Python {entry['python']}, JAX {entry['jax']}",
                        entry["date"],
                    ]
                )
    header = ["Id", "Claim", "What came out", "Shown in", "Device", "Versions", "Date"]
    return PAGE.format(shown=tables.table(header, rows), owed=_owed(book, cells))


def _links(book: Book, name: str, there: list[Shown]) -> str:
    """Links to the cells by their sections; a second one in a section is named by its number."""
    links, counts = [], {}
    for place in there:
        count = counts[place.section] = counts.get(place.section, 0) + 1
        text = place.section if count == 1 else f"{place.section}, cell {count}"
        links.append(tables.link(book, name, text, place.anchor))
    return "; ".join(links)


def _elsewhere(devices: list[dict], name: str) -> list[str]:
    """The other devices on which all assertions of the chapter held, with the last date of each."""
    last = {run["device"]: run for run in devices if run["chapter"] == name}
    return [f"asserted on {device}, JAX {run['jax']}, {run['date']}" for device, run in last.items()]


def _owed(book: Book, cells: dict) -> str:
    rows = []
    for claim, stated in known(book).items():
        if missing := [name for name in stated["chapters"] if name not in cells.get(claim, {})]:
            chapters = ", ".join(tables.from_name(name) for name in missing)
            rows.append([claim, tables.plain(stated["statement"]), chapters])
    return OWED.format(table=tables.table(["Id", "Claim", "Chapter"], rows)) if rows else ""
