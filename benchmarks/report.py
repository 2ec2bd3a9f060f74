"""The results as Markdown and JSON, with all that must be known to read them."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import statistics

import jax

from benchmarks import contest
from mlax_tutorial.timing import in_words

RESULTS = pathlib.Path(__file__).parent / "results"
PACKAGES = ("jax", "jaxlib", "numpy", "optax", "flax", "equinox", "dm-haiku")


def circumstances() -> dict:
    """Where, when and with what."""
    device = jax.devices()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "device": f"CPU, {cores} cores" if device.platform == "cpu" else device.device_kind,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
        "date": datetime.date.today().isoformat(),
        # What else ran in the minute before the first measurement, in processes.
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def step_table(results: dict[str, contest.Result]) -> list[list[str]]:
    base = next(iter(results.values()))
    rows = [["contender", "a step", "to by hand", "quartiles", "first call", "to by hand", "traces"]]
    for name, result in results.items():
        low, middle, high = contest.ratios(result.steps, base.steps)
        _, first, _ = contest.ratios(result.first_calls, base.first_calls)
        rows.append(
            [
                name,
                in_words(statistics.median(result.steps)),
                f"{middle:.2f}",
                f"{low:.2f} to {high:.2f}",
                in_words(statistics.median(result.first_calls)),
                f"{first:.2f}",
                str(result.traces),
            ]
        )
    return rows


def import_table(results: dict[str, tuple[float, ...]]) -> list[list[str]]:
    base = next(iter(results.values()))
    rows = [["import", "time", "to jax", "quartiles"]]
    for name, seconds in results.items():
        low, middle, high = contest.ratios(seconds, base)
        rows.append([name, in_words(statistics.median(seconds)), f"{middle:.2f}", f"{low:.2f} to {high:.2f}"])
    return rows


def table(rows: list[list[str]]) -> str:
    """A Markdown table, its columns aligned for the eye."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def markdown(where: dict, about: dict[str, str], steps: dict[str, dict], imports: dict) -> str:
    """The whole report."""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    rounds = len(next(iter(next(iter(steps.values())).values())).steps)
    parts = [
        f"# Results: {where['device']}",
        f"{where['date']}, {where['system']}, Python {where['python']}, {versions}. Load when it began: "
        f"{where['load']}. {rounds} rounds, in turns. Written by `python -m benchmarks`; what the columns mean "
        "stands in [the README](../README.md).",
    ]
    for name, results in steps.items():
        parts += [f"## `{name}`: {about[name]}", table(step_table(results))]
    if imports:
        parts += ["## Imports", table(import_table(imports))]
    return "\n\n".join(parts) + "\n"


def data(where: dict, steps: dict[str, dict], imports: dict) -> dict:
    """All figures, in seconds, to four digits."""

    def rounded(seconds):
        return [float(f"{value:.4g}") for value in seconds]

    return where | {
        "workloads": {
            workload: {
                name: {
                    "steps": rounded(result.steps),
                    "first_calls": rounded(result.first_calls),
                    "traces": result.traces,
                }
                for name, result in results.items()
            }
            for workload, results in steps.items()
        },
        "imports": {name: rounded(seconds) for name, seconds in imports.items()},
    }


def write(folder: pathlib.Path, where: dict, about, steps, imports) -> list[pathlib.Path]:
    """Writes both forms under the device's name; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / re.sub(r"[^a-z0-9]+", "-", where["device"].lower()).strip("-")
    written = stem.with_suffix(".md"), stem.with_suffix(".json")
    written[0].write_text(markdown(where, about, steps, imports), encoding="utf-8")
    text = json.dumps(data(where, steps, imports), indent=1)
    text = re.sub(r"\[[^\[\]{}]*\]", lambda match: " ".join(match[0].split()), text)  # a list on one line
    written[1].write_text(text + "\n", encoding="utf-8")
    return list(written)
