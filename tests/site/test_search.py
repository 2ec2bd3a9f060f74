"""The search: what stands in the index, what it finds as one types, how much it loads, where a hit opens."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from sphinx.errors import ExtensionError

from tools.site import search
from tools.visits import browser, inspection

LIMIT = 300_000  # bytes of index and texts, as they come over the wire
QUOTED = 14  # pages of which there are excerpts

PAGE = """<p>outside</p><article id="book"><section id="jit"><p class="book-eyebrow">Chapter 4</p><h1>jit<a class="headerlink" href="#jit">#</a></h1>
<p>Opening words.</p><section id="static"><h2>Static: <code>static_argnames</code><a class="headerlink" href="#s">#</a></h2>
<div class="cell"><div class="cell_input"><pre>jax.jit(f, <span>static_argnames</span>=0)</pre></div><div class="cell_output"><pre>LONG</pre></div></div>
<p>After it.</p>
<div class="book-reveal"><details class="book-reveal"><summary>Reveal</summary><div></div><p>The zebra wins.</p></div></details>
<p>Behind the lid.</p><div class="viz-figure"><div class="viz-bar"><button>Press</button></div><svg><text>drawn</text></svg></div></section>
<section class="book-exercise" id="exercise"><div class="book-exercise-head"><span class="book-exercise-number">Exercise 4.1</span><span>5 min</span></div>
<h3>How many?</h3><p>A task.</p><div class="book-exercise-foot"><details><summary>Solution</summary>secret</details></div></section>
<dl><dt class="sig" id="mlax_tutorial.nn.Linear"><span>Linear</span></dt><dd><p>A layer.</p></dd></dl></section></article>""".replace(
    "LONG", "word " * 200 + "unread"
)


def test_a_page_is_read_into_sections():
    sections = {section.anchor: section for section in search.read(PAGE)}
    assert [section.title for section in sections.values()] == ["jit", "Static: static_argnames", "Exercise 4.1: How many?", "nn.Linear"]  # fmt: skip
    assert sections[""].text == "Opening words."
    static = sections["static"]
    assert static.text.startswith("jax.jit(f, static_argnames=0) word") and "After it." in static.text
    assert "zebra" in static.unseen and "zebra" not in static.text, "an answer leads here, and is not quoted"
    assert "Behind the lid." in static.text and "unread" not in static.text
    everything = " ".join(section.text + section.unseen for section in sections.values())
    assert not re.search("secret|drawn|Press|outside|Chapter", everything)
    assert sections["mlax_tutorial.nn.Linear"].text == "Linear A layer."


def test_names_are_read_as_a_reader_sees_them():
    row = '<tr><td><code><span class="pre">mode=&quot;fill&quot;</span></code></td><td><a href="arrays.html#mode">1</a></td></tr>'
    assert search.taught(row) == [('mode="fill"', ["book/arrays#mode"])]


def test_the_index_says_where_each_word_stands():
    made = search.index({"book/jit": ("4. jit", search.read(PAGE))}, [("jax.jit", ["book/jit#static", "book/gone#x"]), ("gone", ["book/gone#x"])])  # fmt: skip
    lines = dict(line.split(" ", 1) for line in made["words"].splitlines())
    assert lines["zebra"] == lines["static_argnames"] == "B"
    assert lines["jit"] == "AB" and lines["layer"] == "D" and lines["word"] == "B*"
    assert "the" not in lines
    assert made["names"] == [["jax.jit", [1]]]


def test_each_entry_of_the_index_has_its_place(site):
    text = (site / "_static" / "search-index.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("book.index(").removesuffix(");\n"))
    assert len(index["names"]) > 100 and len(index["pages"]) > 30
    for path, _, sections in index["pages"]:
        page = (site / f"{path}.html").read_text(encoding="utf-8")
        assert [anchor for anchor, _ in sections if anchor and f'id="{anchor}"' not in page] == [], path
        assert all(title for _, title in sections), path
        texts = (site / "_static" / "search" / f"{path.replace('/', '-')}.index.js").read_text(
            encoding="utf-8"
        )
        assert len(json.loads(texts[texts.index("(") + 1 : texts.rindex(")")])["texts"]) == len(sections)
    assert not (site / "searchindex.js").exists()


def hits(page):
    return page.locator("#pst-search-dialog ul.search li a")


def test_sections_are_found_as_one_types_and_open_at_the_hit(page):
    page.goto("/book/glossary.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("static_argn")
    expect(hits(page).first).to_contain_text("Static arguments: static_argnames")  # once all of it is typed
    page.keyboard.type("qwertz")
    page.locator(".book-search-status").get_by_text("did not match any documents").wait_for()
    assert hits(page).count() == 0
    for _ in "qwertz":
        page.keyboard.press("Backspace")
    hits(page).first.wait_for()
    page.wait_for_function("document.querySelector('#pst-search-dialog .book-hit-text').textContent.includes('static_arg')")  # fmt: skip
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jit.html#static-arguments-static-argnames")
    page.locator("#book .highlighted").first.wait_for()
    page.wait_for_function("""() => {
        const { top } = document.querySelector("#static-arguments-static-argnames .highlighted").getBoundingClientRect();
        return top > 50 && top < 880;
    }""")


def test_names_terms_and_words_come_first_where_they_are_taught(page):
    page.goto("/search.html")
    page.wait_for_function("document.querySelector('#search-results ul')")
    page.locator(".bd-search-container input[name=q]").focus()
    page.wait_for_function("window.book?.find && document.querySelector('script[src*=search-index]')")
    wanted = {
        "jaxpr": "Glossary | jaxpr",
        "KeyReuseError": "2. Randomness | A guard: jax_debug_key_reuse",
        "vmap": "10. vmap | One example, many examples: jax.vmap",
        "jax.vmap": "10. vmap | One example, many examples: jax.vmap",
        "LayerNorm": "Layers | nn.LayerNorm",
        "gradients of loops": "6. Control flow | Gradients of loops",
    }
    for query, first in wanted.items():
        page.locator(".bd-search-container input[name=q]").fill(query)
        page.wait_for_function("document.querySelectorAll('#search-results li').length > 0")
        found = page.evaluate("query => { const [first] = book.find(query); return `${first.chapter} | ${first.title}` }", query)  # fmt: skip
        assert found == first, query


def test_what_people_type_leads_to_its_answer(page):
    """Each search of `searches.txt` has its section among the first three; most of these words stand nowhere in the book."""
    lines = Path(__file__).with_name("searches.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line.rsplit(": ", 1) for line in lines]
    assert len(wanted) >= 60
    page.goto("/search.html?q=jit")
    page.locator("#search-results li").first.wait_for()
    found = page.evaluate(
        "queries => queries.map(query => book.find(query).slice(0, 3).map(({page, anchor}) => `${page}#${anchor}`))",
        [query for query, _ in wanted],
    )
    missed = [
        f"{query}: not {place}, but {first}"
        for (query, place), first in zip(wanted, found)
        if f"book/{place}" not in first
    ]
    assert not missed, "\n".join(missed)


def test_a_phrase_leads_to_a_section_that_exists():
    pages = {"book/jit": ("4. jit", search.read(PAGE))}
    phrases = [("freeze", "book/jit#static"), ("elsewhere", "book/gone#x")]
    assert search.lead(pages, phrases) == phrases[:1], "a page that is not built is none of the build's"
    assert search.index(pages, phrases=phrases[:1])["asked"] == [["freeze", 1]]
    assert "freeze B" in search.index(pages)["words"].splitlines()
    with pytest.raises(ExtensionError, match="no section book/jit#renamed"):
        search.lead(pages, [("freeze", "book/jit#renamed")])


def test_a_search_loads_little(chromium, address):
    """All that searches load besides the page, however many are made on it."""
    context = chromium.new_context()
    page, transfers = context.new_page(), {}
    page.goto(f"{address}/book/glossary.html")
    browser.settle(page)
    inspection.watch_transfers(context, page, transfers)
    page.keyboard.press("Control+k")
    for query in (
        "jit",
        "gradient",
        "convolution",
        "random keys",
        "attention",
        "precision",
        "optimizer",
        "error",
    ):
        page.locator("#pst-search-dialog input[name=q]").fill(query)
        page.wait_for_timeout(350)
    page.wait_for_load_state("networkidle")
    context.close()
    assert any("search-index.js" in url for url in transfers) and any("/search/" in url for url in transfers)
    assert sum(transfers.values()) <= LIMIT, transfers
    assert not any(".html" in url for url in transfers)


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("vmpa", "vmap"),
        ("jax.vmpa", "jax.vmap"),
        ("static_argnmaes", "static_argnames"),
        ("gradeint", "gradient"),
    ],
)
def test_what_was_meant_is_offered_when_nothing_is_found(page, typed, meant):
    page.goto("/book/glossary.html")
    page.keyboard.press("Control+k")
    page.keyboard.type(typed)
    offered = page.get_by_role("button", name=meant, exact=True)
    offered.wait_for()
    assert f"Did you mean {meant}?" in page.locator(".book-search-status").inner_text()
    offered.click()
    hits(page).first.wait_for()
    assert page.locator("#pst-search-dialog input[name=q]").input_value() == meant
    page.locator("#pst-search-dialog input[name=q]").fill("qwertzuiop")
    page.locator(".book-search-status").get_by_text("Try fewer words").wait_for()
    assert page.locator(".book-meant").count() == 0


def test_excerpts_come_as_results_come_into_view(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/search/" in request.url else None)
    page.goto("/search.html?q=jax")
    page.wait_for_function("document.querySelector('#search-results .book-hit-text').textContent")
    results = page.locator("#search-results li")
    assert results.count() == 40
    page.wait_for_timeout(500)
    before = len(asked)
    for result in results.all():
        result.scroll_into_view_if_needed()
        page.wait_for_timeout(100)
    for _ in range(300):
        page.wait_for_timeout(200)
        if len(asked) >= QUOTED:
            break
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)  # what is asked for too often, or comes late
    assert before < len(asked) == len(set(asked)) == QUOTED
    pages = [each.locator("a").get_attribute("href").partition(".html")[0] for each in results.all()]
    quoted = [each.locator(".book-hit-text").text_content() for each in results.all()]
    first = list(dict.fromkeys(pages))[:QUOTED]
    # a heading may have no text of its own
    assert len([page for page, text in zip(pages, quoted) if page in first and not text]) <= 2, quoted


def test_what_is_written_into_the_field_stays_text(page):
    page.goto("/search.html?q=%3Cimg%20src%3Dx%20onerror%3D%22window.bad%3D1%22%3E%20jit")
    page.locator("#search-results li").first.wait_for()
    assert page.locator("#search-results img").count() == 0
    assert page.evaluate("window.bad") is None
