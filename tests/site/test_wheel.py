"""The wheel: installed into an environment of its own, without a network, it opens the book, and a cell runs."""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.site.test_live import PATIENCE, Reader, serving
from tools import project, wheel


@pytest.fixture(scope="module")
def built(site, tmp_path_factory):
    return wheel.build(site, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The folder of the environment's programs. What the package needs lies beside it; the checkout does not."""
    place = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    own = Path(sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)}))
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", built]
    subprocess.run(pip, check=True, env=os.environ | {"PIP_FIND_LINKS": ""})
    (own / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin"


def test_its_command_opens_the_book_and_a_cell_runs(installed, chromium, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    command = [installed / "mlax-tutorial", "live", "--no-browser", "--port", "0"]
    with serving(command, tmp_path, folder=tmp_path) as (_, served):
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE)
        reader = Reader(context.new_page(), served).open("arrays")
        reader.run(reader.cell(1), "import mlax_tutorial\nprint('from', mlax_tutorial.__file__)")
        output = reader.cell(1).locator(".cell_output")
        expect(output).to_contain_text(f"from {installed.parent}")
        assert not reader.complaints
        context.close()


def test_it_holds_the_package_the_book_and_their_licenses(built, site):
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
        (about,) = [name for name in names if name.endswith("/METADATA")]
        said = archive.read(about).decode()
    packed = {name.removeprefix(f"{wheel.BOOK}/") for name in names if name.startswith(wheel.BOOK)}
    assert packed == {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    code = {
        path.relative_to(project.ROOT).as_posix() for path in (project.ROOT / "mlax_tutorial").rglob("*.py")
    }
    assert code <= {*names}
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".partial"))]
    licenses = {name.rpartition("/")[2] for name in names if "/licenses/" in name}
    assert {"LICENSE", "LICENSE-fashion-mnist", "LICENSE-jargon", "LICENSE-names"} <= licenses
    assert built.stat().st_size < 20_000_000
    # The package index has no files beside the page.
    readme = said.partition("\n\n")[2]
    links = re.findall(r"\]\(([^)]+)\)|src=\"([^\"]+)\"", readme)
    assert links and not [
        link for pair in links for link in pair if link and not link.startswith(("https://", "#"))
    ]


def test_without_a_book_it_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="holds no built book: run `make book`"):
        wheel.build(tmp_path, tmp_path)
    assert not list(tmp_path.iterdir())
