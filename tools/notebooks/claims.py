"""The claims that the book owes, and the cells that show them.

`book/_src/claims.json` lists each claim: its id, what it says, and the chapters that owe it. A cell that shows claim J4
carries the tag `claim-J4`.
"""

import json

from tools.notebooks.places import Book
from tools.notebooks.sources import tags

PREFIX = "claim-"


def known(book: Book) -> dict[str, dict]:
    """Claims by id, each with `statement` and `chapters`."""
    if not book.claims.exists():
        return {}
    return json.loads(book.claims.read_text(encoding="utf-8"))


def shown(cells) -> list[str]:
    """The ids of the claims that these cells show, in their order."""
    found = {}
    for cell in cells:
        found |= {tag.removeprefix(PREFIX): None for tag in tags(cell) if tag.startswith(PREFIX)}
    return list(found)
