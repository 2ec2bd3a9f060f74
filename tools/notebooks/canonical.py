"""One spelling for equal notebooks, so that a second build changes nothing."""

import re

import nbformat

from tools.notebooks import fences, likeness
from tools.notebooks.sources import ACCELERATORS, Source, tags

LANGUAGE = {  # no version: the book is built on several Pythons
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

# Warnings name the temporary file that IPython wrote the cell to; nbval's sanitizer says the same.
CELL_FILE = re.compile(r"(?:/[\w.-]+)+/ipykernel_\d+/\d+\.py(?::\d+)?")
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def skeleton(source: Source) -> nbformat.NotebookNode:
    """The notebook of a source before it is executed."""
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    if accelerator := source.chapter.get("accelerator"):
        metadata |= {"accelerator": accelerator, "colab": {"gpuType": ACCELERATORS[accelerator]}}
    return nbformat.from_dict(
        {
            "cells": [_portable(cell, source) for cell in source.cells],
            "metadata": metadata,
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


# What Colab writes above a cell whose code it folds; JupyterLab folds it, too. The page leaves out what has the
# tag `remove-cell`: assertions and verdicts, which are for the book's tests.
FORMS = {
    "remove-cell": "#@title A test of what was said above: it runs, and need not be read",
    "hide-input": "#@title The code behind what is shown below",
}


def _portable(cell, source: Source) -> dict:
    """A cell of a source as the notebook holds it: for Colab, GitHub and JupyterLab."""
    cell = nbformat.from_dict(dict(cell))
    if cell.cell_type == "markdown":
        cell.source = fences.to_notebook(cell.source, source.name)
        return cell
    for tag, title in FORMS.items():
        if tag in tags(cell):
            cell.source = f"{title}\n{cell.source}"
            cell.metadata |= {"cellView": "form", "jupyter": {"source_hidden": True}}
    if "predict" in tags(cell):  # as Colab and as JupyterLab note an output that is folded
        cell.metadata |= {"collapsed": True, "jupyter": {"outputs_hidden": True}}
    return cell


def _text(text: str) -> str:
    return CELL_FILE.sub("<this cell>", text)


def _traceback(entries: list[str]) -> list[str]:
    """The frames in the reader's own cells and the message; other frames hold paths of this machine."""
    kept = [entry for entry in entries if not ANSI.sub("", entry).startswith("File ")]
    return [_text(entry) for entry in kept]


def _streams_merged(outputs: list) -> list:
    """Between two displays one output per stream, the standard one first: how the kernel cuts them is chance."""
    merged, streams = [], {}
    for output in outputs:
        if output.output_type == "stream":
            if output.name in streams:
                streams[output.name].text += output.text
            else:
                streams[output.name] = output
        else:
            merged += [*_in_order(streams), output]
            streams = {}
    return merged + _in_order(streams)


def _in_order(streams: dict) -> list:
    return [streams[name] for name in ("stdout", "stderr") if name in streams]


def outputs(raw: list) -> list[nbformat.NotebookNode]:
    """The outputs of one cell without what depends on the moment or the machine."""
    result = []
    for output in _streams_merged([nbformat.from_dict(output) for output in raw]):
        if output.output_type == "stream":
            output.text = _text(output.text)
        elif output.output_type == "error":
            output.traceback = _traceback(output.traceback)
            output.evalue = _text(output.evalue)
        else:
            output.pop("transient", None)
            for mime, data in output.data.items():
                if isinstance(data, str) and not mime.startswith("image/"):
                    output.data[mime] = _text(data)
        result.append(output)
    return result


def _keep_pictures(new: list, old: list) -> None:
    """Put back earlier pictures that look the same: another machine may round a pixel otherwise."""
    for fresh, stored in zip(new, old, strict=False):
        if "data" not in fresh or "data" not in stored:
            continue
        for mime in fresh.data.keys() & stored.data.keys():
            if likeness.is_picture(mime, stored.data[mime]):
                if likeness.difference(mime, stored.data[mime], fresh.data[mime]) is None:
                    fresh.data[mime] = stored.data[mime]


def keep_earlier(notebook, earlier, *, same_surroundings: bool) -> None:
    """Carry outputs over from the notebook of the last build.

    The cells tagged `nbval-ignore-output` keep theirs as long as neither they, nor a code cell before them, nor
    the package and the versions that they ran with (`same_surroundings`) have changed.
    """
    if earlier is None:
        return
    before = [cell for cell in earlier.cells if cell.cell_type == "code"]
    now = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for fresh, stored in zip(now, before, strict=False):
        if fresh.source != stored.source or tags(fresh) != tags(stored):
            return
        if same_surroundings and "nbval-ignore-output" in tags(fresh) and stored.outputs:
            fresh.outputs = stored.outputs
        else:
            _keep_pictures(fresh.outputs, stored.outputs)


def number(notebook) -> None:
    """Execution counts 1..n, in the cells and in their results."""
    count = 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = count


def dumps(notebook: nbformat.NotebookNode) -> str:
    nbformat.validate(notebook)
    return nbformat.writes(notebook, version=4).rstrip("\n") + "\n"
