"""What the tests of this project depend on: no more than they must, or nothing would ever be left out."""

import re

import pytest

from tools.passed.dependencies import Project
from tools.passed.pages import MODULE


def test_what_leaves_much_to_remember():
    """One import that nobody can follow, and each exercise depends on everything: nothing would ever be left out."""
    here = Project()
    for unit in here.listed("tests/exercises"):
        folder, _, name = unit.rpartition("/")
        if folder.count("/") == 2 and not name.startswith("_"):
            others = [
                file
                for file in here.files(unit)
                if file.startswith(("book/", "tests/library/", "tests/notebooks/"))
            ]
            assert not others, f"{unit} depends on {others[0]} and {len(others) - 1} more"


def test_a_page_depends_on_its_visitors_alone():
    """The name of another test in a string of the site's conftest, and each commit would make all pages be visited again."""
    others = [file for file in Project().files(MODULE) if file.startswith(("book/", "mlax_tutorial/nn/"))]
    assert not others, f"a page depends on {others[0]} and {len(others) - 1} more"


@pytest.mark.parametrize(
    ("unit", "chapters"),
    [
        ("tests/site/gallery/test_gallery.py", set()),
        ("tests/site/gallery/test_sight.py", set()),
        ("tests/site/test_live.py", {"tracing", "welcome"}),
    ],
)
def test_who_visits_few_pages_depends_on_few_exercises(unit, chapters):
    here = Project()
    assert here.visits(unit) is not None
    found = {file.split("/")[2] for file in here.files(unit) if file.startswith("mlax_tutorial/exercises/")}
    assert found - {"__init__.py"} == chapters


@pytest.mark.parametrize(
    "unit",
    ["tests/notebooks/test_run.py", "tests/notebooks/test_validation.py", "tests/tools/test_passed.py"],
)
def test_tests_of_tools_that_say_what_they_read_do_not_depend_on_all_files(unit):
    assert Project().reads(unit) and "CHANGELOG.md" not in Project().files(unit)


def test_who_climbs_to_the_repository_can_be_seen_to():
    """`.parents` means: it may read everything, unless a comment says what. Steps of `.parent` are not looked for."""
    here = Project()
    climbs = re.compile(r"__file__\)(\.resolve\(\))?(\.parent){2}")
    found = [
        name
        for name in here.listed("tests")
        if name.endswith(".py") and climbs.search((here.root / name).read_text(encoding="utf-8"))
    ]
    assert not found, f"write `.parents[n]`, or take `tools.project.ROOT`: {found}"


def test_the_gallery_says_all_that_it_executes():
    """It reads files by a list, since its page is no notebook of the book: what that imports must be on the list."""
    here = Project()
    page = (here.root / "tests/site/gallery/gallery.md").read_text(encoding="utf-8")
    packages = re.findall(r"^from mlax_tutorial import (\w+)$", page, re.MULTILINE)
    assert {"nn", "viz"} <= set(packages) and page.count("import mlax_tutorial") == 0
    executed = here.files(*(file for name in packages for file in here.package(f"mlax_tutorial.{name}")))
    assert not set(executed) - set(here.files("tests/site/gallery/test_gallery.py"))
