"""What a reader does with the site: search, copy, switch to dark, step through a figure, go on, open in Colab."""

import json
import posixpath
import re

import pytest

from tools import project
from tools.visits import browser


def test_search_finds_a_term(page):
    page.goto("/book/glossary.html")
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input[name=q]").fill("jaxpr")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=jaxpr")
    results = page.locator("#search-results ul.search li")
    results.first.wait_for()
    page.locator("#search-results .search-summary").get_by_text(re.compile("found", re.I)).wait_for()
    assert any("Glossary" in text for text in results.all_inner_texts())
    results.filter(has_text="Glossary").first.locator("a").first.click()
    page.wait_for_url("**/glossary.html*")


def test_search_says_when_nothing_was_found(page):
    page.goto("/search.html?q=qwertzuiop")
    page.get_by_text(re.compile("did not match any documents")).wait_for()


def test_copy_copies(page, some_chapter):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/" + some_chapter)
    cell = page.locator("div.cell:not(.tag_hide-cell) div.cell_input").first
    cell.hover()
    cell.locator("button.copybtn").click()
    page.locator("button.copybtn.success").first.wait_for()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.strip() == cell.locator("pre").inner_text().strip()
    assert copied.strip()


def test_the_theme_toggles_and_is_remembered(page):
    page.goto("/book/glossary.html")

    def look():
        """Theme and colour of the page, read at once, when no transition is under way any more."""
        return tuple(
            page.evaluate("""async () => {
            const ended = Promise.allSettled(document.getAnimations().map(animation => animation.finished));
            await Promise.race([ended, new Promise(done => setTimeout(done, 20_000))]);  // should no frame be drawn
            return [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor];
        }""")
        )

    button = page.locator(".theme-switch-button:visible")
    seen = {look()}
    for _ in range(2):
        button.click()
        seen.add(look())
    assert {theme for theme, _ in seen} == {"light", "dark"}
    assert len({colour for _, colour in seen}) == 2
    while look()[0] != "dark":
        button.click()
    page.goto("/search.html")
    assert look()[0] == "dark"


def test_dark_is_taken_from_the_system_before_the_first_paint(chromium, address):
    with chromium.new_context(color_scheme="dark", java_script_enabled=True) as context:
        page = context.new_page()
        page.route(
            "**/pydata-sphinx-theme.js", lambda route: route.abort()
        )  # the theme's script, which comes late
        page.goto(f"{address}/book/glossary.html")
        assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"


def link(site, name, kind):
    """The address behind a button in the header of a page."""
    (tag,) = re.findall(
        rf'<a class="[^"]*book-button-{kind}"[^>]*>', (site / name).read_text(encoding="utf-8")
    )
    return re.search('href="([^"]*)"', tag)[1]


def test_launch_link(site, chapter):
    owner = project.repository().removeprefix("https://github.com/")
    path = chapter.removesuffix(".html") + ".ipynb"
    expected = f"https://colab.research.google.com/github/{owner}/blob/{project.revision()}/{path}"
    assert link(site, chapter, "colab") == expected == project.colab_url(path)


def test_launch_link_is_a_button(page, some_chapter):
    page.goto("/" + some_chapter)
    assert page.get_by_role("link", name="Open in Colab", exact=True).is_visible()


def test_download_link_leads_to_the_notebook(site, chapter):
    file = (site / chapter).parent / link(site, chapter, "download")
    notebook = json.loads(file.read_text(encoding="utf-8"))
    assert file.suffix == ".ipynb"
    assert notebook["nbformat"] == 4
    assert any(cell["cell_type"] == "code" for cell in notebook["cells"])


def test_download_saves_a_file(page, some_chapter):
    page.goto("/" + some_chapter)
    with page.expect_download() as download:
        page.locator("a.book-button-download").click()
    assert download.value.suggested_filename == some_chapter.split("/")[-1].replace(".html", ".ipynb")


def test_pages_without_a_notebook_offer_none(page):
    page.goto("/book/glossary.html")
    assert page.locator("a.book-button-colab, a.book-button-download").count() == 0


def neighbor(site, name, direction):
    """The page that a page calls its next or previous one, by its HTML; None where it has none."""
    text = (site / name).read_text(encoding="utf-8")
    links = {href for tag in re.findall("<a [^>]*>", text) if f'rel="{direction}"' in tag or direction + "-page" in tag
             for href in re.findall('href="([^"#]*)', tag)}  # fmt: skip
    assert len(links) <= 1, (name, links)
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), links.pop())) if links else None


