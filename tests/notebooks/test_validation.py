"""nbval, with what this project adds to it, fails where a stored output differs, and only there."""

import base64
import io
import os
import subprocess
import sys
import xml.etree.ElementTree

import nbformat
import PIL.Image
import PIL.ImageDraw

from tools import project

from .conftest import UNREACHABLE, read, write


def nbval(book, *options, **environment) -> dict[str, str]:
    """Validate the book's notebooks as the project does; the outcome of each cell by `chapter 3`, and the text."""
    report = book.root / "report.xml"
    sanitize = project.ROOT / "tools" / "notebooks" / "nbval_sanitize.cfg"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        "--nbval-current-env",
        f"--nbval-sanitize-with={sanitize}",
    ]
    command += [
        "-p",
        "no:cacheprovider",
        f"--rootdir={book.root}",
        f"--junitxml={report}",
        *options,
        str(book.folder),
    ]
    paths = os.pathsep.join([str(project.ROOT), os.environ.get("PYTHONPATH", "")])
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        cwd=book.root,
        env=variables | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
    )
    outcomes = {"text": done.stdout}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        chapter = case.get("classname").removesuffix(".ipynb").rpartition(".")[2]
        number = case.get("name").removeprefix("Cell ")
        kinds = {child.tag for child in case}
        outcomes[f"{chapter} {number}"] = ", ".join(sorted(kinds)) or "passed"
    return outcomes


def test_tampered_outputs(book):
    """One run over several notebooks, each with other outputs tampered with."""
    original = read(book)

    # Seen to differ: a number, a drawing, pixels, a table, an output that is gone, an output too many, an error.
    notebook = read(book)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    code[1].outputs[0].text = "X1 holds: a third is 0.3334\n"
    code[3].outputs[0].data["text/html"] = code[3].outputs[0].data["text/html"].replace("60.25", "61.25")
    code[4].outputs[0].data["image/png"] = repainted(code[4].outputs[0].data["image/png"], visibly=True)
    code[5].outputs[0].data["text/html"] = code[5].outputs[0].data["text/html"].replace("7", "8")
    code[6].outputs = []
    code[7].outputs[0].text = "what an ignored cell says is not compared\n"
    code[8].outputs[1].text = "<this cell>: UserWarning: another warning\n"
    code[9].outputs[0].evalue = "'another key'"
    write(book, notebook, "differs")

    # Alike: the last bits of a drawing, a few levels of a picture; and what only looks like a leak.
    notebook = read(book)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    code[3].outputs[0].data["text/html"] = code[3].outputs[0].data["text/html"].replace("60.25", "60.2500001")
    code[4].outputs[0].data["image/png"] = repainted(code[4].outputs[0].data["image/png"], visibly=False)
    assert notebook != original
    notebook.cells.append(nbformat.v4.new_code_cell(UNREACHABLE.replace("{skipped}", "1")))
    write(book, notebook, "alike")

    # A picture that is gone, one too many, a cell that fails now, and a leak.
    notebook = read(book)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    code[4].outputs = []
    code[6].outputs.append(nbformat.v4.new_output("display_data", code[3].outputs[0].data))
    code[7].source = "raise RuntimeError('on purpose')"
    notebook.cells.append(nbformat.v4.new_code_cell(UNREACHABLE.replace("{skipped}", "2")))
    write(book, notebook, "broken")

    outcomes = nbval(book, "-n", "2", "--dist", "loadfile")

    def failed(name):
        numbers = range(10 if name in ("sample", "differs") else 11)
        return [n for n in numbers if outcomes[f"{name} {n}"] != "passed"]

    assert failed("sample") == []
    assert failed("alike") == []
    assert failed("differs") == [1, 3, 4, 5, 6, 8, 9]
    assert failed("broken") == [4, 6, 7, 10]
    assert "Leaked trace" in outcomes["text"]
    assert "the drawing moved: 61.25 became 60.25" in outcomes["text"]
    assert "of the picture's pixels changed" in outcomes["text"]


def repainted(data: str, *, visibly: bool) -> str:
    image = PIL.Image.open(io.BytesIO(base64.b64decode(data)))
    if visibly:
        PIL.ImageDraw.Draw(image).rectangle([10, 10, 30, 30], fill=255)
    else:
        image = image.point(lambda value: min(255, value + 2))
    handle = io.BytesIO()
    image.save(handle, "PNG")
    return base64.b64encode(handle.getvalue()).decode()


def test_a_stripped_notebook_passes_nbval(book):
    """Which is why there is a guard against it: this is the reason, pinned down."""
    notebook = read(book)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    write(book, notebook)
    outcomes = nbval(book)
    assert len(outcomes) == 11
    assert "failure" not in outcomes.values()
