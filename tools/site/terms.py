"""A link to a term of the glossary shows its definition, on hover, on focus and at a tap: `book.js` reads them from the page."""

import functools
import json
import re
from pathlib import Path

LINK = re.compile(r'href="(?:[./\w]*)glossary\.html#([\w-]+)"')


@functools.cache
def definitions(path: Path) -> dict[str, str]:
    """The first paragraph of each term of the glossary, as plain text, by the term's anchor."""
    from myst_parser.mdit_to_docutils.base import default_slugify

    found = {}
    for part in re.split(r"^### ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        term, _, rest = part.partition("\n")
        first = rest.strip().split("\n\n")[0]
        first = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
        found[default_slugify(term.strip())] = re.sub(r"(?<!\w)[*_]([^*_]+)[*_](?!\w)", r"\1", first)
    return found


def add(app, pagename, templatename, context, doctree):
    if "body" not in context or pagename == "book/glossary":
        return
    known = definitions(Path(app.srcdir) / "book" / "glossary.md")
    used = {slug: known[slug] for slug in dict.fromkeys(LINK.findall(context["body"])) if slug in known}
    if used:
        text = json.dumps(used, ensure_ascii=False).replace("</", "<\\/")
        context["body"] += f'<script type="application/json" id="book-terms">{text}</script>'


def setup(app):
    app.connect("html-page-context", add, priority=800)
