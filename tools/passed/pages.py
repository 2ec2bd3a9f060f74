"""Rendered pages that passed are not visited again: `-p tools.passed.pages`, for a run of the whole of `tests/site`.

A page's unit is the test that visits it. Its key holds, instead of the sources of the project, what a reader's browser gets:
the page's HTML and pictures, everything that pages share (style, scripts, fonts), the browser's version, and the tests themselves.
"""

import collections
import functools
import os
import pathlib
import re
import subprocess

import pytest

from tools import project
from tools.passed.record import Record, digest
from tools.site import browser

SITE = project.ROOT / "_build" / "html"
MODULE = "tests/site/test_pages.py"
UNIT = re.compile(re.escape(MODULE) + r"::test_page\[(.+\.html)\]")
# Sphinx writes a style sheet's hash into the address in its second run, and not in its first; the sheet itself is in the key.
VERSION = re.compile(rb"\?v=[0-9a-f]{8}")
PICTURE = re.compile(rb'"((?:\.\./)*_images/[^"]+)"')


class Pages(Record):
    """The pages of a built site; a unit is the path of one below the site's folder."""

    def __init__(self, site=SITE, *, root=project.ROOT, version=None):
        self.site = site
        super().__init__(
            "pages", runner=[MODULE], settings=[version or chromium_version(), *shared(site)], root=root
        )

    def files(self, unit):
        return self._project.files(*self._runner)

    def key(self, unit):
        if unit not in self._keys:
            self._keys[unit] = digest(super().key(unit), *contents(self.site, unit))
        return self._keys[unit]

    def exists(self, unit):
        return (self.site / unit).is_file()


@functools.cache
def chromium_version() -> str:
    if not pathlib.Path(browser.CHROMIUM).is_file():
        return "no browser"
    return subprocess.run([browser.CHROMIUM, "--version"], capture_output=True, text=True).stdout.strip()


def shared(site: pathlib.Path) -> list[str]:
    """What all pages load, or may. The index of the search changes with each chapter, and is loaded when somebody searches."""
    files = sorted(path for path in (site / "_static").rglob("*") if path.is_file())
    return [_named(site, path) for path in files if not _is_index(path)]


def contents(site: pathlib.Path, unit: str) -> list[str]:
    """The page, and its pictures."""
    html = (site / unit).read_bytes()
    pictures = sorted({(site / unit).parent / found.decode() for found in PICTURE.findall(html)})
    indexes = [path for path in sorted(site.rglob("*")) if path.is_file() and _is_index(path)]
    used = [*pictures, *(indexes if unit.startswith("search") else [])]
    return [_hash(VERSION.sub(b"", html)), *(_named(site, path) for path in used)]


def _is_index(path: pathlib.Path) -> bool:
    return "index" in path.stem and path.suffix in (".js", ".json")


def _named(site: pathlib.Path, path: pathlib.Path) -> str:
    path = path.resolve()
    return f"{path.relative_to(site.resolve()).as_posix()} {_hash(path.read_bytes())}"


def _hash(content: bytes) -> str:
    return digest(content.hex())


# Pytest's part. The process that was started decides; workers of xdist are told.


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        left_out = config.workerinput.get("pages_left_out", ())
        config.pluginmanager.register(_Worker(left_out), "passed-pages")
        return
    whole = [pathlib.Path(each).resolve() for each in config.args] == [project.ROOT / "tests" / "site"]
    if whole and SITE.is_dir() and "MLAX_SITE" not in os.environ:
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
        super().__init__(name for name in browser.pages(SITE) if record.covers(name))
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
        # For projections; these always run.
        self.record.measured({file: took for file, took in self.seconds.items() if file not in self.passed})

    def pytest_terminal_summary(self, terminalreporter):
        if said := self.record.summary():
            terminalreporter.section("remembered", sep="-")
            terminalreporter.write(said)
