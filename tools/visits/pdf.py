"""The book on paper: `python -m tools.visits pdf` prints the built pages with headless Chromium and binds them to one PDF with pypdf.

Each page is printed by itself, with `book/_static/css/print.css` and `js/paper.js`, as a reader's browser would print it. Here is what
makes a book of them: numbers that go on from chapter to chapter, a title page, contents and an index with the numbers of pages,
links between chapters that stay in the PDF, an outline. Links to the file are written into the pages last, so they are there only if it is.
"""

import contextlib
import dataclasses
import html
import io
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

from tools import project
from tools.site import search

from . import browser

NAME = "learn-jax.pdf"
LIMIT = 30_000_000  # bytes
# Pages that say nothing on paper: lists of links, what was run where, and the names, which become the index.
LEFT_OUT = ("book/exercises", "book/status", "book/tpu_check", search.NAMES_PAGE)
# Where a page offers the PDF, as a link or as a button.
PLACE = re.compile(r"(<!-- pdf (link|button) -->).*?(<!-- /pdf -->)", re.DOTALL)

PREPARE = """part => {
    document.documentElement.dataset.paper = "";  // it stays as it is printed
    dispatchEvent(new Event("beforeprint"));
    const book = document.getElementById("book"), eyebrow = book.querySelector(".book-eyebrow");
    if (eyebrow && part) eyebrow.textContent = `${part}, ${eyebrow.textContent.toLowerCase()}`;
    for (const each of book.querySelectorAll("p.book-at-the-end")) {
        const number = document.createElement("span");
        number.className = "book-paper-number";
        number.dataset.of = each.querySelector("a").hash.slice(1);
        number.textContent = "000";
        each.append(", page ", number);
    }
    // Chromium notes the places of those ids that a link on the page leads to
    const links = document.createElement("div");
    links.hidden = true;
    for (const each of book.querySelectorAll("[id]")) if (!each.closest("svg, .viz-figure")) {
        const link = document.createElement("a");
        link.href = `#${encodeURIComponent(each.id)}`;
        links.append(link);
    }
    document.body.append(links);
    return [...book.querySelectorAll("section > h2")].map(heading => {
        const shown = heading.cloneNode(true);
        shown.querySelectorAll(".headerlink").forEach(each => each.remove());
        return [heading.parentElement.id, shown.innerHTML.trim(), shown.textContent.trim()];
    });
}"""
NUMBER = """pages => {
    for (const each of document.querySelectorAll(".book-paper-number")) each.textContent = pages[each.dataset.of] ?? "";
}"""


@dataclasses.dataclass
class Chapter:
    """A page of the site, and where it lies in the book."""

    path: str  # book/jit
    title: str  # 4. jit
    part: str = ""  # Part I: thinking in JAX
    sections: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)  # id, HTML, text
    content: bytes = b""
    first: int = 0  # number of its first page
    count: int = 0
    places: dict[str, tuple[int, float]] = dataclasses.field(default_factory=dict)  # id: page, height

    def number(self, anchor: str) -> int:
        """The number of the page that an id stands on."""
        return self.first + self.places.get(anchor, (0, 0.0))[0]


def contents(site: Path) -> list[Chapter]:
    """The pages in the order of the book, as the start page lists them."""
    start = re.search(r"url=([\w/]+)\.html", (site / "index.html").read_text(encoding="utf-8"))[1]
    text = (site / f"{start}.html").read_text(encoding="utf-8")
    listed = re.search(r'<nav class="bd-links bd-docs-nav".*?</nav>', text, re.DOTALL)[0]
    folder, part, found = start.rpartition("/")[0], "", []
    for caption, address, title in re.findall(
        r'<span class="caption-text">(.*?)</span>|<a [^>]*href="([^"]*)"[^>]*>\s*(.*?)\s*</a>',
        listed,
        re.DOTALL,
    ):
        if caption:
            part = html.unescape(caption)
            continue
        path = start if address == "#" else f"{folder}/{address.removesuffix('.html')}"
        if path not in LEFT_OUT and path not in [each.path for each in found]:
            found.append(Chapter(path, html.unescape(title), part))
    return found


