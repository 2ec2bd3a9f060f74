"""The contents at the left of each page: what is planned stands there, too, in grey, and how many exercises a chapter has.

What is planned is read from the map of the book, in `book/_src/welcome.md`: a chapter without a link is not written yet. The
numbers of exercises are for `way.js`, which shows beside a chapter how many of them the reader has solved. On the first
page links say where to begin.
"""

import dataclasses
import html
import re
from pathlib import Path

from docutils import nodes

from tools.notebooks import sources
from tools.notebooks.places import Book

PART = re.compile(r"^\*\*(Part \w+), (.+?):\*\*", re.MULTILINE)
CHAPTER = re.compile(r"^<span>(\d+) ([^\[<]+)</span>", re.MULTILINE)  # one with a link is written already

BEGIN = (("arrays", "Begin: 1. Arrays"), ("first_network", "A first network"))

CAPTION = re.compile(r'<p [^>]*class="caption"[^>]*><span class="caption-text">(.*?)</span></p>\s*<ul[^>]*>')
ITEM = re.compile(r'<li class="toctree-l1[^>]*><a [^>]*>(?:(\d+)\. )?')
LINK = re.compile(r'<a class="(?:current )?reference internal" href="([^"]*)">')


@dataclasses.dataclass(frozen=True)
class Part:
    name: str  # Part III
    about: str  # worked examples
    planned: tuple[tuple[int, str], ...]  # numbers and titles of chapters


def plan(text: str) -> list[Part]:
    """The parts of the map that have chapters to come, in its order.

    >>> plan("**Part I, basics:** all.\\n<span>1 [Arrays](arrays.ipynb)</span>\\n<span>2 Loops</span>\\n")
    [Part(name='Part I', about='basics', planned=((2, 'Loops'),))]
    """
    parts = PART.split(text)[1:]
    found = []
    for name, about, rest in zip(parts[::3], parts[1::3], parts[2::3]):
        planned = tuple((int(number), title.strip()) for number, title in CHAPTER.findall(rest))
        if planned:
            found.append(Part(name, about, planned))
    return found


def with_plan(contents: str, parts: list[Part]) -> str:
    """The contents as HTML, with what is planned: in a part that is there by number, else in one before what is no part."""
    for part in parts:
        captions = list(CAPTION.finditer(contents))
        here = next((each for each in captions if each[1].startswith(f"{part.name}:")), None)
        if here is None:
            after = next(
                (each.start() for each in captions if not each[1].startswith("Part ")), len(contents)
            )
            items = "".join(_item(*chapter) for chapter in part.planned)
            caption = f'<span class="caption-text">{html.escape(f"{part.name}: {part.about}")}</span>'
            made = f'<p aria-level="2" class="caption" role="heading">{caption}</p>\n<ul class="nav bd-sidenav">\n{items}</ul>\n'
            contents = contents[:after] + made + contents[after:]
            continue
        end = contents.index("</ul>", here.end())
        for number, title in part.planned:
            later = (
                each.start()
                for each in ITEM.finditer(contents, here.end(), end)
                if each[1] and int(each[1]) > number
            )
            place, item = next(later, end), _item(number, title)
            contents, end = contents[:place] + item + contents[place:], end + len(item)
    return contents


def _item(number, title):
    return (
        f'<li class="toctree-l1 book-planned"><span>{number}. {html.escape(title)}'
        '<span class="book-visually-hidden"> (planned)</span></span></li>\n'
    )


def with_counts(contents: str, pagename: str, counts: dict[str, int]) -> str:
    """The contents, with the number of exercises at the link to each chapter that has some."""

    def count(link):
        name = pagename if link[1] == "#" else link[1].removesuffix(".html")
        number = counts.get(name.rpartition("/")[2])
        return f'{link[0][:-1]} data-exercises="{number}">' if number else link[0]

    return LINK.sub(count, contents)


def read(app):
    """Look at the sources once a build."""
    book = Book(Path(app.srcdir))
    app.book_exercises = {
        name: len(sources.EXERCISE.findall(book.source(name).read_text(encoding="utf-8")))
        for name in book.names()
    }
    start = book.source(app.config.root_doc.rpartition("/")[2])
    app.book_plan = plan(start.read_text(encoding="utf-8")) if start.is_file() else []


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
        return with_counts(with_plan(str(made), app.book_plan), pagename, app.book_exercises)

    context["generate_toctree_html"] = generated


def setup(app):
    app.connect("builder-inited", read)
    app.connect("doctree-read", begin)
    app.connect("html-page-context", add, priority=900)
