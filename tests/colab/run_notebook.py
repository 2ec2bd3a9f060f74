"""Executes a notebook twice from top to bottom, in its own folder, with this interpreter. Knows nothing of the project."""

import pathlib
import sys

import nbclient
import nbformat

AFTERWARDS = """\
import importlib.metadata as _metadata, json as _json, mlax_tutorial as _package
print(_json.dumps({"file": _package.__file__, **{_name: _metadata.version(_name) for _name in NAMES}}))
"""


def main(path, *names):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(AFTERWARDS.replace("NAMES", repr(names))))
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=300,
        resources={"metadata": {"path": str(pathlib.Path(path).parent)}},
    )
    with client.setup_kernel():
        for _ in range(2):  # in one kernel, as a reader who begins anew
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index)
    print(notebook.cells[-1].outputs[0].text)


main(*sys.argv[1:])
