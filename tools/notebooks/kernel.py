"""Run cells, one after the other, in a fresh kernel of this very environment."""

import contextlib
import os
import pathlib
import re
import sys
import tempfile

import nbclient
import nbformat
import psutil
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from tools.notebooks.places import Book

# What a person's shell may hold and a chapter must not see.
FOREIGN = ("MLAX", "JAX_", "XLA_", "PYTHONSTARTUP", "IPYTHON", "JUPYTER", "MPLBACKEND", "NB_", "JPY_")

# JAX finds a value that escaped from its trace by what is left after a collection of garbage. While another thread is in the
# middle of one, Python skips it, and JAX takes garbage for a leak ("no referrers visible to the gc module"). So it looks twice. This
# stands in the profile of all kernels that run chapters, nbval's too: to run a cell again would reuse its keys and print twice.
LOOK_TWICE = """\
def _look_twice(info):
    import sys, time
    if "jax" not in sys.modules:
        return
    from jax._src import core
    find = core.maybe_find_leaked_tracers
    def find_twice(trace):
        if not find(trace):
            return []
        time.sleep(0.1)
        return find(trace)
    core.maybe_find_leaked_tracers = find_twice
    get_ipython().events.unregister("pre_run_cell", _look_twice)
get_ipython().events.register("pre_run_cell", _look_twice)
"""


# What a chapter opens of the package besides modules: data, the styles and scripts of its figures.
NOTE_FILES = """\
def _note_files():
    import os, sys
    opened = sys._opened_files = set()
    def note(event, arguments):
        if event == "open" and isinstance(arguments[0], (str, os.PathLike)):
            path = os.fspath(arguments[0])
            if "mlax_tutorial" in path and not path.endswith((".py", ".pyc")):
                opened.add(path)
    sys.addaudithook(note)
_note_files()
"""


class CellError(Exception):
    """A cell raised, died or took too long. `index` is its place among all cells."""

    def __init__(self, index: int, message: str):
        super().__init__(message)
        self.index = index


def without_ports(folder: pathlib.Path) -> dict[str, str]:
    """Has a kernel manager talk to its kernel by sockets in `folder`. For TCP it looks for free ports and lets them go; the kernel binds
    them a second later, and whoever is quicker has taken one ("Address already in use").
    """
    return {"transport": "ipc", "ip": str(folder / "kernel")}


class _ThisPython(AsyncKernelManager):
    """Starts the interpreter that runs the tool, whatever kernels the machine has installed."""

    @property
    def kernel_spec(self):
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


def environment(book: Book, scratch: pathlib.Path) -> dict[str, str]:
    """Variables of a kernel that sees the package of this checkout, nobody's progress, and a profile of IPython of its own."""
    startup = scratch / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "look_twice.py").write_text(LOOK_TWICE, encoding="utf-8")
    (startup / "note_files.py").write_text(NOTE_FILES, encoding="utf-8")
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(book.root), os.environ.get("PYTHONPATH")])),
        "MLAX_TUTORIAL_PROGRESS": str(scratch / "progress.json"),
        "IPYTHONDIR": str(scratch / "ipython"),
    }


def _told(cell, error) -> str:
    """What the kernel said of an error, without colours: the frames, the last ones if there are many."""
    entries = [entry for output in cell.outputs for entry in output.get("traceback", [])]
    lines = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(entries) or str(error)).splitlines()
    lines = [line for line in lines if set(line) != {"-"}]
    return "\n".join(lines if len(lines) <= 40 else [*lines[:10], "...", *lines[-30:]])


class Kernel:
    """A started kernel: `run` executes a cell of the notebook, `run_all` all of them; their outputs stay in it."""

    def __init__(self, client: nbclient.NotebookClient):
        self._client = client

    def run(self, index: int, *, timeout: float) -> float:
        """Execute one code cell; returns the processor seconds it took, those of processes that it started and waited for
        included. The clock's would depend on what else the machine does.
        """
        cell = self._client.nb.cells[index]
        self._client.timeout = timeout
        before = self._processor_seconds()
        try:
            self._client.execute_cell(cell, index, store_history=True)
        except nbclient.exceptions.CellTimeoutError as error:
            raise CellError(index, f"took longer than {timeout:g} s and was stopped") from error
        except nbclient.exceptions.CellExecutionError as error:
            raise CellError(index, _told(cell, error)) from error
        except nbclient.exceptions.DeadKernelError as error:
            raise CellError(index, "the kernel died (out of memory, or a crash in compiled code)") from error
        return self._processor_seconds() - before

    def run_all(self, limit) -> dict[int, float]:
        """Execute the code cells from top to bottom, each stopped after ``limit(cell)`` seconds; returns by index what each took."""
        return {
            index: self.run(index, timeout=limit(cell))
            for index, cell in enumerate(self._client.nb.cells)
            if cell.cell_type == "code"
        }

    def _processor_seconds(self) -> float:
        return sum(psutil.Process(self._client.km.provisioner.pid).cpu_times()[:4])

    def ask(self, code: str, timeout: float = 60) -> str:
        """Execute `code` as no cell of the chapter, and return what it printed."""
        cell = nbformat.v4.new_code_cell(code)
        self._client.timeout = timeout
        self._client.nb.cells.append(cell)
        try:
            self._client.execute_cell(cell, len(self._client.nb.cells) - 1, store_history=False)
        finally:
            self._client.nb.cells.pop()
        return "".join(output.text for output in cell.outputs if output.output_type == "stream")


@contextlib.contextmanager
def start(book: Book, notebook: nbformat.NotebookNode, *, clean: bool, variables=None):
    """A fresh kernel in an empty folder, for the cells of `notebook`. `variables` come on top of its environment; a clean one
    has no settings of JAX and XLA but the CPU."""
    with tempfile.TemporaryDirectory(prefix="chapter-") as scratch:
        scratch = pathlib.Path(scratch).resolve()
        folder = scratch / "content"
        folder.mkdir()
        client = nbclient.NotebookClient(
            notebook,
            km=_ThisPython(**without_ports(scratch)),
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
            startup_timeout=120,
            interrupt_on_timeout=False,
        )
        outer = dict(os.environ)
        if clean:
            outer = {name: value for name, value in outer.items() if not name.startswith(FOREIGN)}
            outer["JAX_PLATFORMS"] = "cpu"
        with client.setup_kernel(cleanup_kc=True, env=outer | environment(book, scratch) | (variables or {})):
            yield Kernel(client)
