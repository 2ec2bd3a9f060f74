"""What the generated pages share: the chapters in their order, links to them, tables."""

import re

from tools import project
from tools.notebooks import record
from tools.notebooks.places import Book


def contents(book: Book) -> list[str]:
    """The pages of the table of contents, in its order."""
    path = book.root / "_toc.yml"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return re.findall(r"\bbook/(\w+)\s*$", text, re.MULTILINE)


def chapters(book: Book) -> list[tuple[str, dict]]:
    """The recorded chapters in the order of the table of contents, and then what is outside of it."""
    listed = contents(book)

    def order(item):
        name, entry = item
        place = listed.index(name) if name in listed else len(listed)
        return (place, entry["number"] or 0, name)

    return sorted(record.load(book).items(), key=order)


def heading(entry: dict) -> str:
    """A chapter's number and title."""
    number = entry["number"]
    return f"{number}. {entry['title']}" if number else entry["title"]


def link(book: Book, name: str, text: str, anchor: str = "") -> str:
    """A link to a place in a chapter; to Colab, if the chapter is not in the rendered book."""
    if name in contents(book):
        return f"[{text}]({name}.ipynb{'#' if anchor else ''}{anchor})"
    return f"[{text}]({project.colab_url(f'book/{name}.ipynb', book.root)})"


def plain(text: str) -> str:
    """Text that is to be read as it stands, not as Markdown."""
    return re.sub(r"([\\`*_\[\]<>$~])", r"\\\1", " ".join(text.split()))


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def from_name(name: str) -> str:
    """The likely title of a chapter that is not written yet: `many_devices` is *Many devices*."""
    return name.replace("_", " ").capitalize()
