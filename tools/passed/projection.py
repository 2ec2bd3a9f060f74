"""How long runs take with more chapters and exercises, from the seconds that each file took.

They come from this machine; for a file that has not run on it, from its last pass on record.

A file of an exercise counts once for each exercise, a notebook, its page and a test that goes over chapters once for each
chapter, and everything else once. What is remembered runs when something that it depends on changed, and a tenth of it in any case.
"""

import json
import pathlib

from tools.passed.dependencies import RECORDS, Project
from tools.passed.record import SAMPLE, Record

WORKERS = 2
TEST = ("newest", "pages")  # the environments of `make test`; `.ci/run` has all of them
CORE = "mlax_tutorial/nn/layer.py"  # all layers derive from what is in it


# By how a file's name begins: those that grow with the chapters, and those of the exercises, which lie in folders by chapter.
BY_CHAPTER = ("book/", "tests/chapters/", "tests/tpu/chapters/")
BY_EXERCISE = ("tests/exercises/", "mlax_tutorial/exercises/")
FIXED = "book/reference/"  # the library's pages
PROGRAMS = "programs"  # this record has lines of compiled programs, and not of files


def _kind(unit: str) -> str:
    if unit.startswith(BY_EXERCISE) and unit.count("/") == 3:
        return "exercise"
    return "chapter" if unit.startswith(BY_CHAPTER) and not unit.startswith(FIXED) else "fixed"


def _records(root: pathlib.Path) -> dict[str, dict[str, float]]:
    """By environment, the units that have a line in its record, whatever Python it is for, and their seconds.

    Raises `Refused` if a line of one was not written by this tool: without its seconds, runs would seem short."""
    records = {}
    for path in sorted((root / RECORDS).glob("*-py*.jsonl")):
        name, _, version = path.stem.rpartition("-py")
        if name != PROGRAMS:
            record = Record(name, python=version, root=root)
            if record.refusal:
                raise record.refusal
            records.setdefault(name, {}).update({unit: record.seconds(unit) for unit in record.units()})
    return records


def _dependent(root: pathlib.Path, units, file: str) -> set[str]:
    """Those that run again when a file changes. A page does if its chapter does, whose outputs may be others then."""
    project = Project(root)

    def sources(unit):
        pages = [unit] if unit.endswith(".html") else project.visits(unit) or []
        return [unit, *(page.removesuffix(".html") + ".ipynb" for page in pages)]

    def files(unit):
        return project.files(*(name for name in sources(unit) if project.exists(name)))

    return {unit for unit in units if file in files(unit)}


def _minutes(
    units: dict[str, float], left_out: set[str], grown: dict[str, float], changed: tuple[str, ...] = ()
) -> float:
    """Of what may be left out a tenth runs, and of some kinds one unit besides: the one that was changed."""
    tenth, total = 1 / SAMPLE, 0.0
    for unit, seconds in units.items():
        total += seconds * grown[_kind(unit)] * (tenth if unit in left_out else 1)
    for kind in changed:
        there = [seconds for unit, seconds in units.items() if _kind(unit) == kind and unit in left_out]
        total += (1 - tenth) * sum(there) / max(len(there), 1)
    return total / WORKERS / 60


def table(root: pathlib.Path, chapters: int, exercises: int) -> str:
    """The projection as a table in Markdown, with the sums that it is made of."""
    records = _records(root)
    clocks = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in (root / ".cache/passed").glob("*.json")
    }
    environments = {name: records.get(name, {}) | clocks.get(name, {}) for name in sorted(records | clocks)}
    tests, pages = (environments.get(name, {}) for name in TEST)
    for unit in tests.keys() & pages.keys():  # of an older checkout
        del pages[unit]
    remembered = {name: set(records.get(name, {})) for name in environments}
    now = {"chapter": len(list((root / "book").glob("*.ipynb"))), "exercise": _exercises(root), "fixed": 1}
    then = {"chapter": chapters, "exercise": exercises, "fixed": 1}
    grown = {kind: then[kind] / max(now[kind], 1) for kind in now}
    lines = [
        f"| environment: file seconds, {now['chapter']} chapters, {now['exercise']} exercises | per chapter | per exercise | fixed | remembered |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, units in environments.items():
        sums = {kind: sum(s for unit, s in units.items() if _kind(unit) == kind) for kind in now}
        lines.append(
            f"| {name} | {sums['chapter'] / max(now['chapter'], 1):.1f} | {sums['exercise'] / max(now['exercise'], 1):.1f} "
            f"| {sums['fixed']:.0f} | {sum(units.get(unit, 0) for unit in remembered[name]):.0f} |"
        )
    lines += [
        "",
        f"| command, {WORKERS} workers, minutes | now | at {chapters} chapters and {exercises} exercises |",
        "| --- | --- | --- |",
    ]
    same = dict.fromkeys(now, 1.0)
    dependent = {name: _dependent(root, units, CORE) for name, units in environments.items()}
    beside = {name: remembered[name] - dependent[name] for name in environments}
    tested = beside | {name: remembered[name] for name in TEST if name in environments}
    nothing = dict.fromkeys(environments, set())
    for command, names, left_out, changed in [
        ("`make test`, fresh clone", TEST, remembered, ()),
        ("`.ci/run`, one chapter changed", environments, remembered, ("chapter",)),
        (
            "`.ci/run`, one exercise changed, and so its chapter",
            environments,
            remembered,
            ("exercise", "chapter"),
        ),
        (f"`make test`, the library's core changed (`{CORE}`)", TEST, beside, ()),
        ("`.ci/run`, likewise, what `make test` then recorded is committed", environments, tested, ()),
        ("`.ci/run`, likewise, nothing recorded", environments, beside, ()),
        ("`make test-all`: all files", environments, nothing, ()),
    ]:
        found = [name for name in names if name in environments]
        both = [
            sum(_minutes(environments[name], left_out[name], growth, changed) for name in found)
            for growth in (same, grown)
        ]
        lines.append(f"| {command} | {both[0]:.1f} | {both[1]:.1f} |")
    lines += [
        "",
        "Seconds of the files, as pytest counts them on this machine (on record, where they did not run on it), shared by the "
        "workers; not counted: what is never on record and did not run here, making the environments, building the book, and "
        "starting the workers.",
    ]
    return "\n".join(lines)


def _exercises(root: pathlib.Path) -> int:
    return len(list((root / "tests" / "exercises").glob("[!_]*/[!_]*.py")))
