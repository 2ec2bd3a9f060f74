"""The lines of `tests/passed/ENVIRONMENT-pyVERSION.jsonl`, and which units they let a run leave out.

A line holds a unit, the key under which it passed, its seconds, and a seal: a hash over these. One line that was edited,
and the whole file is refused. Each line being sealed for itself, lines of two branches may stand together (git joins them,
see `.gitattributes`); what no longer holds has another key, and goes when the file is next written.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import subprocess

from tools import project
from tools.notebooks.record import write_beside
from tools.passed import circumstances, rendered
from tools.passed.dependencies import RECORDS, Project

TOOL = pathlib.Path(__file__).parent
# They report, and decide nothing.
REPORTS = ("__main__.py", "projection.py")
# Of the units that are covered, one in so many runs nevertheless: other ones with each commit.
SAMPLE = 10
# The rendered book, of which some tests say what they visit.
SITE = "_build/html"


class Refused(Exception):
    """A record that was not written by this tool."""


def digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


@functools.cache
def _tool() -> list[str]:
    """Whoever changes what "passed" means begins anew."""
    return [
        path.read_text(encoding="utf-8") for path in sorted(TOOL.glob("*.py")) if path.name not in REPORTS
    ]


def _seal(environment: str, line: dict) -> str:
    return digest("passed", environment, line["unit"], line["key"], repr(line["seconds"]))


class Record:
    """What passed in one environment.

    `runner` are the files that decide how a unit is run and judged; all units depend on them. `settings` is what else they
    depend on, as strings, and `installed` the distributions, if it is not this Python that runs them. `committed`: it is
    the last commit that runs, so a unit with files that differ from it is neither left out nor remembered. `site` is the rendered
    book, if it is not that of the checkout.
    """

    def __init__(
        self,
        environment,
        *,
        runner=(),
        settings=(),
        installed=None,
        committed=False,
        python=None,
        root=project.ROOT,
        site=None,
    ):
        self.environment, self.root, self.site = environment, root, site or root / SITE
        self.path = root / RECORDS / f"{environment}-py{python or circumstances.python()}.jsonl"
        self._runner, self._project = list(runner), Project(root)
        self._settings = [*settings, *(circumstances.here() if installed is None else installed)]
        self._keys, self._ran, self.left_out = {}, set(), []
        self._uncommitted = _git(root, "diff", "--name-only", "HEAD").splitlines() if committed else []
        self.refusal = None
        try:
            self._lines = self._read()
        except Refused as refused:
            self._lines, self.refusal = [], refused

    # Asking

    def files(self, unit: str) -> list[str]:
        """Everything of the project that a unit depends on."""
        return self._project.files(unit, *self._runner)

    def says_what_it_needs(self, unit: str) -> bool:
        """Whether a test that looks at the repository, or visits the rendered book, says what of it."""
        if unit.startswith("tests/site/"):  # and not another site than that of this checkout
            return self._project.visits(unit) is not None and "MLAX_SITE" not in os.environ
        return self._project.reads(unit)

    def key(self, unit: str) -> str:
        """Taken when it is first asked for, before the unit runs: what changes meanwhile has not passed."""
        if unit not in self._keys:
            contents = [(name, self._project.digest(name)) for name in self.files(unit)]
            pages = self._project.visits(unit) if unit.endswith(".py") else None
            visited = [] if pages is None else rendered.visited(self.site, pages)
            self._keys[unit] = digest(unit, self.environment, self._settings, contents, visited, _tool())
        return self._keys[unit]

    def covers(self, unit: str) -> bool:
        """Whether a run may leave the unit out; if so, it is counted as left out."""
        key = self.key(unit)
        known = any(line["unit"] == unit and line["key"] == key for line in self._lines)
        left_out = known and os.environ.get("MLAX_RECORD") != "ignore"
        left_out = left_out and not self._is_sampled(unit) and self._is_committed(unit)
        if left_out and unit not in self.left_out:
            self.left_out.append(unit)
        return left_out

    def units(self) -> list[str]:
        """All units that have a line."""
        return sorted({line["unit"] for line in self._lines})

    def seconds(self, unit: str) -> float:
        """How long it took when it last passed, under whatever key; 0 if that is not known."""
        return max((line["seconds"] for line in self._lines if line["unit"] == unit), default=0.0)

    def _is_sampled(self, unit: str) -> bool:
        return int(digest(self._head, self.environment, unit), 16) % SAMPLE == 0

    def _is_committed(self, unit: str) -> bool:
        return not self._uncommitted or not set(self._uncommitted) & set(self.files(unit))

    @functools.cached_property
    def _head(self) -> str:
        return _git(self.root, "rev-parse", "HEAD").strip()

    # Telling

    def passed(self, unit: str, seconds: float) -> None:
        """The whole unit ran and passed. In CI nothing is written."""
        self.note({unit: seconds})

    def failed(self, unit: str) -> None:
        self.note({unit: None})

    def note(self, outcomes: dict[str, float | None]) -> None:
        """Many units at once: the seconds of each that passed, None for one that failed."""
        self._ran |= set(outcomes)
        self.measured({unit: seconds for unit, seconds in outcomes.items() if seconds is not None})
        if os.environ.get("CI") == "true" or self.refusal:
            return
        outcomes = {
            unit: None if seconds is None or not self._is_committed(unit) else seconds
            for unit, seconds in outcomes.items()
        }
        with self._alone():
            try:
                before = self._read()
            except Refused as refused:
                self.refusal = refused
                return
            kept = [line for line in before if self._holds(line, outcomes)]
            there = {(line["unit"], line["key"]) for line in kept}
            for unit, seconds in outcomes.items():
                if seconds is not None and (unit, self.key(unit)) not in there:
                    line = {"unit": unit, "key": self.key(unit), "seconds": round(seconds, 1)}
                    kept.append(line | {"seal": _seal(self.environment, line)})
            self._write(kept)
            self._lines = kept

    @property
    def clock(self) -> pathlib.Path:
        """Seconds of whatever ran on this machine, remembered or not: for the order of a run, and for projections."""
        return self.root / ".cache" / "passed" / f"{self.environment}.json"

    def measured(self, seconds: dict[str, float] | None = None) -> dict[str, float]:
        """The seconds of units that ran on this machine; adds the given ones."""
        known = json.loads(self.clock.read_text(encoding="utf-8")) if self.clock.exists() else {}
        if seconds:
            with self._alone():
                self.clock.parent.mkdir(parents=True, exist_ok=True)
                known |= {unit: round(each, 1) for unit, each in seconds.items()}
                write_beside(self.clock, json.dumps(known, indent=0, sort_keys=True) + "\n")
        return known

    def _holds(self, line: dict, outcomes: dict) -> bool:
        """Whether a line stays: what ran was judged anew; for the rest, its file must be there."""
        unit = line["unit"]
        if unit in outcomes:
            return outcomes[unit] is not None and line["key"] == self.key(unit)
        return self.exists(unit)

    def exists(self, unit: str) -> bool:
        return (self.root / unit).exists()

    # The file

    def _read(self, *, repairing: bool = False) -> list[dict]:
        lines, wrong = [], 0
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        for written in text.splitlines():
            try:
                line = json.loads(written)
                right = line["seal"] == _seal(self.environment, line) and set(line) == FIELDS
            except (ValueError, KeyError, TypeError):
                right = False
            if right:
                lines.append(line)
            else:
                wrong += 1
        if wrong and not repairing:
            raise Refused(
                f"{self.path.relative_to(self.root)} is refused: {wrong} of its lines were not written by this tool. "
                "Everything runs, and nothing is remembered. "
                f"`python -m tools.passed repair` takes out these lines, or `git checkout` the file."
            )
        return lines

    def _write(self, lines: list[dict]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = sorted(lines, key=lambda line: (line["unit"], line["key"]))
        write_beside(self.path, "".join(json.dumps(line) + "\n" for line in lines))

    @contextlib.contextmanager
    def _alone(self):
        """Two runs at once must not lose each other's lines."""
        folder = self.root / ".cache"
        folder.mkdir(exist_ok=True)
        with open(folder / "passed.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def repair(self) -> int:
        """Takes out lines with a wrong seal, and repetitions. Returns how many."""
        with self._alone():
            before = len(self.path.read_text(encoding="utf-8").splitlines())
            kept = list({json.dumps(line): line for line in self._read(repairing=True)}.values())
            self._write(kept)
        return before - len(kept)

    def summary(self) -> str:
        """For the end of a run: what was left out, and why that is safe."""
        lines = [str(self.refusal)] if self.refusal else []
        if self.left_out:
            saved = sum(self.seconds(unit) for unit in self.left_out)
            ran = f" {len(self._ran)} others ran." if self._ran else ""
            lines.append(
                f"left out, {self.environment}: {len(self.left_out)} units ({saved:.0f} s) that passed before with the same "
                "files, versions and settings; a tenth of such units, another one with each commit, ran "
                f"nevertheless.{ran} `make test-all` runs all of them."
            )
        return "".join(line + "\n" for line in lines)


FIELDS = {"unit", "key", "seconds", "seal"}


def _git(root: pathlib.Path, *arguments: str) -> str:
    """What git says, or nothing where there is no git."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""
