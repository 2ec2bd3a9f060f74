"""Each notebook opened alone, as Colab opens it: another Python environment, an empty folder, no package; run twice.

Colab's JAX is the oldest that is supported, so this also shows that the chapters run on it, and what the second pass of a
chapter that trains jits is compiled for a TPU: the same kernel would otherwise run once more for that (`tests/tpu`).

The first cell then installs the package from its public address. Git is told, in a configuration of its own, that
this address is a copy of this repository's last commit; everything else is real. Uncommitted changes are not seen.
"""

import functools
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tomllib

import nbformat
import pytest

from tools import project, rehearse

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
    "orbax-checkpoint": "0.11.28",
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


# The longest go first, so that two workers end together.
SECONDS = {
    pathlib.PurePath(path).stem: json.loads(notebook_text(path))["seconds"]
    for path in committed("book/_records/*.json")
}
NOTEBOOKS = [
    path
    for path in sorted(
        committed("book/*.ipynb"), key=lambda path: -SECONDS.get(pathlib.PurePath(path).stem, 0)
    )
    if "mlax_tutorial" in notebook_text(path)
]


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
            # Compiling takes most of the time. So the second pass finds what the first one compiled; and what LLVM's last
            # optimizations and another way to write fused loops change is how fast this CPU is.
            "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "XLA_FLAGS": "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false",
        }
        call(self.uv, "venv", "-q", "--no-project", "--seed", "-p", PYTHON, self.python.parents[1])
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

    def run(self, name, text, *, trains=False):
        """Runs a notebook; returns the versions and the place of the package afterwards. If it trains, its programs are compiled
        for a TPU, too.
        """
        folder = self.folder / name
        folder.mkdir()
        (folder / "notebook.ipynb").write_text(text)
        runner = pathlib.Path(__file__).with_name("run_notebook.py")
        options = ["--programs", ROOT] if trains and COMPILES else []
        said = call(
            self.python, runner, folder / "notebook.ipynb", *COLAB, *options, cwd=folder, env=self.env
        )
        return json.loads(said.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    return Colab(tmp_path_factory.mktemp("colab"))


def test_there_are_notebooks():
    assert NOTEBOOKS


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
    name, text = pathlib.PurePath(path).stem, notebook_text(path)
    trains = rehearse.trains(name, nbformat.reads(text, as_version=4).cells)
    facts = colab.run(name, text, trains=trains)
    folder = pathlib.Path(facts.pop("file")).parent
    assert folder.parent.name == "site-packages" and colab.folder in folder.parents
    assert facts == COLAB, "what Colab brings must stay as it is"
    if trains and not COMPILES:
        pytest.skip("ran twice, but there is no TPU compiler for this platform")