def text_of_css(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def running(head: str, first: int, style: str = "decimal") -> str:
    """Style for a chapter's pages: what stands above and below the text."""
    return f"""
    @page {{ @bottom-center {{ content: counter(page, {style}) }} @top-left {{ content: {text_of_css(head)}; font: 9pt "Source Sans 3"; color: #555a64 }} }}
    @page:first {{ counter-set: page {first}; @top-left {{ content: none }} }}
    *, ::before, ::after {{ animation: none !important; transition: none !important }}"""


class Printer:
    """A browser with the built site, or pages made up here, as paper."""

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.made = {}
        page.route(f"{address}/paper/*", lambda route: route.fulfill(body=self.made[route.request.url]))

    def chapter(self, chapter: Chapter) -> None:
        """Print a chapter whose `first` is known; twice, since it names its own pages."""
        self.page.goto(f"{self.address}/{chapter.path}.html")
        browser.settle(self.page)
        part = chapter.part.partition(":")[0] if chapter.part.startswith("Part") else ""
        chapter.sections = [tuple(each) for each in self.page.evaluate(PREPARE, part)]
        self.page.add_style_tag(content=running(chapter.title, chapter.first))
        self.take(chapter)
        if self.page.evaluate("() => document.querySelector('.book-paper-number') !== null"):
            self.page.evaluate(NUMBER, {anchor: chapter.number(anchor) for anchor in chapter.places})
            self.take(chapter)

    def leaf(self, chapter: Chapter, body: str, style: str) -> None:
        """Print a page that the site does not have."""
        url = f"{self.address}/paper/{chapter.path}.html"
        sheets = "".join(
            f'<link rel="stylesheet" href="/_static/css/{name}.css">' for name in ("tokens", "prose", "print")
        )
        self.made[url] = (
            f'<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">{sheets}'
            f'<style>{LEAF}{style}</style></head><body><main class="leaf">{body}</main></body></html>'
        )
        self.page.goto(url)
        browser.settle(self.page)
        self.take(chapter)

    def take(self, chapter: Chapter) -> None:
        from pypdf import PdfReader

        chapter.content = self.page.pdf(format="A4", print_background=True)
        reader = PdfReader(io.BytesIO(chapter.content))
        chapter.count = len(reader.pages)
        pages = {page.indirect_reference.idnum: number for number, page in enumerate(reader.pages)}
        chapter.places = {
            unquote(name.removeprefix("/")): (pages[place.page.idnum], float(place.top or 0))
            for name, place in reader.named_destinations.items()
        }


LEAF = """
body { margin: 0; background: none; color: var(--book-ink); font: 1rem/1.45 var(--book-serif); }
.leaf a { color: inherit; text-decoration: none; }
.leaf h1 { margin: 0 0 1.5rem; font: 700 2.2rem/1.15 var(--book-sans); }
.leaf h2 { margin: 1.6rem 0 0.5rem; font: 700 1.15rem/1.3 var(--book-sans); break-after: avoid; }
.leaf ul { margin: 0; padding: 0; list-style: none; }
.leaf code { font: 0.92em var(--book-mono); background: none; padding: 0; border: 0; }
"""
TITLE = """
@page { @bottom-center { content: none } }
.leaf { display: flex; flex-direction: column; height: 245mm; font-family: var(--book-sans); }
.leaf h1 { margin: 30mm 0 4mm; font-size: 3rem; }
.leaf p { margin: 0 0 0.6rem; font-size: 1.1rem; }
.leaf img { width: 100%; margin: 16mm 0; }
.leaf .last { margin-top: auto; font-size: 0.9rem; color: var(--book-ink-soft); }
.leaf .last p { font-size: inherit; }
.leaf .last a { text-decoration: underline; }
"""
CONTENTS = """
.leaf { columns: 2; column-gap: 2.2rem; }
.leaf h1 { column-span: all; }
.leaf h2 { margin-top: 1.4rem; }
.leaf a { display: flex; gap: 0.5rem; align-items: baseline; font: 0.98rem/1.5 var(--book-sans); }
.leaf a::after { content: attr(data-page); order: 3; min-width: 1.8rem; text-align: right; font-variant-numeric: tabular-nums; }
.leaf a i { flex: 1; min-width: 0.8rem; border-bottom: 1px dotted var(--book-line); }
.leaf .chapter { margin-top: 0.75rem; break-inside: auto; }
.leaf .chapter > a { font-weight: 600; break-after: avoid; }
.leaf .chapter li a { padding-left: 1.4rem; font-size: 0.92rem; line-height: 1.45; color: var(--book-ink-soft); }
"""
INDEX = """
.leaf ul { columns: 3; column-gap: 1.6rem; font: 0.85rem/1.5 var(--book-sans); }
.leaf li { padding-left: 1rem; text-indent: -1rem; break-inside: avoid; overflow-wrap: anywhere; }
.leaf li.letter { margin: 0.7rem 0 0.15rem; padding: 0; text-indent: 0; font-weight: 700; break-after: avoid; }
"""


def title_page(root: Path) -> str:
    version = project.version(root)
    address = project.page_url("book/welcome", root)
    name, _, rest = project.TITLE.partition(" by ")
    return f"""<h1>{html.escape(name)}</h1><p>by {html.escape(rest)}</p>
<img src="/_static/hero.svg" alt="">
<div class="last"><p>Version {version}. The pages, with figures that move and exercises that are graded:
<a href="{address}">{address.removesuffix("/book/welcome.html").removeprefix("https://")}</a></p>
<p>© The mlax-tutorial authors, MIT licence. Every output in this book was made by the code above it.</p></div>"""


def table_of_contents(chapters: list[Chapter]) -> str:
    """The contents, each line with the number of its page."""
    lines, part = ["<h1>Contents</h1>"], ""

    def line(chapter, anchor, title):
        address = f"/{chapter.path}.html{'#' if anchor else ''}{anchor}"
        number = chapter.number(anchor)
        return f'<a href="{html.escape(address)}" data-page="{number}"><span>{title}</span><i></i></a>'

    for chapter in chapters:
        if chapter.part != part:
            part = chapter.part
            lines.append(f"<h2>{html.escape(part)}</h2>")
        sections = [] if part == "Reference" else chapter.sections
        inner = "".join(f"<li>{line(chapter, anchor, shown)}</li>" for anchor, shown, _ in sections)
        lines.append(
            f'<div class="chapter">{line(chapter, "", html.escape(chapter.title))}<ul>{inner}</ul></div>'
        )
    return "\n".join(lines)


def index_of_names(site: Path, chapters: list[Chapter]) -> str:
    """The names that the chapters teach, each with the numbers of the pages."""
    known = {chapter.path: chapter for chapter in chapters}
    names = search.taught((site / f"{search.NAMES_PAGE}.html").read_text(encoding="utf-8"))
    lines, letter = [], ""
    for name, places in names:
        numbers = {}
        for place in places:
            path, _, anchor = place.partition("#")
            if path in known:
                numbers.setdefault(known[path].number(anchor), f"/{place.replace('#', '.html#')}")
        if not numbers:
            continue
        if (first := name.rpartition(".")[2][:1].upper()) != letter:
            letter = first
            lines.append(f'<li class="letter">{html.escape(letter)}</li>')
        pages = ", ".join(
            f'<a href="{html.escape(url)}">{number}</a>' for number, url in sorted(numbers.items())
        )
        lines.append(f"<li><code>{html.escape(name)}</code> {pages}</li>")
    return f"<h1>Index of names</h1><ul>{''.join(lines)}</ul>"


def printed(site: Path, root: Path, only=(), chromium=None) -> Iterator[Chapter]:
    """Print all: the front, then the chapters and the index."""
    chapters = [each for each in contents(site) if not only or each.path.rpartition("/")[2] in only]
    one = contextlib.nullcontext(chromium) if chromium else browser.chromium()
    with browser.serve(site) as address, one as chromium:
        context = chromium.new_context(
            viewport={"width": 1000, "height": 1200}, color_scheme="light", reduced_motion="reduce"
        )
        printer = Printer(context.new_page(), address)
        number = 1
        for chapter in chapters:
            chapter.first = number
            printer.chapter(chapter)
            number += chapter.count
        index = Chapter("index", "Index of names", "Reference", first=number)
        printer.leaf(index, index_of_names(site, chapters), INDEX + running(index.title, number))
        title = Chapter("title", "Title")
        printer.leaf(title, title_page(root), TITLE)
        table = Chapter("contents", "Contents")
        style = CONTENTS + running(table.title, 1 + title.count, "lower-roman")
        printer.leaf(table, table_of_contents([*chapters, index]), style)
        context.close()
    yield from (title, table, *chapters, index)
    yield Chapter(address, "")  # what the links of the printed pages begin with


def bound(parts: list[Chapter], address: str, root: Path) -> bytes:
    """One PDF of the printed parts: their links lead to its own pages, or to the published book."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import ArrayObject, FloatObject, NameObject, NullObject, TextStringObject

    writer, starts = PdfWriter(), {}
    for part in parts:
        starts[part.path] = len(writer.pages)
        for page in PdfReader(io.BytesIO(part.content)).pages:
            writer.add_page(page)
    known = {part.path: part for part in parts} | {"paper/index": parts[-1]}

    def place(path, anchor):
        part = known[path]
        page, height = part.places.get(anchor, (0, None))
        target = writer.pages[starts[part.path] + page].indirect_reference
        top = NullObject() if height is None else FloatObject(height)
        return ArrayObject([target, NameObject("/XYZ"), NullObject(), top, NullObject()])

    for part in parts:
        for page in writer.pages[starts[part.path] : starts[part.path] + part.count]:
            for annotation in page.get("/Annots", ()):
                link = annotation.get_object()
                if link.get("/Subtype") != "/Link":
                    continue
                if "/Dest" in link:  # to a place on the same page of the site
                    link[NameObject("/Dest")] = place(
                        part.path, unquote(str(link["/Dest"]).removeprefix("/"))
                    )
                elif (action := link.get("/A")) and str(action.get("/URI", "")).startswith(address):
                    url, anchor = urldefrag(str(action["/URI"]).removeprefix(address + "/"))
                    path = url.partition("?")[0].removesuffix(".html")
                    if path in known:
                        del link["/A"]
                        link[NameObject("/Dest")] = place(path, unquote(anchor))
                    else:
                        published = (
                            project.page_url(path, root)
                            if url.endswith(".html")
                            else project.page_url("", root).removesuffix("/.html") + f"/{url}"
                        )
                        action[NameObject("/URI")] = TextStringObject(published + (anchor and f"#{anchor}"))

    captions = {}
    for part in parts[1:]:
        above = None
        if part.part:
            if part.part not in captions:
                captions[part.part] = writer.add_outline_item(
                    title=part.part, page_number=starts[part.path], is_open=False
                )
            above = captions[part.part]
        item = writer.add_outline_item(
            title=part.title, page_number=starts[part.path], parent=above, is_open=False
        )
        for anchor, _, text in part.sections:
            page = starts[part.path] + part.places.get(anchor, (0, 0.0))[0]
            writer.add_outline_item(title=text, page_number=page, parent=item)
    front = parts[0].count + parts[1].count
    writer.set_page_label(0, front - 1, "/r")
    writer.set_page_label(front, len(writer.pages) - 1, "/D", start=1)
    writer.add_metadata(
        {"/Title": project.TITLE, "/Author": "The mlax-tutorial authors", "/Producer": "Chromium and pypdf"}
    )
    writer.page_mode = "/UseOutlines"
    writer.root_object[NameObject("/Lang")] = TextStringObject("en")
    writer.compress_identical_objects(remove_duplicates=True, remove_unreferenced=True)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def build(site: Path, target: Path, root: Path = project.ROOT, only=(), chromium=None) -> int:
    """Write the PDF of a built site, with a browser that runs already or one of its own; returns how many pages it has."""
    *parts, served = printed(site, root, only, chromium)
    content = bound(parts, served.path, root)
    if len(content) > LIMIT:
        raise SystemExit(f"The PDF has {len(content):,} bytes, over {LIMIT:,}.")
    target.write_bytes(content)
    return sum(part.count for part in parts)


def offer(site: Path) -> None:
    """Write links to the PDF into the pages of the site, if it is there."""
    if not (site / NAME).is_file():
        return
    size = f"{(site / NAME).stat().st_size / 1e6:.0f} MB"
    for path in (*site.glob("book/**/*.html"), site / "search.html"):
        text = path.read_text(encoding="utf-8")
        address = "../" * path.relative_to(site).as_posix().count("/") + NAME
        links = {
            "link": f' · <a href="{address}" download>The book as PDF</a> ({size})',
            "button": f'<a class="book-button book-button-pdf" href="{address}" download title="Download the book as PDF, {size}">'
            '<i class="icon icon-download" aria-hidden="true"></i><span>PDF</span></a>',
        }
        made = PLACE.sub(lambda found, links=links: f"{found[1]}{links[found[2]]}{found[3]}", text)
        if made != text:
            path.write_text(made, encoding="utf-8")


def setup(app):
    def built(app, exception):
        if exception is None and app.builder.name == "html":
            offer(Path(app.outdir))

    app.connect("build-finished", built)
