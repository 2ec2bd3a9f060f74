"""The Sphinx extension: titled boxes, page descriptions, the slimmed style sheet."""

import base64
import re
from pathlib import Path

import nbformat
import pytest
from docutils import nodes
from docutils.utils import new_document

from tests.site.conftest import ROOT
from tools.site import assets, bundles, pages

STYLE = """@charset "UTF-8";/*!
 * Licence */.used{color:red}.unused{color:blue}.used .unused,.used{margin:0}
/* a comment with .braces { } */
@media (min-width:9px){.unused{margin:0}}@media print{.used::after{content:"}";color:red}.unused{margin:1}}
.used:not(.unused){top:0}.used:is(.unused,.used){top:1px}p>a{top:2px}.fa-star:before{content:"*"}.faint{top:3px}
@font-face{font-family:"Font Awesome";src:url(a)}@font-face{font-family:Other;src:url(b)}
@keyframes spin{0%{top:0}to{top:1px}}.sd-col\\.x{top:4px}"""


@pytest.mark.parametrize(
    "kept",
    [
        '@charset "UTF-8";',
        "Licence",
        ".used{color:red}",
        ".used{margin:0}",
        '@media print{.used::after{content:"}";color:red}}',
        ".used:not(.unused){top:0}",
        ".used:is(.unused,.used){top:1px}",
        "p>a{top:2px}",
        ".faint{top:3px}",
        "Other",
        "@keyframes spin{0%{top:0}to{top:1px}}",
    ],
)
def test_purge_keeps_what_is_used(kept):
    assert kept in assets.purge(STYLE, {"used", "faint", "p"})


@pytest.mark.parametrize(
    "dropped", ["blue", "min-width", "comment", ".used .unused", "fa-star", "Awesome", "top:4px"]
)
def test_purge_drops_what_is_not(dropped):
    assert dropped in STYLE
    assert dropped not in assets.purge(STYLE, {"used", "faint", "fa-star", "p"})


def test_purge_twice_changes_nothing():
    once = assets.purge(STYLE, {"used"})
    assert assets.purge(once, {"used"}) == once


def test_lighten_writes_embedded_pictures_and_unmarks_plain_code(tmp_path):
    picture = bytes(range(256)) * 20
    code = '<span class="n">x</span> <span class="o">=</span> <span class="mi">1</span>'
    text = f'{code}<image href="data:image/png;base64,{base64.b64encode(picture).decode()}"/>'
    small = '<img src="data:image/png;base64,AAAA">'
    body = assets.lighten(text + small, tmp_path / "_images", "../_images/")
    (file,) = (tmp_path / "_images").iterdir()
    assert file.read_bytes() == picture
    assert body == f'x = <span class="mi">1</span><image href="../_images/{file.name}"/>{small}'


PAGE = """<head>
  <link href="../_static/styles/theme.css" rel="stylesheet" />
  <link rel="icon" href="../_static/icon.svg" />
  <link rel="stylesheet" type="text/css" href="../_static/css/own.css?v=1" />
  <script src="../_static/one.js?v=1"></script>
  <script src="../_static/two.js"></script>
  <script>ONE.page = "a";</script>
  <script defer="defer" src="../_static/mathjax/mathjax.js"></script>
  <script defer src="../_static/js/book.js"></script>
</head>
<body><p>text</p>
  <script defer src="../_static/scripts/bootstrap.js"></script>
  <script defer src="../_static/scripts/last.js"></script>
</body>"""
FILES = {
    "styles/theme.css": '@import "../basic.css";.theme{}',
    "basic.css": ".basic{background:url(icon.svg)}",
    "css/own.css": "@font-face{src:url('../fonts/a.woff2')}.own{background:url(data:image/png;base64,AA)}",
    **{f"{name}.js": f'"{name}"' for name in ("one", "two", "js/book", "scripts/last", "mathjax/mathjax")},
}


@pytest.fixture
def bundled(tmp_path):
    """A site of one page that is bundled, and what the page says then."""
    (tmp_path / "book").mkdir()
    for name, text in FILES.items():
        (tmp_path / "_static" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "_static" / name).write_text(text)
    return tmp_path, bundles.bundled(tmp_path, "book/a.html", PAGE)


