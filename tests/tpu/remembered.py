"""Programs that compiled for a TPU before, and need not compile again.

Whether a program compiles depends on its text, on the compiler and on its settings, and on nothing else: no value goes in, and
none comes out. So a change of the library that leaves a program as it was need not wait for the compiler, which takes a quarter
of a chapter's time here. The lines are those of `tools.passed`; a unit is whoever lowered a program, and its fingerprint.
"""

import contextlib
import importlib.metadata
import platform
import sys

from tools.passed import Record, circumstances

# reads: nothing else
# How a program is fingerprinted, compiled and checked.
RUNNER = ["tests/tpu/compiling.py", "tests/tpu/remembered.py"]
COMPILER = ("jax", "jaxlib", "libtpu")
BETWEEN = " > "
left_out = {}  # unit -> seconds: in this process


class Programs(Record):
    """Which programs compiled with one version of JAX and of the TPU's compiler: by default, the installed ones."""

    def __init__(self, *, versions=None, **settings):
        if versions is None:
            versions = [f"{name}=={importlib.metadata.version(name)}" for name in COMPILER]
        here = [sys.platform, platform.machine(), *circumstances.settings(), *versions]
        super().__init__("programs", installed=here, **settings)

    def files(self, unit):
        return [*RUNNER, *(file for file in [_file(unit)] if file.endswith(".py"))]

    def exists(self, unit):
        return super().exists(_file(unit))

    def measured(self, seconds=None):
        """Nothing: these seconds are part of the test's."""
        return {}

    @contextlib.contextmanager
    def of(self, owner: str):
        """The programs of a test or a chapter. What the block leaves compiled is remembered if it ends well."""
        programs = Owned(self, owner)
        yield programs
        programs.remember()


def _file(unit: str) -> str:
    """The file of a program's owner: a chapter, of which nothing but the program counts, or a test, which judges the outcome."""
    return unit.partition(BETWEEN)[0].partition("::")[0]


class Owned:
    """The programs of one owner: those that are `known` to compile, and those that the run `found`."""

    def __init__(self, record, owner):
        self.record, self.begins, self.found = record, f"{owner}{BETWEEN}", {}
        units = [unit for unit in record.units() if unit.startswith(self.begins)]
        self.known = {unit.removeprefix(self.begins) for unit in units if record.covers(unit)}

    def add(self, found: dict[str, float | None]):
        """Fingerprints with the seconds of the compiler, or None for what was known."""
        self.found |= found

    def remember(self):
        units = {self.begins + mark: seconds for mark, seconds in self.found.items()}
        kept = {unit: self.record.seconds(unit) for unit, seconds in units.items() if seconds is None}
        left_out.update(kept)
        gone = [unit for unit in self.record.units() if unit.startswith(self.begins) and unit not in units]
        compiled = {unit: seconds for unit, seconds in units.items() if seconds is not None}
        if gone or compiled:
            self.record.note(dict.fromkeys(gone) | compiled)


class Reporter:
    """Pytest's part: says at the end of a run what was left out, in whichever of its processes."""

    def __init__(self):
        self.left_out = left_out

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["programs_left_out"] = self.left_out

    def pytest_testnodedown(self, node, error):
        self.left_out |= getattr(node, "workeroutput", {}).get("programs_left_out", {})

    def pytest_terminal_summary(self, terminalreporter):
        if self.left_out:
            terminalreporter.section("remembered programs", sep="-")
            terminalreporter.write(
                f"left out, programs: {len(self.left_out)} ({sum(self.left_out.values()):.0f} s) were not compiled for a TPU, since the "
                "same text compiled before with the same compiler and settings; a tenth of such programs, another one with each "
                "commit, was nevertheless. `make test-all` compiles all of them.\n"
            )