def test_next_and_previous_walk_the_book_and_back(site):
    """By the links in the HTML; that they show, each page's own test says."""
    walked = ["book/welcome.html"]
    while (following := neighbor(site, walked[-1], "next")) and following not in walked:
        walked.append(following)
    assert following is None
    assert sorted(walked) == [name for name in browser.pages(site) if name.startswith("book/")]
    back = [neighbor(site, name, "prev") for name in walked]
    assert back == [None, *walked[:-1]]


def test_next_and_previous_can_be_followed(page):
    page.goto("/")
    page.wait_for_url("**/book/welcome.html")
    page.locator("a[rel=next]:visible").click()
    page.wait_for_load_state()
    assert not page.url.endswith("/welcome.html")
    page.locator("a[rel=prev]:visible").click()
    page.wait_for_url("**/book/welcome.html")


@pytest.fixture(params=["chapter", "book/glossary.html", "404.html"])
def sample(request, some_chapter):
    return some_chapter if request.param == "chapter" else request.param


def test_search_without_javascript_says_so(chromium, address):
    with chromium.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{address}/search.html")
        notice = page.locator("main noscript .admonition")
        assert notice.is_visible()
        assert "activate JavaScript" in notice.text_content()


def test_readable_without_javascript(chromium, address, sample):
    with chromium.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{address}/{sample}")
        heading = page.locator("h1:visible").first
        assert heading.inner_text().strip()
        ink, paper = (
            heading.evaluate("e => getComputedStyle(e).color"),
            page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor"),
        )
        assert ink != paper
        assert paper not in ("rgba(0, 0, 0, 0)", "")
        assert len(page.locator("main").inner_text()) > 80
        assert (
            page.locator("button.theme-switch-button:visible, button.search-button__button:visible").count()
            == 0
        )


def test_skip_link_is_the_first_stop_and_works(page):
    page.goto("/book/glossary.html")
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.inner_text() == "Skip to main content"
    page.wait_for_function("document.activeElement.getBoundingClientRect().top >= 0")  # it slides in
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#main-content")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#book') !== null"), "it leads into the text"


def test_focus_can_be_seen(page, sample):
    """The first twenty stops of the tabulator key have an outline, or change their look otherwise."""
    page.goto("/" + sample)
    for _ in range(20):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
            const e = document.activeElement;
            if (!e || e === document.body) return null;
            const s = getComputedStyle(e);
            return {html: e.outerHTML.slice(0, 120), outline: s.outlineStyle, width: parseFloat(s.outlineWidth)};
        }"""
        )
        if found is None:
            return
        assert found["outline"] != "none" and found["width"] >= 2, found


def test_contents_open_on_a_telephone(page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/book/glossary.html")
    contents = page.locator(".bd-docs-nav:visible a", has_text="References")
    assert contents.count() == 0
    page.locator("button.primary-toggle").click()
    contents.first.click()
    page.wait_for_url("**/references.html")


def first_page(site, pattern):
    """The first page whose HTML holds `pattern`; None where none does."""
    names = browser.pages(site)
    return next(
        (name for name in names if re.search(pattern, (site / name).read_text(encoding="utf-8"))), None
    )


def test_predictions_open_from_the_keyboard(page, site):
    if (name := first_page(site, r"<details(?: open\S*)?>")) is None:
        pytest.skip("no prediction on any page yet")
    page.goto("/" + name)
    prediction = page.locator("#book details:not(.hide)").first
    assert prediction.get_attribute("open") is None
    prediction.locator("summary").focus()
    page.keyboard.press("Enter")
    assert prediction.get_attribute("open") is not None


@pytest.fixture
def figure(page, site):
    if (name := first_page(site, 'class="viz-figure viz-trace ')) is None:
        pytest.skip("no interactive figure on any page yet")
    page.goto("/" + name)
    figure = page.locator(".viz-trace").first
    figure.scroll_into_view_if_needed()
    return figure


def test_interactive_figure_moves_by_mouse(figure):
    before = figure.inner_html()
    figure.get_by_role("button", name=re.compile("next|step|forward", re.I)).first.click()
    after = figure.inner_html()
    assert after != before


def test_interactive_figure_moves_by_keyboard(page, figure):
    before = figure.inner_html()
    button = figure.get_by_role("button", name=re.compile("next|step|forward", re.I)).first
    button.focus()
    assert button.evaluate("e => e === document.activeElement")
    page.keyboard.press("Enter")
    assert figure.inner_html() != before


def test_interactive_figure_slides_by_keyboard(page, figure):
    slider = figure.get_by_role("slider").first
    slider.focus()
    before = slider.input_value(), figure.inner_text()
    page.keyboard.press("ArrowRight")
    assert slider.input_value() != before[0]
    assert figure.inner_text() != before[1]
