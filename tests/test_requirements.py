"""What is written in two places agrees: pyproject.toml, requirements.txt, the Makefile, the README, the guides."""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import nbformat
import pytest

from tools import project
from tools.notebooks import pages
from tools.notebooks.places import Book

ROOT = project.ROOT
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GUIDES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def tracked():
    """The files of the repository that are text, by their path in it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    texts = {}
    for name in filter(None, listed.stdout.split("\0")):
        try:
            texts[name] = read(name)
        except (UnicodeDecodeError, FileNotFoundError):  # a picture; a file just removed
            continue
    return texts


def split(requirement):
    """`jax>=0.7.2` as ("jax", ">=0.7.2"); an extra is left out."""
    name, condition = re.fullmatch(r"([\w.-]+)(?:\[[\w,-]+\])?\s*(.*)", requirement).groups()
    return name, condition


def declared():
    """Every requirement of pyproject.toml: where it stands, its name, its condition."""
    lists = {"package": PYPROJECT["project"]["dependencies"]}
    for name, requirements in PYPROJECT["project"]["optional-dependencies"].items():
        lists[f"extra {name}"] = requirements
    for name, requirements in PYPROJECT["dependency-groups"].items():
        lists[f"group {name}"] = requirements
    lists["build backend"] = PYPROJECT["build-system"]["requires"]
    return [
        (place, *split(requirement))
        for place, requirements in lists.items()
        for requirement in requirements
        if split(requirement)[0] != PYPROJECT["project"]["name"]
    ]


def rows(text, after):
    """The cells of the first table after the line ``after``."""
    lines = text[text.index(after) :].splitlines()[1:]
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table[2:]


# Dependencies


def test_requirements_txt_is_what_pyproject_says():
    lines = [line for line in read("requirements.txt").splitlines() if line and not line.startswith("#")]
    places = ("package", "extra notebooks", "group lab")
    assert dict(map(split, lines)) == {name: how for place, name, how in declared() if place in places}
    assert all(">=" in line and "==" not in line for line in lines), "floors only: a pin replaces Colab's JAX"


def imported():
    """What the package imports that is neither its own nor Python's: at the top of a file (but for the server of the live pages,
    which only its command imports), and anywhere.
    """
    on_top, anywhere = set(), set()
    late = re.compile(r'_import\("([\w.]+)"')  # by name, in the call that needs it
    for path in (ROOT / "mlax_tutorial").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        anywhere |= {name.split(".")[0] for name in late.findall(text)}
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            roots = {name.split(".")[0].lower() for name in names}
            anywhere |= roots
            on_top |= roots if node in tree.body and path.parent.name != "live" else set()
    own = {name.lower() for name in sys.stdlib_module_names} | {"mlax_tutorial"}
    return on_top - own, anywhere - own


IMPORTED_AS = {
    "orbax": "orbax-checkpoint",
    "jupyter_client": "jupyter-client",
    "jupyter_server": "jupyter-server",
}
PARTS = {"cycler": "matplotlib", "traitlets": "jupyter-server", "zmq": "jupyter-client"}


def test_the_package_needs_only_what_it_imports():
    on_top, anywhere = imported()
    package, notebooks, saving, live = (
        {name for place, name, _ in declared() if place == where}
        for where in ("package", "extra notebooks", "extra saving", "extra live")
    )
    # jaxlib is jax's other half; optax is imported by the chapters, and by the examples in the docstrings.
    assert package - {"jaxlib", "optax"} <= anywhere
    anywhere = {IMPORTED_AS.get(name, name) for name in anywhere}
    assert saving | live - {"ipykernel"} <= anywhere <= package | notebooks | saving | live | PARTS.keys()
    late = notebooks | saving | live | IMPORTED_AS.keys()
    assert not (on_top & late) - {"matplotlib"}, "import late what only a notebook needs"


REASON = re.compile(r"((?: *#.*\n)+) *(?:requires = \[)?\"([\w.-]+)[^\"]*\"")


def test_every_dependency_says_why_it_is_there_and_instead_of_what():
    """In a comment above it, but for the oldest versions, which repeat others."""
    repeated = {"group oldest", "group oldest-tpu"}
    declared_here = {name for place, name, _ in declared() if place not in repeated}
    reasons = {
        name: " ".join(re.findall(r"# (.*)", text)) for text, name in REASON.findall(read("pyproject.toml"))
    }
    for name in declared_here:
        assert "; instead of " in reasons.get(name, "").lower(), f"pyproject.toml does not say why {name}"
        assert len(reasons[name].partition("; instead of ")[0]) > 4


def dependency_table():
    return {
        row[0].strip("`"): row[1:] for row in rows(read("CONTRIBUTING.md"), "<!-- dependencies:begin -->")
    }


OUTSIDE = {"Makefile", "vendored", "live pages", "CI"}


def test_what_is_installed_or_vendored_besides_has_a_row():
    table = dependency_table()
    by_place = {
        place: {name for name, (where, *_) in table.items() if where.startswith(place)} for place in OUTSIDE
    }
    installed = re.search(r"apt-get install ((?:-\S+ )*)([\w -]+?) >", read(".ci/run"))[2].split()
    assert by_place["CI"] == set(installed)
    vendored = {path.parent.name for path in (ROOT / "book" / "_static").glob("*/LICENSE")}
    assert by_place["vendored"] == vendored
    assert by_place["Makefile"] == {"uv"}
    bundled = json.loads(read("tools/live/package.json"))
    names = bundled["dependencies"] | bundled["devDependencies"]
    assert by_place["live pages"] == {re.sub("@(codemirror|lezer)/.*", "codemirror", name) for name in names}


@pytest.mark.parametrize("column", [1, 2], ids=["reason", "instead of"])
def test_every_row_says_why(column):
    empty = [name for name, row in dependency_table().items() if len(row) != 3 or len(row[column]) < 4]
    assert not empty


def test_workflows_use_the_actions_that_are_named():
    used = {
        action
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for action in re.findall(r"uses: ([\w/-]+)@", path.read_text(encoding="utf-8"))
    }
    assert used == set(re.findall(r"`((?:actions|pypa)/[\w-]+)`", read("CONTRIBUTING.md")))


# Commands


def targets():
    return set(re.findall(r"^([a-z][a-z-]*):.*## ", read("Makefile"), re.MULTILINE))


@pytest.mark.parametrize(
    "name",
    [
        *GUIDES,
        ".ci/run",
        "book/_src/welcome.md",
        ".github/workflows/test.yml",
        ".github/workflows/weekly.yml",
        ".github/workflows/release.yml",
    ],
)
def test_make_targets_that_are_named_exist(name):
    named = re.findall(r"(?:`|^\s*|run: |^step \S+ )make ((?:[a-z][a-z-]*[ `]?)+)", read(name), re.MULTILINE)
    named = {target for run in named for target in run.strip("` ").split()}
    named |= {t for step in re.findall(r"target: \[(.*)\]", read(name)) for t in step.split(", ")}
    assert named <= targets(), f"{name} names {named - targets()}"


def test_help_lists_every_target():
    listed = re.search(r"^TARGETS := ((?:.*\\\n)*.*)", read("Makefile"), re.MULTILINE)[1]
    assert set(listed.replace("\\", " ").split()) == targets()


def test_the_guide_is_short():
    assert len(read("CONTRIBUTING.md").encode()) <= 12_000


@pytest.mark.parametrize("name", GUIDES)
def test_links_to_files_lead_somewhere(name):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)|src=\"([^\"]+)\"", read(name))
    relative = [a or b for a, b in links if "://" not in (a or b)]
    missing = [link for link in relative if not (ROOT / name).parent.joinpath(link).exists()]
    assert not missing


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_files_that_are_named_exist(name):
    """Paths in backticks that begin with a folder of the repository."""
    folders = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._")
    named = re.findall(rf"`((?:{folders})/[\w/.-]*)`", read(name))
    assert named
    missing = [path for path in named if "NAME" not in path and "CHAPTER" not in path]
    missing = [path for path in missing if not (ROOT / path).exists()]
    later = {"book/_src/devices.jsonl"}  # made by the first run on another device
    assert set(missing) <= later


# The README


def test_the_example_in_the_readme_runs(tmp_path):
    (code,) = re.findall(r"^```python\n(.*?)^```", read("README.md"), re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert 0 < float(re.fullmatch(r"loss (\d+\.\d\d)\n", done.stdout)[1]) < 0.5, "it did not learn"


def test_the_readme_has_a_place_for_the_chapters():
    before, _, rest = read("README.md").partition(pages.BEGIN)
    assert rest.count(pages.END) == 1 and "open in Colab" in rest.partition(pages.END)[0]


# What must not stand in a file


def written_by_hand(name, text):
    """A file without what the tools write into it."""
    if name == "README.md":
        return text.partition(pages.BEGIN)[0] + text.partition(pages.END)[2]
    if name.startswith("book/") and name.endswith(".ipynb"):
        cells = nbformat.reads(text, as_version=4).cells
        set_up = next(i for i, cell in enumerate(cells) if cell.cell_type == "code")
        return "\n".join(cell.source for cell in cells[:set_up] + cells[set_up + 1 :])
    return "" if project.ROOT / name in Book().generated else text


def test_one_file_names_the_public_repository():
    """And the README, for those who read nothing else: its addresses are the same."""
    slug = project.repository().removeprefix("https://github.com/")
    naming = {name for name, text in tracked().items() if slug in written_by_hand(name, text)}
    assert naming == {"pyproject.toml", "README.md"}
    said = read("README.md")
    assert f"git clone {project.repository()} " in said
    assert f"<{project.page_url('').partition('/.html')[0]}>" in said


def test_no_file_depends_on_a_folder_outside_of_the_repository():
    outside = re.compile(r"(?<![\w.])/work/|(?<![\w/])\.library\b|(?<![\w./])(?:\.\./)*shared/\w+\.md")
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in tracked().items()
        if pathlib.PurePath(name).suffix != ".lock" and name != "tests/test_requirements.py"
        for number, line in enumerate(text.splitlines(), 1)
        if outside.search(line)
    ]
    assert not found, "\n".join(found)
