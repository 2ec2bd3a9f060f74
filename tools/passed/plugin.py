"""Pytest's part: `-p tools.passed.plugin --passed ENVIRONMENT` leaves out what passed, and remembers what passes.

The process that was started decides, before anything is collected; workers of xdist are told what to leave out. A file
passed if all its tests were collected, ran and passed. Options that choose among the tests of a file (`-k`, `-x`, `--lf`)
switch all of it off: such a run leaves nothing out, and shows nothing of a whole file.
"""

import collections
import os
import pathlib
import shlex

import pytest

from tools.passed import record

# Options that change no outcome, by how they begin; and those that do, which become part of every key.
HARMLESS = ("-q", "-v", "-n", "-p", "-r", "-s", "--dist", "--durations", "--tb", "--color", "--capture", "--passed",
            "--ignore", "--junit", "--no-header", "--basetemp", "--rootdir")  # fmt: skip
KEYED = ("--nbval", "--doctest")
WITH_VALUE = ("-n", "-p", "-r", "--dist", "--durations", "--tb", "--color", "--capture", "--passed", "--passed-under",
              "--ignore", "--basetemp", "--nbval-sanitize-with")  # fmt: skip
# They look at the repository as a whole, but for those that say what they read or visit.
ALWAYS_RUN = (
    "tests/notebooks",
    "tests/site",
    "tests/tools",
    "tests/test_requirements.py",
    "tests/benchmarks",
)
# What a test takes of which nobody knows.
SECONDS_A_TEST = 0.3
# Skips that follow from the code and the versions; any other may be due to the machine, and is no pass.
SETTLED = ("draws nothing", "consumes no key", "jax hides this one's jaxpr", "the argument is no tree",
           "its compiler sees through the barrier", "the guard of older versions sees less")  # fmt: skip


def pytest_addoption(parser):
    group = parser.getgroup("passed")
    group.addoption("--passed", metavar="ENVIRONMENT", help="leave out the files that passed in it before")
    group.addoption("--passed-under", metavar="PATH", help="only files under PATH (default: all)")


def pytest_configure(config):
    if config.getoption("--passed") and not config.option.collectonly:
        of = _Worker if hasattr(config, "workerinput") else _Controller
        config.pluginmanager.register(of(config), "passed")


class _LeftOut:
    """Files that are not even collected."""

    def __init__(self, config, left_out=()):
        self.root, self.left_out = pathlib.Path(config.rootpath), frozenset(left_out)

    def pytest_ignore_collect(self, collection_path):
        if collection_path.is_relative_to(self.root):
            return self.name(collection_path) in self.left_out or None

    def name(self, path) -> str:
        return pathlib.Path(path).relative_to(self.root).as_posix()


