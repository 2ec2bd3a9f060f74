"""The browser of the tests. Without one they are skipped, or fail where they must run (`MLAX_REQUIRE_BROWSER=1`)."""

import contextlib
import os
from pathlib import Path

import pytest

from tools.visits import browser


def missing(reason):
    if os.environ.get("MLAX_REQUIRE_BROWSER") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@contextlib.contextmanager
def chromium():
    if not Path(browser.CHROMIUM).is_file():
        missing(f"no browser at {browser.CHROMIUM}: install Debian's package `chromium`")
    with browser.chromium() as running:
        yield running
