"""The search: an index of the book's sections, made from the built pages, and their texts for excerpts; `search.js` asks them.

Sphinx's own index knows pages, not sections, and its search loads each page that it found to quote from it. Here `search-index.js`
holds where each word stands, and `search/PAGE.index.js` the text of a page, of which the script loads a few. They are scripts, not JSON, so
that they can be loaded from a folder as well as from a server.

What a reader should find out for themselves is not told: the words of an answer to a prediction lead to its section, and no
excerpt shows them; hints and solutions are left out.
"""

import dataclasses
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

from sphinx.errors import ExtensionError

from . import asked
from .pages import chapter_number

WORD = re.compile(r"\w+")
LONGEST_WORD = 40
LONGEST_OUTPUT = 240  # characters of what a cell printed
OFTEN = 4  # a word that stands so often in a section counts for more
# Words that say nothing about where they stand.
STOP = frozenset(
    "about above after again all also an and any are as at be because been before being below between both but by can could did do does "
    "done each either else few for from further gets had has have here his how if in into is it its itself just like may might more most "
    "much must no nor not of off on once only or other our out over own same she should so some such than that the their them then there "
    "these they this those through to too under until up upon us was we were what when where which while who why will with would you your".split()
)
NAMES_PAGE = "book/names"


@dataclasses.dataclass
class Section:
    anchor: str
    title: str = ""
    text: str = ""  # what an excerpt may quote
    unseen: str = ""  # what leads here, but is behind a lid


class Reader(HTMLParser):
    """Reads a page's article into sections."""

    SKIPPED = frozenset({"script", "style", "template", "svg", "button", "noscript", "mjx-container"})
    SKIPPED_CLASSES = frozenset(
        {
            "headerlink",
            "hide",
            "book-exercise-foot",
            "viz-bar",
            "viz-tune",
            "viz-unseen",
            "book-eyebrow",
            "doctest",
        }
    )
    HEADINGS = frozenset({"h1", "h2", "h3", "h4"})

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.sections = []
        self.inside = False  # of the article
        self.anchor = ""
        self.number = ""  # of an exercise, which stands before its heading
        self.heading = None  # the tag whose text is the title of the last section
        self.numbering = False
        self.room = None  # how much more of what a cell printed is read
        self.skipping = []  # the tag that began what is skipped, once for each that is open
        self.lid = []  # likewise, for what is behind a lid

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = set((attributes.get("class") or "").split())
        if tag == "article":
            self.inside = attributes.get("id") == "book"
        if not self.inside:
            return
        for stack, begins in (
            (self.skipping, tag in self.SKIPPED or classes & self.SKIPPED_CLASSES),
            (self.lid, "book-reveal" in classes and tag == "details"),
        ):
            if (stack and stack[0] == tag) or (not stack and begins):
                stack.append(tag)
        if self.skipping:
            return
        if tag == "section":
            self.anchor = attributes.get("id", "")
        elif tag in self.HEADINGS and not self.lid:
            self.begin(tag, "" if tag == "h1" else self.anchor)
        elif tag == "dt" and "sig" in classes and attributes.get("id"):
            self.begin(tag, attributes["id"])
            self.sections[-1].title = attributes["id"].removeprefix("mlax_tutorial.")
            self.heading = None
        elif "book-exercise-number" in classes:
            self.numbering = True
        elif "cell_output" in classes:
            self.room = LONGEST_OUTPUT
        elif "cell_input" in classes:
            self.room = None
        elif tag == "p":
            self.room = None
        if self.sections and tag in ("p", "li", "pre", "td", "th", "div", "dd", "br", "summary", "section"):
            self.add(" ")

    def begin(self, tag, anchor):
        self.sections.append(Section(anchor, self.number and f"{self.number}: "))
        self.heading, self.number = tag, ""

    def handle_endtag(self, tag):
        if tag == "article":
            self.inside = False
        for stack in (self.skipping, self.lid):
            if stack and stack[0] == tag:
                stack.pop()
        if tag == self.heading:
            self.heading = None
        if tag == "span":
            self.numbering = False

    def handle_data(self, data):
        if not self.inside or self.skipping:
            return
        if self.numbering:
            self.number += data
        elif self.heading:
            self.sections[-1].title += data
        elif self.sections:
            self.add(data)

    def add(self, text):
        if self.room is not None:
            text, self.room = text[: self.room], max(0, self.room - len(text))
        if self.lid:
            self.sections[-1].unseen += text
        else:
            self.sections[-1].text += text