class _Worker(_LeftOut):
    def __init__(self, config):
        super().__init__(config, config.workerinput["passed_left_out"])
        self.seconds = config.workerinput["passed_seconds"]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Files that take long come first, so that the workers are done at about the same time."""
        tests = collections.Counter(item.nodeid.partition("::")[0] for item in items)

        def expected(item):
            unit = item.nodeid.partition("::")[0]
            return -self.seconds.get(unit, SECONDS_A_TEST * tests[unit])

        items.sort(key=expected)


class _Controller(_LeftOut):
    def __init__(self, config):
        super().__init__(config)
        self.config = config
        options, self.foreign = _options(config.invocation_params.args)
        self.record = record.Record(
            config.getoption("--passed"), settings=options, runner=_runner(config), root=self.root
        )
        self.collected = collections.defaultdict(set)
        self.recordable = set()  # those whose key was taken before they ran
        self.outcomes = collections.defaultdict(dict)  # unit -> test -> whether it passed
        self.seconds = collections.Counter()
        self.asked = [pathlib.Path(argument).resolve() for argument in config.args]
        self.ignored = [pathlib.Path(each).resolve() for each in config.getoption("ignore") or ()]
        under = config.getoption("--passed-under")
        self.under = (self.root / under).resolve() if under else self.root
        # What this machine measured counts more than what the record says.
        units = self.record.units()
        self.expected = {unit: self.record.seconds(unit) for unit in units} | self.record.measured()
        config.option.loadscopereorder = False  # xdist would sort by the number of tests
        if not self.foreign:
            units = [unit for unit in self.record.units() if self._is_asked_for(unit)]
            self.left_out = frozenset(unit for unit in units if self.record.covers(unit))

    def _is_asked_for(self, unit: str) -> bool:
        """Whether this run would collect the file for being in a folder. One that is named always runs."""
        path = self.root / unit
        return (
            path.exists()
            and self._is_recordable(unit)
            and path not in self.asked
            and any(folder in path.parents for folder in self.asked)
            and not any(folder in (path, *path.parents) for folder in self.ignored)
        )

    def _is_recordable(self, unit: str) -> bool:
        path = self.root / unit
        whole = unit.startswith(ALWAYS_RUN) and not self.record.says_what_it_needs(unit)
        return path.is_relative_to(self.under) and not whole

    # Which tests there are

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["passed_left_out"] = sorted(self.left_out)
        node.workerinput["passed_seconds"] = self.expected

    def pytest_collection_finish(self, session):
        self._collected(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        self._collected(ids)

    def _collected(self, ids):
        for test in ids:
            unit = test.partition("::")[0]
            if unit not in self.collected and self._is_recordable(unit) and not self.foreign:
                self.record.key(unit)
                self.recordable.add(unit)
            self.collected[unit].add(test)

    # What became of them

    def pytest_runtest_logreport(self, report):
        unit = report.nodeid.partition("::")[0]
        fine = report.passed or hasattr(report, "wasxfail") or _is_settled(report)
        before = self.outcomes[unit].get(report.nodeid, (True, False))
        # A test has run if its call was reported, or it was skipped.
        self.outcomes[unit][report.nodeid] = before[0] and fine, before[1] or report.when != "setup" or fine
        self.seconds[unit] += report.duration

    @pytest.hookimpl(hookwrapper=True)
    def pytest_sessionfinish(self, session, exitstatus):
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.left_out:
            session.exitstatus = pytest.ExitCode.OK
        yield
        if not self.foreign:
            passed = {unit: seconds for unit, seconds in self.seconds.items() if self._passed(unit)}
            # The visits to pages, and what always runs beside them, are for `pages` to count.
            counted = {
                unit: seconds
                for unit, seconds in passed.items()
                if unit in self.recordable or not unit.startswith("tests/site/")
            }
            self.record.measured(counted)
            self.record.note(
                {
                    unit: self.seconds[unit] if self._passed(unit) else None
                    for unit in self.outcomes
                    if unit in self.recordable
                }
            )

    def _passed(self, unit: str) -> bool:
        tests, outcomes = self.collected[unit], self.outcomes[unit]
        return bool(tests) and tests == set(outcomes) and all(map(all, outcomes.values()))

    def pytest_terminal_summary(self, terminalreporter):
        if self.foreign:
            said = f"nothing is left out and nothing remembered, for {' '.join(self.foreign)} may choose among tests\n"
        else:
            said = self.record.summary()
        if said:
            terminalreporter.section("remembered", sep="-")
            terminalreporter.write(said)


def _is_settled(report) -> bool:
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return False
    return report.longrepr[2].removeprefix("Skipped: ").startswith(SETTLED)


def _options(arguments) -> tuple[list[str], list[str]]:
    """The options that are part of the key, and those of which it is not known that they leave files whole."""
    keyed, foreign = [], []
    arguments = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, arguments)]
    value_of = None
    for argument in arguments:
        if value_of:
            if value_of.startswith(KEYED):
                keyed.append(f"{value_of} {argument}")
            value_of = None
            continue
        if not argument.startswith("-"):
            if "::" in argument:
                foreign.append(argument)
        elif argument.startswith(KEYED):
            keyed.append(argument)
        elif not argument.startswith(HARMLESS):
            foreign.append(argument)
        if argument in WITH_VALUE:
            value_of = argument
    return sorted(keyed), foreign


def _runner(config) -> list[str]:
    """The configuration of nbval, which is no module."""
    file = getattr(config.option, "nbval_sanitize_with", None)
    return [file] if file else []
