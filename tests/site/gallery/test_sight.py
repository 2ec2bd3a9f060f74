"""What was once wrong on a page is planted on the page of all components, and found; without it nothing is found.

So the looking that each page of the book gets (`test_pages.py`, `tools/visits/sight.js`) is known to see.
"""

import io
import re

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import ElementHandle

from tools.visits import browser, sight


@pytest.fixture
def opened(chromium, gallery):
    """Opens the gallery at a width, with further settings of the browser; several times if asked."""
    contexts = []

    def open_at(width=sight.DESK[0], **settings):
        context = chromium.new_context(
            base_url=gallery, viewport={"width": width, "height": 900}, reduced_motion="reduce", **settings
        )
        context.set_default_timeout(60_000)
        contexts.append(context)
        return loaded(context.new_page())

    yield open_at
    for context in contexts:
        context.close()


def loaded(page):
    page.goto("/book/gallery.html")
    browser.settle(page)
    page.wait_for_selector("button.copybtn", state="attached")  # a script adds them
    return page


@pytest.fixture(scope="module")
def kept(chromium, gallery):
    """Gives a page at the desk or on paper, sound again after each fault: to open one takes longer than all looks at it."""
    context = chromium.new_context(base_url=gallery, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    pages = {}

    def page_at(size):
        if size not in pages:
            page = pages[size] = context.new_page()
            page.set_viewport_size({"width": size[0], "height": size[1]})
            if size == sight.PAPER:
                page.emulate_media(media="print")
            loaded(page)
        return pages[size]

    yield page_at
    context.close()


def mended(page, planted):
    """Takes away the styles that were planted; what a script did goes when the page is loaded again."""
    styles = planted if isinstance(planted, list) else [planted]
    if not all(isinstance(each, ElementHandle) for each in styles):
        loaded(page)
        return
    for each in styles:
        each.evaluate("style => style.remove()")


def test_the_gallery_has_no_fault(opened):
    assert sight.faults(opened()) == []


def css(text):
    return lambda page: page.add_style_tag(content=text)


def script(text):
    return lambda page: page.evaluate(text)


def both(*plants):
    return lambda page: [plant(page) for plant in plants]


def after_the_lid(text):
    return script(f"document.querySelector('details.book-reveal').insertAdjacentHTML('afterend', {text!r})")


ROWS = ".viz-figure tr { height: 90px }"
# What is planted at the desk, and a part of what must be said; the first word is the function that sees it. What is seen on a
# telephone alone has tests of its own below.
FAULTS = {
    "no room for the dots": ("dots: ", "outside of the frame", css(".viz-jit-cache { width: 300px } #book .viz-jit-cache td { white-space: nowrap }")),
    "no dots": ("dots: ", "is 0 by 0", css(".viz-jit-cache circle { display: none }")),
    "faint dots": ("dots: ", "cannot be seen", css(".viz-jit-cache circle { stroke: none !important }")),
    "no lines of life": ("dots: ", "line of life", css("#book table td { background: none !important }")),
    "no marker": ("markers: ", "the marker of the row", css("#book table th { border: 0 !important }")),
    "no tint": ("markers: ", "no tint", css("#book table tr { background: none !important }")),
    "filled icon": ("copying: ", "is filled", css("button.copybtn svg { background: currentColor }")),
    "tall figure": ("tall: ", "scrolls inside", css(ROWS + "#book .viz-figure.viz-figure { max-height: 600px !important; overflow: auto !important }")),
    "controls that scroll away": ("tall: ", "out of sight", css(ROWS + ".viz-bar { position: static !important }")),
    "no caption": ("told: ", "no caption", script("document.querySelector('.viz-caption').remove()")),
    "silent first frame": ("told: ", "says nothing", script("document.querySelector('.viz-status').textContent = ''")),
    "cut lines": ("cut: ", "printed of 135 columns", css("#book pre { white-space: pre !important }")),
    "broken code": ("cut: ", "is broken at", css("html[data-theme] { --book-measure: 49rem }")),
    "small code": ("cut: ", "code of 12.8px", css("html[data-theme] { --book-code: 0.8rem }")),
    "narrow column": ("cut: ", "columns of code", css("html[data-theme] { --book-measure: 40rem }")),
    "swallowed underscores": ("underlines: ", "jax.tree_util", css("#book a { text-underline-offset: 0.15em !important }")),
    "told in the next paragraph": ("spoiled: ", "(2718)", after_the_lid("<p>So 2718 it is.</p>")),
    "told in the next output": ("spoiled: ", "(the answer is 2718)", after_the_lid("<pre>the answer is 2718</pre>")),
    "open lid": ("spoiled: ", "is open", script("document.querySelector('details.book-reveal').open = true")),
    "no lid": ("spoiled: ", "has no lid", script("document.querySelector('details.book-reveal').remove()")),
    "somebody's attempt": ("dead: ", "not attempted", after_the_lid("<p>Not attempted yet.</p>")),
    "no hint": ("dead: ", "no hint", script("document.querySelectorAll('.book-exercise-foot details').forEach(each => each.remove())")),
    "no way into a kernel": ("dead: ", "no link", script("document.querySelector('.book-exercise-colab').href = '#'")),
    "an assertion": ("scaffolding: ", "assert True", script("document.querySelector('#long-output .cell_input pre').append('\\nassert True')")),
    "a verdict": ("scaffolding: ", "J1 holds", script("document.querySelectorAll('.cell_output pre').forEach(each => each.prepend('J1 holds: so\\n'))")),
}  # fmt: skip
ON_PAPER = {
    "no title": ("the title", css("#book h1 { display: none !important }")),
    "closed lids": ("not printed", script("() => { globalThis.dispatchEvent = () => true }")),
    "blank steps": ("is blank", both(css("#book .viz-figure .viz-later { visibility: hidden !important }"), script("document.querySelectorAll('.viz-range').forEach(each => { each.oninput = null })"))),
    "lids that stay": ("of 2 answers", script("addEventListener('beforeprint', () => document.querySelector('#answers .book-answered').remove())")),
    "lost answers": ("an answer is empty", script("addEventListener('beforeprint', () => document.querySelector('#solutions .book-answered').replaceChildren())")),
    "empty frames": ("an empty frame", script("document.querySelector('#code').insertAdjacentHTML('beforeend', '<div class=\"admonition\" style=\"height: 50px\"></div>')")),
    "broken frames": ("breaks in two", css("#book * { break-inside: auto !important }")),
    "no frames": ("without a frame", css("#book .cell_input { border: 0 !important }")),
    "room for an answer": ("a blank band", css("#book .book-predict > :has(+ .book-answer) { margin-bottom: 1em !important }")),
    "cut figures": ("cut: ", css("#book .viz-figure.viz-figure { max-height: 200px !important; overflow: auto !important }")),
    "cut lines": ("cut: ", css("#book { width: 600px } #book pre { white-space: pre !important }")),
    "wide tables": ("wider than the paper", script("document.querySelector('#code').insertAdjacentHTML('beforeend', '<table style=\"width: 1200px\"><tr><td>word</table>')")),
    "light ink": ("the ink is light", css("html[data-theme] { color-scheme: dark !important }")),
    "controls": ("controls are printed", css("#book .viz-bar button { display: inline !important }")),
}  # fmt: skip


def looked(page, what, wanted):
    """`None` once a line is seen that is wanted, or what is seen after a minute: a style that was planted may come late."""
    for _ in range(300):
        found = sight.look(page, what)
        if any(map(wanted, found)):
            return None
        page.wait_for_timeout(200)
    return found


def settle(page, what):
    """Until the scripts have come, and nothing is seen any more; or a minute, and what is wrong is wrong."""
    for _ in range(300):
        if not sight.look(page, what):
            return
        page.wait_for_timeout(200)


def test_each_function_is_called():
    functions = set(re.findall(r"^    (?:async )?(\w+)\(\) {$", sight.script(), re.MULTILINE))
    assert functions == {*sight.AT_THE_DESK, *sight.ON_A_TELEPHONE, *sight.ON_PAPER}, (
        "see tools/visits/sight.py"
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(kept, fault):
    kind, told, plant = FAULTS[fault]
    page = kept(sight.DESK)
    planted = plant(page)
    found = looked(page, kind.removesuffix(": "), lambda line: line.startswith(kind) and told in line)
    mended(page, planted)
    assert found is None, found


@pytest.mark.parametrize("fault", ON_PAPER)
def test_a_fault_on_paper_is_seen(kept, fault):
    told, plant = ON_PAPER[fault]
    page = kept(sight.PAPER)
    planted = plant(page)
    found = looked(page, "printed", lambda line: told in line)
    mended(page, planted)
    assert found is None, found


def test_what_was_planted_is_gone(kept):
    """Or else a fault would be seen that an earlier one left behind."""
    assert not sight.look(kept(sight.DESK), *sight.AT_THE_DESK)
    assert not sight.look(kept(sight.PAPER), *sight.ON_PAPER)


def test_printing_opens_what_is_folded(opened):
    """Chromium itself says when it prints; what is open then is what is on paper."""
    page = opened(color_scheme="dark")
    page.evaluate("""() => addEventListener("beforeprint", () => {
        globalThis.closed = document.querySelectorAll("#book details:not([open])").length;
    })""")
    assert len(page.pdf()) > 10_000
    assert page.evaluate("closed") == 0
    assert page.locator("#book details.book-reveal[open]").count() == 0


# --- touch, keys, pixels: what has to be done in the browser to be seen ---


@pytest.mark.parametrize("fault", [False, True])
def test_copy_buttons_do_not_cover_code_on_touch(opened, fault):
    page = opened(390, has_touch=True, is_mobile=True)
    if fault:
        page.add_style_tag(content="button.copybtn { top: 0.45rem !important }")
    assert page.evaluate("matchMedia('(hover: none)').matches")
    assert page.locator("#code .cell_input button.copybtn").last.is_visible()
    assert bool(sight.look(page, "copying")) == fault


@pytest.mark.parametrize("fault", ["", "not reached by Tab", "goes on without a sign"])
def test_what_scrolls_sideways_is_reached_and_fades(opened, fault):
    page = opened(390)
    page.wait_for_selector("#book [data-more=right]")
    if fault.startswith("not"):
        page.evaluate(
            "document.querySelectorAll('#book [data-more=right]').forEach(e => e.removeAttribute('tabindex'))"
        )
    elif fault:
        page.add_style_tag(content="#book * { mask-image: none !important }")
    found = sight.look(page, "scrolling")
    assert all(fault in line for line in found) and bool(found) == bool(fault), found


@pytest.mark.parametrize("fault", [False, True])
def test_letters_of_drawings_can_be_read_on_a_telephone(opened, fault):
    page = opened(390)
    settle(page, "letters")
    if fault:  # as they were before the script came
        page.evaluate(
            "document.querySelectorAll('#ranges .viz-figure text').forEach(e => e.style.removeProperty('font-size'))"
        )
    assert bool(sight.look(page, "letters")) == fault


MISPLACED = {  # what is found after it
    "": "",
    "svg.style.setProperty('max-width', 'none', 'important'); svg.style.width = '600px'": "is wider than its column",
    "last.setAttribute('transform', 'translate(400 20)')": "goes beyond the drawing",
    "last.replaceWith(first.cloneNode(true))": "lies on",
}


@pytest.mark.parametrize("fault", MISPLACED)
def test_words_of_a_drawing_have_their_place(opened, fault):
    page = opened(390)
    settle(page, "crowded")
    page.evaluate(
        """fault => {
          const svg = document.querySelector("#book figure.viz svg"), texts = [...svg.querySelectorAll("text")];
          new Function("svg", "first", "last", fault)(svg, texts[0], texts.at(-1));
        }""",
        fault,
    )
    found = sight.look(page, "crowded")
    assert bool(found) == bool(fault) and all(MISPLACED[fault] in line for line in found), found


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("fault", [False, True])
def test_copy_buttons_take_no_room_on_touch(opened, width, fault):
    """The frame around code is no higher than the code; the button, at its edge, can be hit and covers no other words."""
    page = opened(width, has_touch=True, is_mobile=True)
    if fault:
        page.add_style_tag(content="div.highlight button.copybtn { position: static !important }")
    found = page.evaluate("""() => {
      const buttons = [...document.querySelectorAll("#book div.highlight button.copybtn")].filter((each) => each.checkVisibility());
      const lines = [...document.querySelectorAll("#book :is(p, li, pre, summary, h2, h3)")].flatMap((each) => {
        const range = document.createRange();
        range.selectNodeContents(each);
        return each.checkVisibility() ? [...range.getClientRects()].filter((line) => line.width > 1) : [];
      });
      return buttons.map((button) => {
        const box = button.getBoundingClientRect(), middle = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
        const frame = button.closest("[class*=highlight-]").getBoundingClientRect(), pre = button.parentElement.querySelector("pre").getBoundingClientRect();
        scrollTo(0, scrollY + box.top - 300);
        const now = button.getBoundingClientRect(), hit = document.elementFromPoint((now.left + now.right) / 2, (now.top + now.bottom) / 2);
        scrollTo(0, 0);
        return {
          room: frame.height - pre.height < 6,
          large: box.width >= 24 && box.height >= 24,
          hit: button.contains(hit),
          clear: !lines.some((line) => line.left < box.right && line.right > box.left && line.top < box.bottom - 1 && line.bottom > box.top + 1),
        };
      });
    }""")
    assert len(found) > 5
    assert all(each["large"] and each["hit"] and each["clear"] for each in found) or fault
    assert all(each["room"] for each in found) != fault


@pytest.mark.parametrize("fault", [False, True])
def test_arrow_keys_work_after_a_click_on_a_figure(opened, fault):
    """On the figure itself, not on one of its controls."""
    page = opened()
    figures = page.locator(".viz-figure:has(.viz-previous)").all()
    assert len(figures) > 14
    for figure in figures:
        slider = figure.locator(".viz-range").first
        if fault:
            figure.evaluate("each => each.removeAttribute('tabindex')")
        figure.locator(".viz-caption").click(position={"x": 3, "y": 8})
        before = slider.input_value()
        page.keyboard.press("ArrowRight" if int(before) == 0 or before == "1" else "ArrowLeft")
        assert (slider.input_value() != before) == (not fault), figure.get_attribute("aria-label")


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), int)


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_icon_of_a_copy_button_is_a_picture(opened, scheme, fault):
    """Its ink is not its ground, and covers a part of it."""
    page = opened(color_scheme=scheme)
    if fault:
        page.add_style_tag(content="button.copybtn svg { background: currentColor }")
    page.add_style_tag(content="* { transition: none !important }")
    cell = page.locator("#code div.cell_input").last
    cell.hover()
    icon = pixels(cell.locator("button.copybtn svg").screenshot())
    far = np.abs(icon - icon[0, 0]).max(axis=-1) > 60  # from the color in the corner
    assert (0.05 < far.mean() < 0.7) == (not fault), far.mean()


