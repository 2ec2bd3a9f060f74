"""The public address comes from pyproject.toml, and from nowhere else."""

import subprocess
import tomllib

from tools import project
from tools.notebooks.places import Book

from .conftest import new_book


def test_addresses(tmp_path):
    root = new_book(tmp_path / "book").root
    assert project.repository(root) == "https://github.com/someone/some-book"
    assert project.revision(root) == "v1"
    assert (
        project.requirement(root) == "mlax-tutorial[notebooks] @ git+https://github.com/someone/some-book@v1"
    )
    colab = "https://colab.research.google.com/github/someone/some-book/blob/v1/book/arrays.ipynb"
    assert project.colab_url("book/arrays.ipynb", root) == colab


def test_the_requirement_names_an_extra_that_exists():
    with open(project.ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert "notebooks" in extras
    assert project.requirement().startswith("mlax-tutorial[notebooks] @ git+https://")


def test_no_other_file_names_the_repository():
    """Generated files do (notebooks, pages, the README's table); a check keeps these up to date."""
    command = [
        "git",
        "grep",
        "-lF",
        project.repository().removeprefix("https://"),
        "--",
        "*.py",
        "*.yml",
        "*.toml",
        "*.md",
    ]
    listed = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True)
    if listed.returncode not in (0, 1):  # not a git checkout
        listed = None
    found = set(listed.stdout.split()) if listed else {"pyproject.toml"}
    generated = {Book().relative(path) for path in Book().generated}
    assert found <= {"pyproject.toml", "README.md", *generated}
