"""The results as Markdown, JSON and a plot, with all that must be known to read them."""

import dataclasses
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
from benchmarks.workload import OURS, PACKED
from mlax_tutorial.inspection.timing import in_words

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


def program_table(results: dict[str, contest.Result]) -> list[list[str]]:
    base = next(iter(results.values())).program
    rows = [["contender", "GFLOP", "MB moved", "to by hand", "MB held", "to by hand", "instructions"]]
    for name, result in results.items():
        program = result.program
        if program is not None:
            rows.append(
                [
                    name,
                    f"{program.flops / 1e9:.3g}",
                    f"{program.bytes / 1e6:.4g}",
                    f"{program.bytes / base.bytes:.2f}",
                    f"{program.memory / 1e6:.4g}",
                    f"{program.memory / base.memory:.2f}",
                    str(program.instructions),
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


def markdown(where: dict, about: dict[str, str], steps: dict[str, dict], imports: dict, notes=()) -> str:
    """The whole report."""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    rounds = len(next(iter(next(iter(steps.values())).values())).steps)
    parts = [
        f"# Results: {where['device']}",
        f"{where['date']}, {where['system']}, Python {where['python']}, {versions}. Load when it began: "
        f"{where['load']}. {rounds} rounds, in turns. Written by `python -m benchmarks`; what the columns mean "
        "stands in [the README](../README.md).",
        *notes,
        f"![Times of a step and of a first call, to those of hand-written JAX]({stem(where)}.svg)",
    ]
    for name, results in steps.items():
        parts += [f"## `{name}`: {about[name]}", table(step_table(results)), table(program_table(results))]
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
                | ({"program": dataclasses.asdict(result.program)} if result.program else {})
                for name, result in results.items()
            }
            for workload, results in steps.items()
        },
        "imports": {name: rounded(seconds) for name, seconds in imports.items()},
    }


def stem(where: dict) -> str:
    """The name of the files for this machine."""
    return re.sub(r"[^a-z0-9]+", "-", where["device"].lower()).strip("-")


def plot(where: dict, steps: dict[str, dict], path: pathlib.Path) -> None:
    """The ratios to hand-written JAX, a panel a workload: dots are medians, lines quartiles, circles first calls."""
    import matplotlib
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for results in steps.values() for name in results))
    across = min(3, len(steps))
    down = -(-len(steps) // across)
    figure = Figure(
        figsize=(0.5 + 3.4 * across, 0.6 + (0.5 + 0.21 * len(names)) * down), layout="constrained"
    )
    panels = figure.subplots(down, across, sharey=True, squeeze=False).flat
    for panel, (workload, results) in zip(panels, steps.items()):
        base = next(iter(results.values()))
        for place, name in enumerate(names):
            if name in results:
                result = results[name]
                low, middle, high = contest.ratios(result.steps, base.steps)
                _, first, _ = contest.ratios(result.first_calls, base.first_calls)
                color = "C3" if name in (OURS, PACKED) else "C0"
                panel.plot([low, high], [place, place], color=color, linewidth=2)
                panel.plot(middle, place, "o", color=color, markersize=5)
                panel.plot(first, place, "o", color=color, markersize=5, fillstyle="none")
        panel.axvline(1, color="gray", linewidth=0.8, zorder=0)
        panel.set(title=workload, xscale="log", yticks=range(len(names)), yticklabels=names)
        panel.xaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter("")
    for panel in panels:
        panel.set_visible(False)
    figure.axes[0].invert_yaxis()
    figure.supxlabel(
        f"to hand-written JAX, {where['device']}: a step (filled, with quartiles), a first call (open)",
        fontsize=9,
    )
    with matplotlib.rc_context({"svg.hashsalt": "benchmarks"}):  # the same figures give the same file
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def write(folder: pathlib.Path, where: dict, about, steps, imports, notes=()) -> list[pathlib.Path]:
    """Writes tables, figures and plot under the device's name; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{stem(where)}.{kind}" for kind in ("md", "json", "svg")]
    written[0].write_text(markdown(where, about, steps, imports, notes), encoding="utf-8")
    text = json.dumps(data(where, steps, imports), indent=1)
    text = re.sub(r"\[[^\[\]{}]*\]", lambda match: " ".join(match[0].split()), text)  # a list on one line
    written[1].write_text(text + "\n", encoding="utf-8")
    plot(where, steps, written[2])
    return written
