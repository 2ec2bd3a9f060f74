"""The built book: its files, and which cell of a chapter's notebook each cell of its page is.

The pages are those of the public site, and stay as they are. A chapter's notebook lies beside them, in ``_sources``.
"""

import base64
import hashlib
import json
import pathlib
import re

# A script that stands in the page: it runs because its hash is in the page's policy.
_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)


class NoBook(Exception):
    """There is no built book; the message says what to do."""


def find(folder=None):
    """The folder of the built book: the one given, the one that came with the package, or that of the checkout from which it is installed.

    Raises:
      NoBook: if there is none.
    """
    packed, checkout = pathlib.Path(__file__).with_name("site"), pathlib.Path(__file__).parents[2]
    if folder is None and packed.is_dir():
        return packed
    if folder is None and not (checkout / "_toc.yml").is_file():
        raise NoBook(
            "This package was installed without the book. A published version holds it: "
            "`pip install 'mlax-tutorial[live]'`. In a clone of its repository, `make live` builds and opens it; "
            "if you have a built book elsewhere, name its folder: `--book FOLDER`."
        )
    place = pathlib.Path(folder) if folder else checkout / "_build" / "html"
    if not (place / "index.html").is_file() or not Book(place).chapters:
        told = (
            "holds no built book" if folder else "does not hold the book yet: `make live` builds and opens it"
        )
        raise NoBook(f"{place} {told}.")
    return place


class Book:
    """A folder with the built site."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()

    def file(self, path):
        """The file behind the path of an address; None where there is none, or where the path leads out of the book."""
        try:
            found = (self.folder / path).resolve(strict=True)
        except (OSError, ValueError):
            return None
        return found if found.is_file() and found.is_relative_to(self.folder) else None

    @property
    def chapters(self):
        """From a chapter's name to its notebook."""
        return {path.stem: path for path in sorted(self.folder.glob("_sources/book/*.ipynb"))}

    def chapter(self, file):
        """The chapter whose page a file is; an empty string for all other files."""
        name = file.stem
        return name if file == self.folder / "book" / f"{name}.html" and name in self.chapters else ""

    def cells(self, chapter):
        """The code cells of a chapter, in their order: what a page needs to run them."""
        notebook = json.loads(self.chapters[chapter].read_text(encoding="utf-8"))
        return [_cell(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _cell(cell):
    tags = cell["metadata"].get("tags", [])
    return {
        "id": cell["id"],
        "source": "".join(cell["source"]),
        "shown": "remove-cell" not in tags,
        "predict": "predict" in tags,
        "output": bool(cell["outputs"]),
    }


def live(page, chapter, nonce, key):
    """A page with what makes it live: one link and one script."""
    added = (
        '<link rel="stylesheet" href="/live/live.css" />\n'
        f'<script defer src="/live/live.js" nonce="{nonce}" data-chapter="{chapter}" data-key="{key}"></script>\n'
    )
    before, end, after = page.rpartition("</body>")
    return before + added + end + after if end else page + added


def policy(page, nonce, sockets):
    """What a page may do: run the book's own scripts and those of outputs that ours admits; reach this server, and nothing else."""
    hashes = [
        base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in _SCRIPT.findall(page)
    ]
    scripts = " ".join(
        ["'self'", f"'nonce-{nonce}'", *(f"'sha256-{each}'" for each in dict.fromkeys(hashes))]
    )
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {scripts}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "media-src data: blob:",
            f"connect-src 'self' {sockets}",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        ]
    )