@pytest.mark.parametrize("fault", [False, True])
def test_the_rest_of_a_slider_is_dark_in_the_dark(opened, fault):
    page = opened(color_scheme="dark")
    if fault:
        page.add_style_tag(content=".viz-range { accent-color: #0072b2 !important }")
    slider = pixels(page.locator("#ranges .viz-range").screenshot())  # it stands at 0
    rest = slider[:, slider.shape[1] // 2 : -20].max(axis=-1)
    assert (rest.max() < 160) == (not fault), rest.max()


@pytest.mark.parametrize("fault", [False, True])
def test_the_underscores_of_a_linked_name_can_be_seen(opened, fault):
    """Between an underscore and the line below it there is paper."""
    page = opened(device_scale_factor=4)
    if fault:
        page.add_style_tag(content="#book a { text-underline-offset: 0.12em !important }")
    link = page.locator("#prose a:has(code)")
    # the name becomes one underscore after the other, so that each column of pixels crosses both lines
    link.locator("code").evaluate("each => { each.textContent = '_'.repeat(12) }")
    page.add_style_tag(content="#book a { text-decoration-style: solid !important }")
    link.scroll_into_view_if_needed()
    box = link.bounding_box()
    clip = {"x": box["x"] + box["width"] / 2, "y": box["y"], "width": 4, "height": box["height"] + 9}
    column = pixels(page.screenshot(clip=clip)).mean(axis=1)
    dark = column.max(axis=-1) < 200
    runs = int(np.sum(dark[1:] & ~dark[:-1]))
    assert (runs >= 2) == (not fault), runs


@pytest.mark.parametrize("fault", [False, True])
def test_a_search_hit_is_in_view(opened, gallery, fault):
    page = opened()
    page.goto("/search.html?q=zebrafish")
    hit = page.locator("#search-results ul.search li a").first
    hit.wait_for()
    if fault:  # neither the script that looks for the hit nor the section that it is in
        page.route("**/deferred-*.js", lambda route: route.abort())
        hit.evaluate("e => { e.hash = '' }")
    hit.click()
    page.wait_for_url("**/gallery.html*")
    hit = page.locator("#book .highlighted", has_text="zebrafish")
    hit.wait_for(state="attached")
    for _ in range(3 if fault else 300):  # the page scrolls when its scripts have come
        page.wait_for_timeout(200)
        box = hit.bounding_box()
        if 50 < box["y"] < 880:
            break
    assert (50 < box["y"] < 880) == (not fault), box
