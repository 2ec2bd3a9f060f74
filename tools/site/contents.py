"""The contents at the left of each page, folded by part, and how many exercises a chapter has.

The numbers of exercises are for `way.js`, which shows beside a chapter how many of them the reader has solved. On the first
page links say where to begin.
"""

import html
import re
from pathlib import Path

from docutils import nodes

from tools.notebooks import sources
from tools.notebooks.places import Book

BEGIN = (("arrays", "Begin: 1. Arrays"), ("first_network", "A first network"))

PARTS = re.compile(
    r'<p [^>]*class="caption"[^>]*>(<span class="caption-text">.*?</span>)</p>\s*(?=<ul class="([^"]*)")(<ul.*?</ul>)',
    re.DOTALL,
)
LINK = re.compile(r'<a class="(?:current )?reference internal" href="([^"]*)">')


def with_counts(contents: str, pagename: str, counts: dict[str, int]) -> str:
    """The contents, with the number of exercises at the link to each chapter that has some."""

    def count(link):
        name = pagename if link[1] == "#" else link[1].removesuffix(".html")
        number = counts.get(name.rpartition("/")[2])
        return f'{link[0][:-1]} data-exercises="{number}">' if number else link[0]

    return LINK.sub(count, contents)


def folded(contents: str) -> str:
    """The contents with a lid for each part: that of the current page is open, or on a page of no part the first two.

    >>> folded('<p class="caption"><span class="caption-text">Part I</span></p><ul class="current nav"></ul>')[:32]
    '<details class="book-part" open>'
    """
    parts = list(PARTS.finditer(contents))
    here = [i for i, part in enumerate(parts) if "current" in part[2].split()] or [0, 1]
    numbers = iter(range(len(parts)))

    def fold(part):
        lid = '<details class="book-part" open>' if next(numbers) in here else '<details class="book-part">'
        return f'{lid}<summary><span aria-level="2" class="caption" role="heading">{part[1]}</span></summary>\n{part[3]}\n</details>'

    return PARTS.sub(fold, contents)


def read(app):
    """Look at the sources once a build."""
    book = Book(Path(app.srcdir))
    app.book_exercises = {
        name: len(sources.EXERCISE.findall(book.source(name).read_text(encoding="utf-8")))
        for name in book.names()
    }


def begin(app, doctree):
    """On the first page, after its first paragraph: where to begin, and where it leads."""
    if app.env.docname != app.config.root_doc:
        return
    first = next(
        (each for each in doctree.findall(nodes.paragraph) if isinstance(each.parent, nodes.section)), None
    )
    links = [(name, said) for name, said in BEGIN if Book(Path(app.srcdir)).source(name).exists()]
    if first is None or not links:
        return
    made = "".join(f'<a href="{name}.html">{html.escape(said)}</a>' for name, said in links)
    place = first.parent.index(first) + 1
    first.parent.insert(place, nodes.raw("", f'<p class="book-begin">{made}</p>', format="html"))


def add(app, pagename, templatename, context, doctree):
    generate = context.get("generate_toctree_html")
    if generate is None:
        return

    def generated(kind, *arguments, **options):
        made = generate(kind, *arguments, **options)
        if kind != "sidebar":
            return made
        return folded(with_counts(str(made), pagename, app.book_exercises))

    context["generate_toctree_html"] = generated


def setup(app):
    app.connect("builder-inited", read)
    app.connect("doctree-read", begin)
    app.connect("html-page-context", add, priority=900)
