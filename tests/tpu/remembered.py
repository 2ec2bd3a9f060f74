"""Programs that compiled for a TPU before, and need not compile again.

Whether a program compiles depends on its text, on the compiler and on its settings, and on nothing else: no value goes in, and
none comes out. So a change of the library that leaves a program as it was need not wait for the compiler, which takes a quarter
of a chapter's time here. The lines are those of `tools.passed`; a unit is whoever lowered a program, and its fingerprint.
"""

import contextlib
import importlib.metadata
import platform
import sys

import pytest

from tools.passed import Record, circumstances

# reads: nothing else
# How a program is fingerprinted, compiled and checked.
RUNNER = [
    "tests/settings.py",
    *(f"tests/tpu/{name}.py" for name in ("compiling", "conftest", "recording", "remembered")),
]
COMPILER = ("jax", "jaxlib", "libtpu")
# Libtpu sets some when it is imported, one of them to where it lies, and `compiling.py` others; they are about the TPU of a
# machine, and here the chips are named.
OF_A_MACHINE = "TPU_"
BETWEEN = " > "
# In this process: units with their seconds, and the record if it is refused.
left_out, refused = {}, set()


class Programs(Record):
    """Which programs compiled with one version of JAX and of the TPU's compiler: by default, the installed ones."""

    def __init__(self, *, versions=None, **settings):
        if versions is None:
            versions = [f"{name}=={importlib.metadata.version(name)}" for name in COMPILER]
        started = [each for each in circumstances.settings() if not each.startswith(OF_A_MACHINE)]
        here = [sys.platform, platform.machine(), *started, *versions]
        super().__init__("programs", installed=here, **settings)
        if self.refusal:
            refused.add(str(self.refusal))

    def files(self, unit):
        return [*RUNNER, *(file for file in [_file(unit)] if file.endswith(".py"))]

    def exists(self, unit):
        return super().exists(_file(unit))

    def measured(self, seconds=None):
        """Nothing: these seconds are part of the test's."""
        return {}

    @contextlib.contextmanager
    def of(self, owner: str):
        """The programs of a test or a chapter. What the block compiled is remembered if it ends well, and else forgotten."""
        programs = Owned(self, owner)
        try:
            yield programs
        except BaseException:
            programs.forget()
            raise
        programs.remember()


def _file(unit: str) -> str:
    """The file of a program's owner: a chapter, of which nothing but the program counts, or a test, which judges the outcome."""
    return unit.partition(BETWEEN)[0].partition("::")[0]


class Owned:
    """The programs of one owner: those that are `known` to compile, and those that the run `found`."""

    def __init__(self, record, owner):
        self.record, self.prefix, self.found = record, f"{owner}{BETWEEN}", {}
        self.known = {unit.removeprefix(self.prefix) for unit in self._units() if record.covers(unit)}

    def _units(self):
        return [unit for unit in self.record.units() if unit.startswith(self.prefix)]

    def add(self, found: dict[str, float | None]):
        """Fingerprints with the seconds of the compiler, or None for what was known."""
        self.found |= found

    def remember(self):
        units = {self.prefix + fingerprint: seconds for fingerprint, seconds in self.found.items()}
        kept = {unit: self.record.seconds(unit) for unit, seconds in units.items() if seconds is None}
        left_out.update(kept)
        gone = [unit for unit in self._units() if unit not in units]
        compiled = {unit: seconds for unit, seconds in units.items() if seconds is not None}
        if gone or compiled:
            self.record.note(dict.fromkeys(gone) | compiled)

    def forget(self):
        self.record.note(dict.fromkeys(self._units()))


class Reporter:
    """Pytest's part: says at the end of a run what was left out, in whichever of its processes."""

    NAME = "remembered-programs"

    @classmethod
    def register(cls, config):
        if not config.pluginmanager.has_plugin(cls.NAME):  # two conftests do so
            config.pluginmanager.register(cls(), cls.NAME)

    def __init__(self):
        self.left_out, self.refused = left_out, refused

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[self.NAME] = [self.left_out, sorted(self.refused)]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        if self.NAME in getattr(node, "workeroutput", {}):
            left_out, refused = node.workeroutput[self.NAME]
            self.left_out |= left_out
            self.refused |= set(refused)

    def pytest_terminal_summary(self, terminalreporter):
        lines = sorted(self.refused)
        if self.left_out:
            lines.append(
                f"left out, programs: {len(self.left_out)} ({sum(self.left_out.values()):.0f} s), not compiled for a TPU because the same "
                "text compiled before with the same compiler and settings; a different tenth with each commit is compiled anyway. "
                "`make test-all` compiles all of them."
            )
        if lines:
            terminalreporter.section("remembered programs", sep="-")
            terminalreporter.write("".join(line + "\n" for line in lines))
