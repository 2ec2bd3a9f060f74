"""The built site, served on this machine, and one browser for all tests of it."""

import os
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests import browsers  # noqa: E402
from tools.visits import browser  # noqa: E402

expect.set_options(timeout=120_000)  # on a busy machine what is waited for comes late
SITE = Path(os.environ.get("MLAX_SITE", ROOT / "_build" / "html"))


# The tests below one of these run in one process, so that what they need is made once: the gallery, a live book, a PDF.
TOGETHER = ("tests/site/gallery/", "tests/site/test_live.py::", "tests/site/test_pdf.py::")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """All others run wherever there is time. (From pytest 9.2 on, `xdist_group` of pytest-xdist 3.8 marks nothing.)"""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return next((beginning for beginning in TOGETHER if nodeid.startswith(beginning)), nodeid)

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """To be told what is made: it fails if another process of this run has made that, too."""
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name):
        try:
            (run / f"made-{name}").touch(exist_ok=False)
        except FileExistsError:
            pytest.fail(f"{name}: made in two processes; see TOGETHER in {__file__}", pytrace=False)

    return made


def pytest_generate_tests(metafunc):
    """Tests with an argument `name` run on each page, those with `chapter` on each page that is a notebook."""
    for argument, find in [("name", browser.pages), ("chapter", chapters)]:
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, find(SITE) or ["no site"])


def chapters(site):
    """The pages that hold code cells."""
    return [
        name
        for name in browser.pages(site)
        if '<div class="cell ' in (site / name).read_text(encoding="utf-8")
    ]


@pytest.fixture(scope="session")
def site():
    if not (SITE / "index.html").is_file():
        browsers.missing(f"no built site at {SITE}: run `make book`")
    return SITE


@pytest.fixture(scope="session")
def chromium():
    with browsers.chromium() as running:
        yield running


@pytest.fixture(scope="session")
def address(site):
    with browser.serve(site) as served:
        yield served


@pytest.fixture(scope="session")
def some_chapter(site):
    """A page that is a notebook, the last one: for what is the same on all of them."""
    names = [
        name for name in browser.pages(site) if (site / "_sources" / name).with_suffix(".ipynb").is_file()
    ]
    assert names, "no chapter in the built site"
    return names[-1]


@pytest.fixture
def page(chromium, address):
    """A fresh page, light, that can reach the site alone (by the browser's flags)."""
    context = chromium.new_context(
        base_url=address,
        viewport={"width": 1280, "height": 900},
        color_scheme="light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()