def test_a_page_asks_for_one_style_sheet_and_few_scripts(bundled):
    site, page = bundled
    asked = re.findall(r'(?:href|src)="([^"]+)"', page)
    kinds = [re.sub(r"-[0-9a-f]{12}", "", address.removeprefix("../_static/")) for address in asked]
    assert kinds == [
        "bundles/looks.css",
        "icon.svg",
        "bundles/at-once.js",
        "mathjax/mathjax.js",
        "bundles/deferred.js",
    ]
    places = [page.index(text) for text in ("at-once", "ONE.page", "mathjax", "<p>", "deferred-")]
    assert places == sorted(places)
    assert all((site / "book" / address).is_file() for address in asked if "bundles" in address)
    assert bundles.bundled(site, "book/a.html", page) == page


def test_bundles_hold_their_files_in_order_with_addresses_that_lead_there(bundled):
    site, _ = bundled
    held = {file.name.partition("-")[0]: file.read_text() for file in (site / bundles.FOLDER).iterdir()}
    assert held["looks"].replace("\n", "") == (
        '.basic{background:url("../icon.svg")}.theme{}'
        '@font-face{src:url("../fonts/a.woff2")}.own{background:url(data:image/png;base64,AA)}'
    )
    assert re.findall(r'"([a-z/]+)"', held["at"]) == ["one", "two"]
    assert re.findall(r'"([a-z/]+)"', held["deferred"]) == ["js/book", "scripts/last"]


def build(folder, text):
    """Render a MyST text with the extension's directives, warnings being errors."""
    from sphinx.testing.util import SphinxTestApp

    (folder / "conf.py").write_text(
        "extensions = ['myst_parser', 'tools.site.boxes']\nmyst_enable_extensions = ['colon_fence']\n"
    )
    (folder / "index.md").write_text(text)
    app = SphinxTestApp(srcdir=folder, warningiserror=True)
    try:
        app.build()
        return (folder / "_build" / "html" / "index.html").read_text()
    finally:
        app.cleanup()


def test_boxes_take_their_title(tmp_path):
    boxes = [
        ("{tip} Takeaway", "tip takeaway", "Takeaway"),
        ("{warning}", "warning watch-out", "Watch out"),
        ("{warning} Watch out", "warning watch-out", "Watch out"),
        ("{note} On a TPU", "note on-a-tpu", "On a TPU"),
        ("{note}", "note", "Note"),
        ("{tip} Use `jit` *once*", "tip use-jit-once", "Use <code"),
    ]
    texts = [f":::{opening}\nText {number}.\n:::\n" for number, (opening, _, _) in enumerate(boxes)]
    page = build(tmp_path, "\n".join(["# Page\n", *texts]))
    rendered = re.findall(r'<div class="([^"]*\badmonition\b[^"]*)">(.*?)</div>', page, flags=re.S)
    for number, ((opening, classes, title), (found, body)) in enumerate(zip(boxes, rendered, strict=True)):
        assert sorted(found.split()) == sorted(["admonition", *classes.split()]), opening
        assert f'<p class="admonition-title">{title}' in body, opening
        assert f"<p>Text {number}.</p>" in body, opening


def test_cells_that_show_a_claim_can_be_linked_to(tmp_path):
    """From another page, with warnings as errors: a link to a cell that is not there fails."""
    from sphinx.testing.util import SphinxTestApp

    def code(*tags):
        return nbformat.v4.new_code_cell("1 + 1", metadata={"tags": list(tags)})

    cells = [code("claim-J1"), code(), code("hide-input", "claim-J2", "claim-J1")]
    title = nbformat.v4.new_markdown_cell("# A chapter")
    language = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    notebook = nbformat.v4.new_notebook(cells=[title, *cells], metadata=language)
    nbformat.write(notebook, tmp_path / "chapter.ipynb")
    names = ["claim-J1", "claim-J1-2", "claim-J2"]
    links = "\n".join(f"[{name}](chapter.ipynb#{name})" for name in names)
    (tmp_path / "index.md").write_text(f"# Page\n\n{links}\n\n```{{toctree}}\nchapter\n```\n")
    (tmp_path / "conf.py").write_text(
        "extensions = ['myst_nb', 'tools.site.anchors']\nnb_execution_mode = 'off'\n"
        "source_suffix = {'.md': 'myst-nb', '.ipynb': 'myst-nb'}\n"
    )
    app = SphinxTestApp(srcdir=tmp_path, warningiserror=True)
    try:
        app.build()
        html = tmp_path / "_build" / "html"
        chapter, index = ((html / f"{name}.html").read_text() for name in ("chapter", "index"))
    finally:
        app.cleanup()
    first, _, third = re.findall(r'<div class="cell [^>]*>', chapter)
    assert 'id="claim-J1"' in first
    assert "claim-J2" in third and chapter.count('id="claim-J1-2"') == chapter.count('id="claim-J2"') == 1
    for name in names:
        assert f'href="chapter.html#{name}"' in index


