"""What every figure owes: a folder of its name with what belongs to it, a test, a place in the gallery and in the reference."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mlax_tutorial import viz

TESTS = Path(__file__).parents[1]
FOLDER = Path(viz.__file__).with_name("figures")
FIGURES = sorted(path.name for path in FOLDER.iterdir() if (path / "__init__.py").exists())
SHARED = "figure bar previous next range status caption scroll later now unseen tune".split()


def test_each_folder_is_a_public_figure():
    assert len(FIGURES) > 20 and set(FIGURES) == set(viz.__all__) - {"show", "show_source", "subplots"}


def test_importing_the_package_draws_in_no_figure():
    """Nor may a module of the package have a figure's name: importing it would put it in the function's place."""
    code = "import sys, mlax_tutorial.viz; sys.exit('mlax_tutorial.viz.figures' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert not {path.stem for path in FOLDER.parent.iterdir()} & set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_complete(name):
    function = getattr(viz, name)
    assert (function.__name__, function.__module__) == (name, f"mlax_tutorial.viz.figures.{name}")
    assert f"- ``{name}`` " in viz.__doc__, (
        "the docstring of mlax_tutorial/viz/__init__.py has no line for it"
    )
    missing = [each for each in ("page.py", "style.css") if not (FOLDER / name / each).exists()]
    assert not missing and (TESTS / f"viz/test_{name}.py").exists()
    gallery = (TESTS / "site/gallery/gallery.md").read_text(encoding="utf-8")
    shown = f"viz.{name}(" in gallery or f"viz.figures.{name} import" in gallery
    assert shown or name == "timeline", (
        "tests/site/gallery/gallery.md shows no figure of this kind"
    )  # no run takes the same time
    states = (TESTS / "site/gallery/__init__.py").read_text(encoding="utf-8")
    state = f'    "{name.replace("_", "-")}": ('
    assert state in states or name == "timeline", "tests/site/gallery/__init__.py has no state of its name"
    reference = (TESTS.parent / "book/reference/tools.md").read_text(encoding="utf-8")
    assert f".. autofunction:: mlax_tutorial.viz.{name}\n" in reference


@pytest.mark.parametrize("name", FIGURES)
def test_styles_and_scripts_name_the_figure_s_own_classes(name):
    """Pages hold several figures: a rule for a class of another one would change that."""
    own = f"viz-{name.replace('_', '-')}"
    for file in ("style.css", "script.js"):
        if (path := FOLDER / name / file).exists():
            used = set(re.findall(r"(?<=\.)viz-[\w-]+", path.read_text(encoding="utf-8")))
            assert {each for each in used if each != own and not each.startswith(f"{own}-")} <= {
                f"viz-{each}" for each in SHARED
            }
