"""What failed in a run of pytest, told once more where everybody looks: at the end of a log of thousands of lines.

With the plugin `-p tools.failures`, each failure is added to the file that the variable `MLAX_FAILURES` names: which test, in which
environment, the last lines of its report, and the command that runs it alone. `.ci/run` prints that file last.
"""

import os
import pathlib
import shlex
import sys

import pytest

from tools.project import ROOT

LINES = 8  # of a report
WIDTH = 200
SETTINGS = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")  # that a target may have
NBVAL = "-p nbval.plugin --nbval --nbval-current-env --nbval-sanitize-with tools/notebooks/nbval_sanitize.cfg"


def pytest_configure(config):
    path = os.environ.get("MLAX_FAILURES")
    if path and not hasattr(config, "workerinput"):  # workers tell the process that started them
        config.pluginmanager.register(Teller(config, pathlib.Path(path)), "failures")


class Teller:
    def __init__(self, config, path):
        self.path = path
        self.nbval = config.pluginmanager.hasplugin("nbval.plugin")

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._add(report.nodeid, report.when, report.longreprtext)

    @pytest.hookimpl
    def pytest_collectreport(self, report):
        if report.failed:
            self._add(report.nodeid, "collect", report.longreprtext)

    def _add(self, test, when, text):
        lines = [line[:WIDTH] for line in text.splitlines() if line.strip()][-LINES:]
        where = pathlib.Path(sys.prefix).name
        stage = "" if when == "call" else f", {when}"
        told = [
            f"{test} ({where}{stage})",
            *(f"    {line}" for line in lines),
            f"    again: {self._again(test)}",
        ]
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n".join(told) + "\n")

    def _again(self, test):
        """The command that runs the test alone; of a notebook all cells, since each needs those before it."""
        settings = [f"{name}={shlex.quote(os.environ[name])}" for name in SETTINGS if name in os.environ]
        python = pathlib.Path(sys.executable)
        python = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
        options = NBVAL if self.nbval else ""
        test = test.partition("::")[0] if self.nbval else test
        return " ".join(
            filter(None, [*settings, str(python), "-m pytest -p no:nbval", options, shlex.quote(test)])
        )