def test_the_page_of_claims_leads_to_cells(site):
    page = (site / "book" / "claims.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(\w+\.html)#(claim-[\w-]+)"', page)
    assert links
    for name, anchor in links:
        assert f'id="{anchor}"' in (site / "book" / name).read_text(encoding="utf-8"), (name, anchor)


def test_what_to_call_for_a_hint_is_said_in_the_notebook_alone(site):
    """On the page the hints stand below the exercise."""
    said = re.compile(r"For a hint, [^\n]*\.hint\(\)")
    notebooks = [
        path for path in (ROOT / "book").glob("*.ipynb") if said.search(path.read_text(encoding="utf-8"))
    ]
    assert len(notebooks) > 3
    for path in notebooks:
        page = (site / "book" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert "For a hint," not in page and "<summary>Hint 1</summary>" in page, path.stem


def test_description_is_the_first_paragraph():
    document = new_document("page")
    section = nodes.section()
    section += nodes.title(text="Title")
    box = nodes.note()
    box += nodes.paragraph(text="In a box.")
    section += box
    section += nodes.paragraph(text="word " * 60)
    document += section
    text = pages.description(document)
    assert text.startswith("word word")
    assert text.endswith("word…")
    assert len(text) <= 161


def test_chapters_carry_their_own_numbers(site, tmp_path):
    (tmp_path / "book" / "_src").mkdir(parents=True)
    (tmp_path / "book" / "_src" / "tracing.md").write_text("---\nchapter:\n  number: 3\n---\n\n# Tracing\n")
    (tmp_path / "book" / "_src" / "welcome.md").write_text("---\nchapter: {}\n---\n\n# Welcome\n")
    assert pages.chapter_number(tmp_path, "book/tracing") == 3
    assert pages.chapter_number(tmp_path, "book/welcome") is None
    assert pages.chapter_number(tmp_path, "book/glossary") is None
    page = (site / "book" / "first_network.html").read_text(encoding="utf-8")
    number = pages.chapter_number(Path(__file__).parents[2], "book/first_network")
    assert f'<p class="book-eyebrow">Chapter {number}</p>' in page
    assert re.search(
        rf'toctree-l1 current active"><a class="current reference internal" href="#"[^>]*>{number}\. ', page
    )


def test_every_page_describes_itself(site):
    for path in (site / "book").glob("*.html"):
        page = path.read_text(encoding="utf-8")
        for tag in ('name="description"', 'property="og:description"', 'property="og:title"'):
            assert page.count(f"<meta {tag} content=") == 1, (path.name, tag)


def test_nothing_of_the_theme_that_is_not_used_is_shipped(site):
    names = [path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()]
    assert not [name for name in names if "fontawesome" in name or name.endswith(".map") or "thebe" in name]
    assert not [
        path for path in (site / "book").glob("*.html") if "unpkg.com" in path.read_text(encoding="utf-8")
    ]


def test_the_address_of_the_site_says_what_it_is(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    for part in ("<title>", 'rel="icon"', 'rel="canonical"', 'property="og:image" content="https://', 'href="book/welcome.html"'):  # fmt: skip
        assert part in page, part
    for name in re.findall('href="(_static/[^"]*)"', page):
        assert (site / name).is_file(), name


def test_a_lost_reader_is_led_on(site):
    page = (site / "404.html").read_text(encoding="utf-8")
    for name, _, anchor in (link.partition("#") for link in re.findall('href="/([^"]+)"', page)):
        assert (
            f'id="{anchor}"' in (site / name).read_text(encoding="utf-8")
            if anchor
            else (site / name).is_file()
        ), name
    assert 'action="/search.html"' in page and 'name="q"' in page
