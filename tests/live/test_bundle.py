"""The scripts that the package and the pages ship are those that their sources make."""

import hashlib
import re
import shutil
import subprocess

import pytest

from tools import project

SOURCES = project.ROOT / "tools" / "live"
STATIC = "mlax_tutorial/live/static"
MADE = [
    f"{STATIC}/live.js",
    f"{STATIC}/LICENSES.txt",
    "book/_static/mathjax/mathjax.js",
    "book/_static/mathjax/LICENSES.txt",
]
AGAIN = "run `make live-bundle` and commit what it makes"


def files():
    """The sources of the bundle, by their path, in the order of the hash."""
    names = ["build.mjs", "package-lock.json", "package.json"]
    names += [
        f"{folder}/{path.name}" for folder in ("licenses", "src") for path in (SOURCES / folder).iterdir()
    ]
    return sorted(names)


@pytest.mark.parametrize("script", MADE[::2])
def test_a_bundle_names_the_hash_of_its_sources(script):
    hasher = hashlib.sha256()
    for name in files():
        hasher.update(name.encode() + (SOURCES / name).read_bytes())
    first = (project.ROOT / script).read_text(encoding="utf-8").split("\n", 1)[0]
    assert re.search("[0-9a-f]{64}", first)[0] == hasher.hexdigest(), AGAIN


def test_they_are_made_again_byte_for_byte(tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("there is no npm on this machine")
    for name in files():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(SOURCES / name, tmp_path / name)
    fetched = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    if fetched.returncode:
        pytest.skip(f"npm cannot fetch the packages: {fetched.stderr.strip()[-200:]}")
    subprocess.run(["node", "build.mjs", str(tmp_path / "made")], cwd=tmp_path, check=True)
    for name in MADE:
        assert (tmp_path / "made" / name).read_bytes() == (project.ROOT / name).read_bytes(), AGAIN


def test_it_holds_the_licenses_of_all_packages():
    text = (project.ROOT / STATIC / "LICENSES.txt").read_text(encoding="utf-8")
    packages = re.findall(r"^(@?[\w./-]+) \d[\w.-]*: (MIT|BSD-3-Clause|ISC|Apache-2.0)$", text, re.MULTILINE)
    assert len(packages) > 20
    assert len(re.findall("Copyright", text)) >= len(packages)
