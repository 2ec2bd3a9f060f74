"""The reader's way: from the README to the pages, marks in the contents, going on, keys, as they show in a browser."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from tools import project
from tools.site import contents
from tools.visits import browser


def listed(caption, *items):
    lines = [f'<li class="toctree-l1"><a class="reference internal" href="{href}">{title}</a></li>' for href, title in items]  # fmt: skip
    return f'<p aria-level="2" class="caption" role="heading"><span class="caption-text">{caption}</span></p>\n<ul class="nav">\n{"".join(lines)}</ul>\n'


SIDEBAR = listed("Part I: basics", ("#", "1. Arrays"), ("keys.html", "3. Keys")) + listed("Reference", ("glossary.html", "Glossary"))  # fmt: skip


def test_contents_fold_by_part():
    lids = lambda made: re.findall(r'<details class="book-part"( open)?>.*?caption-text">(.*?)<', made)  # noqa: E731
    assert lids(contents.folded(SIDEBAR)) == [(" open", "Part I: basics"), (" open", "Reference")]
    last = SIDEBAR.replace('<ul class="nav">', '<ul class="nav current">').replace("nav current", "nav", 1)
    made = contents.folded(last)
    assert lids(made) == [("", "Part I: basics"), (" open", "Reference")]
    text = " ".join(re.sub("<[^>]*>", " ", made).split())
    assert text == "Part I: basics 1. Arrays 3. Keys Reference Glossary"


def test_a_part_of_the_contents_opens_and_a_page_of_the_reference_lists_its_classes(page):
    page.goto("/book/reference/optimizers.html")
    parts = page.locator(".bd-docs-nav details.book-part")
    opened = parts.evaluate_all(
        "all => all.filter(e => e.open).map(e => e.querySelector('summary').innerText)"
    )
    assert opened == ["Reference"]
    hidden = parts.locator("a[href$='/jit.html']")
    assert not hidden.is_visible()
    parts.filter(has=page.locator("a[href$='/jit.html']")).locator("summary").focus()
    page.keyboard.press("Enter")
    assert hidden.is_visible()

    listed = page.locator("#pst-secondary-sidebar .page-toc a")
    shown = listed.evaluate_all(
        "all => all.filter(e => e.checkVisibility()).map(e => e.hash.split('.').pop())"
    )
    assert {"Adam", "AdamW", "Lion", "Accumulate", "CosineDecay"} <= set(shown)
    assert "direction" not in shown, "methods come with their class"


def test_links_know_how_many_exercises_there_are():
    made = contents.with_counts(SIDEBAR, "book/arrays", {"arrays": 7, "keys": 2})
    assert '<a class="reference internal" href="#" data-exercises="7">1. Arrays' in made
    assert 'href="keys.html" data-exercises="2"' in made
    assert made.count("data-exercises") == 2


@pytest.fixture
def some(site):
    """A chapter with several exercises: its name and their number."""
    return "jit", len(re.findall("data-exercise=", (site / "book" / "jit.html").read_text(encoding="utf-8")))


def mark(page, name):
    link = page.locator(f".bd-docs-nav a[href='{name}.html'], .bd-docs-nav a.current[href='#']").first
    marks = link.locator(".book-mark > span[aria-hidden]")
    return marks.inner_text() if marks.count() else ""


def test_a_solved_exercise_shows_in_the_contents_and_on_the_page_of_exercises(page, some):
    name, count = some
    page.goto(f"/book/{name}.html")
    assert mark(page, name) == ""
    page.get_by_label("I have solved it").first.check()
    assert mark(page, name) == f"1/{count}"
    solved = page.locator(".book-exercise-head").first.get_attribute("data-exercise")

    page.goto("/book/exercises.html")
    part = page.locator("details.book-part", has=page.locator(f"a[href='{name}.html']"))
    part.locator("summary").click()  # this page is of another one
    assert mark(page, name) == f"1/{count}"
    box = page.get_by_label(f"I have solved {solved}", exact=True)
    assert box.is_checked()
    assert "You have solved 1 of" in page.locator(".book-progress").inner_text()
    for other in page.locator(f"tr:has(a[href^='{name}.html#']) input").all():
        other.check()
    assert mark(page, name) == "✓"
    box.uncheck()
    assert mark(page, name) == f"{count - 1}/{count}"

    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget my progress").click()
    assert mark(page, name) == ""
    assert page.evaluate("Object.keys(localStorage).filter(key => key.startsWith('book:'))") == []


def test_a_reader_goes_on_where_they_stopped(page):
    page.clock.install()
    page.goto("/book/welcome.html")
    assert page.locator(".book-go-on").count() == 0
    page.goto("/book/jit.html")
    section = page.locator("#book section:has(> h2)").nth(3)
    anchor, title = section.get_attribute("id"), section.locator("h2").inner_text().removesuffix("#")
    section.evaluate("e => scrollTo(0, e.getBoundingClientRect().top + scrollY - 60)")
    page.wait_for_function(
        "anchor => (localStorage.getItem('book:place') ?? '').includes(anchor)", arg=anchor
    )
    page.goto("/book/welcome.html")
    link = page.locator(".book-go-on a")
    assert link.inner_text() == f"4. jit, {title}"
    link.click()
    page.wait_for_url(f"**/jit.html#{anchor}")

    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.clock.run_for(5000)
    assert page.evaluate("localStorage.getItem('book:read:jit')") is None, "scrolled through, not read"
    page.clock.run_for(60_000)  # the chapter is read, the next one is where to go on
    page.wait_for_function("localStorage.getItem('book:read:jit') !== null")
    assert mark(page, "jit") == "read"
    following = page.locator("a[rel=next]")
    target = following.get_attribute("href")
    page.goto("/book/welcome.html")
    assert page.locator(".book-go-on a").get_attribute("href").endswith(target)


def test_keys_turn_pages_but_not_where_arrows_mean_something_else(page):
    page.goto("/book/jit.html")
    told = page.locator("a[rel=next]")
    assert told.get_attribute("aria-keyshortcuts") == "Shift+ArrowRight"
    assert "Shift" in told.inner_text()

    for selector in (".book-answer input", ".viz-figure .viz-range", "#book .book-exercise-done input"):
        page.locator(selector).first.focus()
        page.keyboard.press("Shift+ArrowRight")
    figure = page.locator(".viz-figure").first
    figure.evaluate("e => { e.tabIndex = -1; e.focus() }")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Control+k")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(150)
    assert page.url.endswith("/jit.html")

    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_url("**/compiling.html")
    page.keyboard.press("Shift+ArrowLeft")
    page.wait_for_url("**/jit.html")


# --- what is in view, and where ---


def test_the_search_and_the_current_chapter_are_in_view(page):
    place = """() => ["#pst-primary-sidebar .search-button-field", "#pst-primary-sidebar .navbar-brand", ".bd-docs-nav li.current > a"]
        .map(each => document.querySelector(each).getBoundingClientRect().top)"""
    for name in ("recurrent", "glossary"):  # from far down in the contents, and straight
        page.goto("/book/exercises.html")
        page.locator(".sidebar-primary-item:has(.bd-docs-nav)").evaluate("e => { e.scrollTop = 1e6 }")
        page.evaluate("name => { location.href = `${name}.html` }", name)
        page.wait_for_url(f"**/{name}.html")
        page.wait_for_load_state("load")
        for _ in range(300):  # a script scrolls the contents
            page.wait_for_timeout(100)
            search, brand, here = page.evaluate(place)
            if in_view := 0 <= brand < search < 110 < here < 900:
                break
        assert in_view, (name, search, brand, here)


def test_a_prediction_asks_first_and_shows_what_was_said(page):
    page.goto("/book/jit.html")
    lid = page.locator("details.book-reveal").first
    summary, said = lid.locator("summary"), lid.locator(".book-yours")
    assert summary.inner_text() == "Answer first, or look anyway"
    page.locator(".book-predict .book-answer input").first.fill("two <b>traces</b>")
    assert summary.inner_text() == "Reveal the answer"
    summary.click()
    page.wait_for_function("document.querySelector('details.book-reveal summary').textContent === 'Hide the answer'")  # fmt: skip
    assert said.inner_text() == "You said: two <b>traces</b>"
    page.locator(".book-predict .book-answer input").first.fill("")
    assert said.count() == 0

    page.goto("/book/welcome.html")
    choice = page.locator(".book-choices label").nth(1)
    choice.click()
    page.locator("details.book-reveal summary").first.click()
    assert page.locator(".book-yours").inner_text() == f"You said: {choice.inner_text()}"


def test_answers_to_marked_questions_are_counted(page):
    page.goto("/book/begin.html")
    questions = page.locator(".book-predict")
    assert questions.count() == 12 == page.locator(".book-predict[data-right]").count()
    assert not re.search(r"\[[ x]\] ", page.locator("#book").inner_text())
    button, verdict = page.get_by_role("button", name="Count my answers"), page.locator(".book-verdict")
    button.click()
    assert verdict.inner_text().startswith("0 of 12 are right, 12 not answered yet.")
    for i in range(12):
        right = int(questions.nth(i).get_attribute("data-right"))
        wrong = i in (6, 9)  # Pytrees and vmap
        questions.nth(i).locator("input").nth((right + 1) % 3 if wrong else right).check()
    button.click()
    assert verdict.inner_text().split("\n")[0] == "10 of 12 are right."
    assert verdict.locator("ul").nth(0).locator("li").all_inner_texts() == ["Pytrees", "vmap"]
    assert verdict.locator("ul").nth(1).locator("li").count() == 10
    begin = verdict.locator("p").last
    assert begin.inner_text() == "Begin with Pytrees."
    begin.locator("a").click()
    page.wait_for_url("**/pytrees.html")


def test_an_exercise_has_one_name(page):
    page.goto("/book/vmap.html")
    card = page.locator(".book-exercise").first
    number = card.locator(".book-exercise-number").inner_text().removeprefix("Exercise ")
    title = card.locator("h3").inner_text().removesuffix("#")
    code = card.locator(".book-exercise-head").get_attribute("data-exercise").partition(".")[2]
    listed = page.locator(f".page-toc a[href='#{card.get_attribute('id')}']")
    assert listed.text_content().split() == f"{number} {title} {code}".split()
    page.goto("/book/exercises.html")
    row = page.locator(f"#book tr:has(a[href^='vmap.html#exercise-{code}-'])")
    assert row.locator("td").nth(1).inner_text().split() == f"{number} {title} {code}".split()


def test_columns(page):
    """What is in a column is as wide as it, and not wider."""
    page.set_viewport_size({"width": 1920, "height": 1000})
    page.goto("/book/jit.html")
    found = page.evaluate("""() => {
        const box = each => each.getBoundingClientRect(), all = each => [...document.querySelectorAll(each)];
        const asides = all(".book-aside").filter(each => !each.open);
        const toc = all(".page-toc *").filter(each => box(each).right > innerWidth);
        const feet = all(".book-exercise-foot").filter(each => Math.abs(box(each.lastElementChild).right - box(each).right) > 1);
        return [asides, toc, feet].map(each => each.length);
    }""")
    assert found == [0, 0, 0]
    page.set_viewport_size({"width": 1280, "height": 900})
    aside, text, code = (
        page.evaluate("""() => [document.querySelector(".book-aside"), document.querySelector(".book-aside ~ p"), document.querySelector(".cell_input")]
        .map(each => each.getBoundingClientRect().toJSON())""")
    )
    assert abs(aside["top"] - text["top"]) < 20 and aside["left"] > text["left"] + 500
    assert abs(aside["right"] - code["right"]) < 2


def test_drawings_can_be_read_on_a_telephone(page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/book/attention.html")
    sizes = page.evaluate("""() => [...document.querySelectorAll("figure.viz svg text")].map(each => {
        return parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a })""")
    assert sizes and min(filter(None, sizes)) >= 9  # none behind a lid
    widths = page.evaluate(
        "() => [...document.querySelectorAll('figure.viz')].map(each => [each.scrollWidth, each.clientWidth])"
    )
    assert widths and all(content <= column for content, column in widths)


def test_what_is_wider_than_a_telephone_fades_and_is_reached(page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/book/attention.html")
    table = page.locator("#book [data-more=right]").first  # it fades where it goes on
    table.wait_for()
    assert table.get_attribute("tabindex") == "0"
    assert table.evaluate("e => getComputedStyle(e).maskImage") != "none"
    table.evaluate("e => { e.dataset.tried = '' }")
    table.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('[data-tried]').dataset.more === 'left'")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_search_asks_for_nothing_that_is_missing(page):
    missing = []
    page.on("response", lambda response: missing.append(response.url) if response.status >= 400 else None)
    page.goto("/book/glossary.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("jit")
    page.locator(".book-hits li").first.wait_for()
    page.wait_for_load_state("networkidle")
    assert missing == []
    left = "e => e.getBoundingClientRect().left"
    assert page.locator(".book-hit-title").first.evaluate(left) == page.locator(".book-search-status").evaluate(left)  # fmt: skip


def test_labels_of_drawings_have_contrast(chromium, address):
    for scheme in ("light", "dark"):
        with chromium.new_context(color_scheme=scheme) as context:
            page = context.new_page()
            page.goto(f"{address}/book/attention.html")
            inks = page.evaluate("""() => {
                const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
                const bytes = color => {  // of any notation, color-mix among them
                    canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3) };
                const light = color => bytes(color).map(v => v / 255)
                    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
                const paper = light(getComputedStyle(document.body).backgroundColor);
                return [...document.querySelectorAll("figure.viz svg text")].map(each => {
                    const ink = light(getComputedStyle(each).fill);
                    return [(Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05), each.textContent] });
            }""")
            assert inks and min(inks)[0] >= 4.5, (scheme, min(inks))


def test_a_wide_screen_has_no_islands(page):
    page.set_viewport_size({"width": 1920, "height": 1000})
    page.goto("/book/glossary.html")
    boxes = {name: page.locator(name).first.bounding_box() for name in
             (".bd-sidebar-primary", "#book", "footer.bd-footer-content p", ".bd-article-container")}  # fmt: skip
    assert boxes[".bd-sidebar-primary"]["x"] <= 1
    middle = {name: box["x"] + box["width"] / 2 for name, box in boxes.items()}
    assert abs(middle["footer.bd-footer-content p"] - middle[".bd-article-container"]) < 12, middle


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_corners_of_the_hero_are_paper_in_the_dark(chromium, address, system):
    with chromium.new_context(color_scheme=system, viewport={"width": 1280, "height": 900}) as context:
        context.add_init_script("localStorage.setItem('mode', 'dark'); localStorage.setItem('theme', 'dark')")
        page = context.new_page()
        page.goto(f"{address}/book/welcome.html")
        browser.settle(page)
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        png = page.locator("#book img[src$='hero.svg']").screenshot()
        picture = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
        for corner in (picture[0, 0], picture[0, -1], picture[-1, 0], picture[-1, -1]):
            assert corner.max() < 60, corner


def test_the_readme_leads_to_the_pages_and_says_how_to_get_them():
    text = (project.ROOT / "README.md").read_text(encoding="utf-8")
    pages = project.page_url("book/welcome").removesuffix("/book/welcome.html")
    assert f"<{pages}>" in text or f"({pages}" in text
    assert f"git clone {project.repository()}" in text
    assert text.count(f"]({pages}/book/") >= 12, "the table of chapters leads to the pages"


def test_the_page_of_all_components_is_no_part_of_the_book(site):
    assert not [name for name in browser.pages(site) if "gallery" in name]
