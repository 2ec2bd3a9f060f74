"""Each notebook opened alone, as Colab opens it: another Python environment, an empty folder, no package; run twice.

Colab's JAX is the oldest that is supported, so this also shows that the chapters run on it, and what the second pass of a
chapter that trains jits is compiled for a TPU: the same kernel would otherwise run once more for that (`tests/tpu`).

The first cell then installs the package from its public address. Git is told, in a configuration of its own, that
this address is a copy of this repository's last commit; everything else is real. Uncommitted changes are not seen.
"""

import contextlib
import functools
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
import tomllib

import nbformat
import pytest

from tests.tpu import chapters, remembered
from tools import project
from tools.passed import Record

ROOT = project.ROOT
PYTHON = "3.12"
# What Colab's images carry.
COLAB = {
    "jax": "0.7.2",
    "jaxlib": "0.7.2",
    "numpy": "2.1.3",
    "optax": "0.2.8",
    "matplotlib": "3.10.0",
    "ipython": "7.34.0",
    "ipykernel": "6.17.1",
}
# The TPU compiler that goes with it, for a kernel on a CPU; there are wheels for one platform.
COMPILES = (sys.platform, platform.machine()) == ("linux", "x86_64")
(LIBTPU,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["oldest-tpu"]


def call(*command, cwd=ROOT, env=None):
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def committed(pattern):
    """The files of the last commit that match, relative to the repository."""
    names = call("git", "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    return sorted(name for name in names if pathlib.PurePath(name).match(pattern))


@functools.cache
def notebook_text(path):
    return call("git", "show", f"HEAD:{path}")


# The last commit runs, so what it depends on must not differ from it; see `tools.passed`. The notebook names what it imports.
# reads: nothing else
RECORD = Record(
    "colab",
    runner=["pyproject.toml", "tests/colab/run_notebook.py", "tests/colab/test_colab.py"],
    installed=[f"{name}=={version}" for name, version in COLAB.items()] + [LIBTPU],
    python=PYTHON,
    committed=True,
)
# What the same compiler compiled for the same chapter before.
PROGRAMS = remembered.Programs(
    versions=[f"{name}=={COLAB[name]}" for name in ("jax", "jaxlib")] + [LIBTPU], python=PYTHON
)
# The longest go first, so that two workers end together.
COMMITTED = [
    path
    for path in sorted(committed("book/*.ipynb"), key=RECORD.seconds, reverse=True)
    if any("mlax_tutorial" in "".join(cell["source"]) for cell in json.loads(notebook_text(path))["cells"])
]
NOTEBOOKS = [path for path in COMMITTED if not RECORD.covers(path)]


class Colab:
    """A Python environment that holds what Colab holds, and runs notebooks in empty folders."""

    def __init__(self, folder):
        self.folder = folder
        local = ROOT / ".uv" / "uv"
        self.uv = str(local) if local.exists() else shutil.which("uv") or pytest.fail("uv: run `make env`")
        self.python = folder / "venv" / "bin" / "python"
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(
                ("PYTHON", "MLAX", "JAX_", "XLA_", "UV_PROJECT", "VIRTUAL_ENV", "IPYTHON", "GIT_")
            )
        }
        self.env |= {
            "JAX_PLATFORMS": "cpu",
            "IPYTHONDIR": str(folder / "ipython"),
            "MLAX_TUTORIAL_PROGRESS": str(folder / "progress.json"),
            "GIT_CONFIG_GLOBAL": str(self._git()),
        }
        call(self.uv, "venv", "-q", "--no-project", "--seed", "-p", PYTHON, self.python.parents[1])
        # For chapters that train. Others time the compiler.
        self.cache = {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        wanted = [f"{name}=={version}" for name, version in COLAB.items()] + ["nbclient"]
        wanted += [LIBTPU] if COMPILES else []
        call(self.uv, "pip", "install", "-q", "-p", self.python, *wanted, cwd=folder)
        self.opened = []

    def _git(self):
        """A git configuration in which the public repository is a copy of this one."""
        origin = self.folder / "origin.git"
        call("git", "clone", "-q", "--bare", ROOT, origin)
        commit = call("git", "rev-parse", "HEAD").strip()
        call("git", "update-ref", f"refs/heads/{project.revision()}", commit, cwd=origin)
        path = self.folder / "gitconfig"
        path.write_text(
            f'[url "file://{origin}"]\n\tinsteadOf = {project.repository()}\n[safe]\n\tdirectory = *\n'
        )
        return path

    def has_package(self):
        probe = "import importlib.util; print(importlib.util.find_spec('mlax_tutorial') is not None)"
        return call(self.python, "-c", probe, cwd=self.folder, env=self.env).strip() == "True"

    def run(self, name, text, *, trains=False, known=()):
        """Runs a notebook; returns the versions and the place of the package afterwards. If it trains, what the first pass, or a
        chapter before, has compiled is found in JAX's cache, since compiling takes most of the time; and its programs are
        compiled for a TPU, too, but for those that are known to compile.
        """
        folder = self.folder / name
        folder.mkdir()
        (folder / "notebook.ipynb").write_text(text)
        runner = pathlib.Path(__file__).with_name("run_notebook.py")
        options = ["--programs", ROOT, "--known", ",".join(known)] if trains and COMPILES else []
        env = self.env | (self.cache if trains else {})
        said = call(self.python, runner, folder / "notebook.ipynb", *COLAB, *options, cwd=folder, env=env)
        return json.loads(said.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    return Colab(tmp_path_factory.mktemp("colab"))


def test_there_are_notebooks():
    assert COMMITTED


@pytest.mark.parametrize("path", COMMITTED)
def test_a_chapter_runs_again_when_the_package_changed_but_not_when_another_chapter_did(path):
    files = set(RECORD.files(path))
    assert path in files and not files & (set(COMMITTED) - {path}) and len(files) < len(committed("*")) / 2
    assert {"mlax_tutorial/__init__.py", "tests/colab/run_notebook.py", "pyproject.toml"} <= files


def test_without_the_first_cell_there_is_no_package(colab):
    """The test's own test: this environment does not see the checkout."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import mlax_tutorial")])
    with pytest.raises(AssertionError, match="No module named 'mlax_tutorial'"):
        colab.run("without", nbformat.writes(notebook))


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_opened_alone(colab, path):
    """The first one in an environment has to install the package, the others find it."""
    assert colab.has_package() == bool(colab.opened)
    colab.opened.append(path)
    begun = time.perf_counter()
    RECORD.failed(path)  # until it has passed
    name, text = pathlib.PurePath(path).stem, notebook_text(path)
    trains = chapters.trains(name, json.loads(text))
    with PROGRAMS.of(path) if trains and COMPILES else contextlib.nullcontext() as programs:
        facts = colab.run(name, text, trains=trains, known=programs.known if programs else ())
        found = facts.pop("programs")
        if programs:
            programs.add(found)
    folder = pathlib.Path(facts.pop("file")).parent
    assert folder.parent.name == "site-packages" and colab.folder in folder.parents
    assert facts == COLAB, "what Colab brings must stay as it is"
    if trains and not COMPILES:
        pytest.skip("ran twice, but there is no TPU compiler for this platform")
    RECORD.passed(path, time.perf_counter() - begun)
