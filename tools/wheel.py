"""`python -m tools.wheel [FOLDER]`: the package as a wheel that holds the rendered book, for readers without a clone.

Whoever installs it has the live pages by `mlax-tutorial live`. A wheel that pip builds from the sources, as on Colab, is without them.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tools import project
from tools.project import ROOT

BOOK = "mlax_tutorial/live/site"  # where `mlax_tutorial.live.book` looks for it


def build(site: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Build the wheel with the book at `site`, into `folder`; returns its path.

    Raises:
      SystemExit: if there is no built book.
    """
    if not (site / "index.html").is_file():
        sys.exit(f"{site} holds no built book: run `make book`.")
    with tempfile.TemporaryDirectory() as scratch:
        stage = pathlib.Path(scratch)
        for name in ("pyproject.toml", "LICENSE"):
            shutil.copy(ROOT / name, stage)
        (stage / "README.md").write_text(
            absolute((ROOT / "README.md").read_text(encoding="utf-8")), encoding="utf-8"
        )
        shutil.copytree(
            ROOT / "mlax_tutorial", stage / "mlax_tutorial", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copytree(site, stage / BOOK)
        command = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target",
            "wheel",
            "--directory",
            stage / "dist",
        ]
        subprocess.run(command, cwd=stage, check=True, stdout=subprocess.DEVNULL)
        (built,) = (stage / "dist").glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        beside = shutil.copy(built, folder / f"{built.name}.partial")
        return pathlib.Path(beside).rename(folder / built.name)


def absolute(readme: str) -> str:
    """Its links and pictures with whole addresses, for the page of the package index, which has no files beside it."""
    place = f"{project.repository()}/%s/{project.revision()}/"
    readme = re.sub(r"\]\((?!https?:|#)", f"]({place % 'blob'}", readme)
    return re.sub(r'src="(?!https?:)', f'src="{place % "raw"}', readme)


if __name__ == "__main__":
    wheel = build(ROOT / "_build" / "html", pathlib.Path(*sys.argv[1:2] or [ROOT / "_build" / "wheel"]))
    print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")
