"""A chapter's page is made from its notebook's outputs and from the text of its source.

The notebook holds only what Colab and GitHub show (see `tools/notebooks/fences.py`), the source has the fences that the page
turns into boxes, predictions and margin notes. The guards see to it that both say the same.
"""

import json
import re
from pathlib import Path

from tools.notebooks import sources
from tools.notebooks.places import Book

# A cell that waits for the reader's answer: nothing runs on the page, so its output would say nothing.
UNANSWERED = re.compile(r"^ex\.\w+\.check\(", re.MULTILINE)
# What stands on the lid of a folded cell that has no title.
LIDS = {"hide-cell": "Show this cell", "hide-input": "Show the code behind this"}


def text_of_the_source(app, docname, text):
    book = Book(Path(app.srcdir))
    name = docname.removeprefix("book/")
    if not docname.startswith("book/") or not book.source(name).exists():
        return
    notebook = json.loads(text[0])
    for cell, written in zip(notebook["cells"], sources.read(book, name).cells, strict=True):
        cell["source"] = written.source  # of a code cell, without the title that Colab folds it under
        if cell["cell_type"] == "code":
            if UNANSWERED.search(written.source):
                cell["outputs"] = []
            tags = cell["metadata"].get("tags", ())
            if lid := next((LIDS[tag] for tag in tags if tag in LIDS), None):
                cell["metadata"]["mystnb"] = {"code_prompt_show": _title(written.source) or lid}
    text[0] = json.dumps(notebook)


def _title(code: str) -> str | None:
    """What the first line says, where it is a title as Colab writes one."""
    found = re.match(r"#@title (.+)", code)
    return found[1] if found else None


def setup(app):
    app.connect("source-read", text_of_the_source)