def read(page: str) -> list[Section]:
    """The sections of a page, in their order; what stands before its first heading is none of them."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    for section in reader.sections:
        section.title, section.text = (" ".join(text.split()) for text in (section.title, section.text))
    # the letters of a glossary
    return [section for section in reader.sections if section.text or len(section.title) > 1]


def words(text: str) -> list[str]:
    """The words of a text that can be searched for.

    >>> words("In `jax.vmap(f, in_axes=0)`, 12 of the Keys")
    ['jax', 'vmap', 'in_axes', 'keys']
    """
    found = WORD.findall(text.lower())
    return [w for w in found if 1 < len(w) <= LONGEST_WORD and w not in STOP and not w.isdigit()]


def taught(page: str) -> list[tuple[str, list[str]]]:
    """The names on the page of names, each with the places that teach it, `book/vmap#in-axes-and-out-axes`."""
    found = []
    for row in re.findall(r"<tr\b.*?</tr>", page, flags=re.DOTALL):
        code = re.search(r"<code\b.*?</code>", row, flags=re.DOTALL)
        places = re.findall(r'href="([\w/]+)\.html#([^"]+)"', row)
        if code and places:
            name = html.unescape("".join(re.sub(r"<[^>]*>", "", code[0]).split()))
            found.append((name, [f"book/{page}#{anchor}" for page, anchor in places]))
    return found


def lead(pages: dict[str, tuple[str, list[Section]]], phrases) -> list[tuple[str, str]]:
    """Write the phrases that readers search for into their sections, unseen; returns those whose pages are built."""
    built = [(phrase, place) for phrase, place in phrases if place.partition("#")[0] in pages]
    for phrase, place in built:
        path, _, anchor = place.partition("#")
        section = next((each for each in pages[path][1] if each.anchor == anchor), None)
        if section is None:
            raise ExtensionError(f"tools/site/asked.py: there is no section {place} for {phrase!r}")
        section.unseen += f" {phrase}"
    return built


def steps(places) -> str:
    """Places in ascending order, each as its distance from the one before: a number of letters, the last one large.

    A star says that a word stands there often.

    >>> steps([(0, 1), (3, 4), (30, 1)])
    'AD*bB'
    """
    told, before = [], 0
    for place, count in places:
        distance, before = place - before, place
        digits = chr(ord("A") + distance % 26)
        while distance := distance // 26:
            digits = chr(ord("a") + distance % 26) + digits
        told.append(digits + "*" * (count >= OFTEN))
    return "".join(told)


def index(pages: dict[str, tuple[str, list[Section]]], names=(), phrases=()) -> dict:
    """The index of pages, each a title and its sections, in the order of the book."""
    listed, places, occurrences, number = [], {}, {}, 0
    for path, (title, sections) in pages.items():
        listed.append([path, title, [[section.anchor, section.title] for section in sections]])
        for section in sections:
            places.setdefault(f"{path}#{section.anchor}", number)
            counts = {}
            for word in words(f"{section.title} {section.text} {section.unseen}"):
                counts[word] = counts.get(word, 0) + 1
            for word, count in counts.items():
                occurrences.setdefault(word, []).append((number, count))
            number += 1
    lines = [f"{word} {steps(occurrences[word])}" for word in sorted(occurrences)]
    known = [[name, sorted({places[p] for p in where if p in places})] for name, where in names]
    return {
        "pages": listed,
        "words": "\n".join(lines),
        "names": [each for each in known if each[1]],
        "asked": [[phrase, places[place]] for phrase, place in phrases],
        "stop": " ".join(sorted(STOP)),
    }


def script(call: str, value) -> str:
    return f"{call}({json.dumps(value, ensure_ascii=False, separators=(',', ':'))});\n"


def write(app, exception):
    """Write the index and the texts of a built book."""
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    titles = {name: app.env.titles[name].astext() for name in app.env.titles}
    order = list(dict.fromkeys([app.config.root_doc, *app.env.toctree_includes.get(app.config.root_doc, [])]))
    found = sorted(path.relative_to(site).as_posix() for path in site.glob("book/**/*.html"))
    order += [name.removesuffix(".html") for name in found]
    pages, names = {}, []
    for name in dict.fromkeys(order):
        path = site / f"{name}.html"
        if not path.is_file() or name not in titles:
            continue
        text = path.read_text(encoding="utf-8")
        if name == NAMES_PAGE:  # its names lead to where they are taught, not to itself
            names = taught(text)
            continue
        number = chapter_number(app.srcdir, name)
        pages[name] = (f"{number}. {titles[name]}" if number else titles[name], read(text))
    static = site / "_static"
    phrases = lead(pages, asked.phrases())
    (static / "search-index.js").write_text(
        script("book.index", index(pages, names, phrases)), encoding="utf-8"
    )
    folder = static / "search"
    folder.mkdir(exist_ok=True)
    known = set()
    for name, (_, sections) in pages.items():
        path = folder / f"{name.replace('/', '-')}.index.js"
        known.add(path)
        path.write_text(
            script("book.quote", {"page": name, "texts": [s.text for s in sections]}), encoding="utf-8"
        )
    for path in set(folder.iterdir()) - known:
        path.unlink()


def without_sphinx(app):
    """Sphinx builds no index; its page of results is one of `html_additional_pages`."""
    app.builder.search = False


def setup(app):
    app.connect("builder-inited", without_sphinx)
    app.connect("build-finished", write)
