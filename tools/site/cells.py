"""A chapter's page is made from its notebook's outputs and from the text of its source.

The notebook holds only what Colab and GitHub show (see `tools/notebooks/fences.py`), the source has the fences that the page
turns into boxes, predictions and margin notes. The guards see to it that both say the same.
"""

import json
from pathlib import Path

from tools.notebooks import sources
from tools.notebooks.places import Book

UNANSWERED = ".check("  # what a cell that waits for the reader calls: nothing runs on the page, so its output says nothing


def text_of_the_source(app, docname, text):
    book = Book(Path(app.srcdir))
    name = docname.removeprefix("book/")
    if not docname.startswith("book/") or not book.source(name).exists():
        return
    notebook = json.loads(text[0])
    for cell, written in zip(notebook["cells"], sources.read(book, name).cells, strict=True):
        if cell["cell_type"] == "markdown":
            cell["source"] = written.source
        else:
            cell["source"] = written.source  # without the titles that Colab folds a cell under
            if UNANSWERED in written.source and "ex." in written.source:
                cell["outputs"] = []
    text[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", text_of_the_source)
