"""Executes a notebook twice from top to bottom, in its own folder, with this interpreter.

    python run_notebook.py NOTEBOOK [--programs FOLDER] PACKAGE ...

It prints, in JSON, where `mlax_tutorial` lies afterwards, and the versions of the packages. It runs outside of the project and
imports nothing of it, but with `--programs`: then what the second pass jits is compiled for a TPU by `tests/tpu/recording.py`,
which lies below FOLDER.
"""

import argparse
import pathlib
import tempfile

import nbclient
import nbformat
from jupyter_client.manager import AsyncKernelManager

# Seconds after which a cell will never end, however busy the machine: the slowest compiles for a minute on an idle one.
HANGS = 1200
AFTERWARDS = """\
import importlib.metadata as _metadata, json as _json, mlax_tutorial as _package
print(_json.dumps({"file": _package.__file__, **{_name: _metadata.version(_name) for _name in NAMES}}))
"""
# What the first pass imported stays what Colab installed.
RECORD = """\
import sys as _sys
_sys.path.insert(0, FOLDER)
import tests.tpu.recording as _recording
_sys.path.remove(FOLDER)
_recording.start()
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--programs")
    options = parser.parse_args()
    notebook = nbformat.read(options.path, as_version=4)
    sockets = tempfile.TemporaryDirectory(
        prefix="kernel-"
    )  # ports could be taken before the kernel binds them
    client = nbclient.NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{sockets.name}/kernel"),
        timeout=HANGS,
        startup_timeout=HANGS,
        resources={"metadata": {"path": str(options.path.parent)}},
    )
    chapter = range(len(notebook.cells))

    def ask(code):
        """Executes what is no cell of the chapter; returns what it printed, without warnings."""
        notebook.cells.append(nbformat.v4.new_code_cell(code))
        client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1)
        return "".join(
            output.text for output in notebook.cells.pop().outputs if output.get("name") == "stdout"
        )

    with sockets, client.setup_kernel():
        for again in (False, True):  # in one kernel, as a reader who begins anew
            if again and options.programs:
                ask(RECORD.replace("FOLDER", repr(options.programs)))
            for index in chapter:
                client.execute_cell(notebook.cells[index], index)
        if options.programs:
            count = int(ask("print(len(_recording.programs))"))
            assert count, "the chapter trains, but nothing in it went through jax.jit"
            for number in range(count):
                print(ask(f"print(_recording.compile_one({number}))"), end="")
        print(ask(AFTERWARDS.replace("NAMES", repr(options.names))))


main()
