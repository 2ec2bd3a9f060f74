"""Rendered pages that passed are not visited again: `-p tools.passed.pages`, for a run of the whole of `tests/site`.

A page's unit is the test that visits it. Its key holds, instead of the sources of the project, what a reader's browser gets:
the page's HTML and pictures, everything that pages share (style, scripts, fonts), the browser's version, and the tests themselves.
"""

import collections
import os
import pathlib
import re

import pytest

from tools import project
from tools.passed import rendered
from tools.passed.record import SITE, Record, digest
from tools.site import browser

MODULE = "tests/site/test_pages.py"
UNIT = re.compile(re.escape(MODULE) + r"::test_page\[(.+\.html)\]")


class Pages(Record):
    """The pages of a built site; a unit is the path of one below the site's folder."""

    def __init__(self, site=None, *, root=project.ROOT, version=None):
        site = site or root / SITE
        settings = [version or rendered.chromium_version(), *rendered.shared(site)]
        super().__init__("pages", runner=[MODULE], settings=settings, root=root, site=site)

    def files(self, unit):
        return self._project.files(*self._runner)

    def key(self, unit):
        if unit not in self._keys:
            self._keys[unit] = digest(super().key(unit), *rendered.contents(self.site, unit))
        return self._keys[unit]

    def exists(self, unit):
        return (self.site / unit).is_file()


# Pytest's part. The process that was started decides; workers of xdist are told.


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        left_out = config.workerinput.get("pages_left_out", ())
        config.pluginmanager.register(_Worker(left_out), "passed-pages")
        return
    whole = [pathlib.Path(each).resolve() for each in config.args] == [project.ROOT / "tests" / "site"]
    if whole and (project.ROOT / SITE).is_dir() and "MLAX_SITE" not in os.environ:
        config.pluginmanager.register(_Controller(Pages()), "passed-pages")


def _page(test: str) -> str | None:
    found = UNIT.match(test)
    return found and found[1]


class _Worker:
    def __init__(self, left_out):
        self.left_out = set(left_out)

    def pytest_collection_modifyitems(self, config, items):
        gone = {item for item in items if _page(item.nodeid) in self.left_out}
        config.hook.pytest_deselected(items=sorted(gone, key=lambda item: item.nodeid))
        items[:] = [item for item in items if item not in gone]


class _Controller(_Worker):
    def __init__(self, record):
        super().__init__(name for name in browser.pages(record.site) if record.covers(name))
        self.record, self.passed, self.seconds = record, {}, collections.Counter()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["pages_left_out"] = sorted(self.left_out)

    def pytest_runtest_logreport(self, report):
        page = _page(report.nodeid)
        self.seconds[page or report.nodeid.partition("::")[0]] += report.duration
        if page:
            self.passed.setdefault(page, set()).update({report.when} if report.passed else ())

    def pytest_sessionfinish(self):
        # A visit that was interrupted has no report of its call.
        whole = {"setup", "call", "teardown"}
        self.record.note(
            {page: self.seconds[page] if passed == whole else None for page, passed in self.passed.items()}
        )
        # For projections; these always run. The others are the plugin's.
        files = [
            file
            for file in self.seconds
            if file not in self.passed and not self.record.says_what_it_needs(file)
        ]
        self.record.measured({file: self.seconds[file] for file in files})

    def pytest_terminal_summary(self, terminalreporter):
        if said := self.record.summary():
            terminalreporter.section("remembered", sep="-")
            terminalreporter.write(said)
