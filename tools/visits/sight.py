"""What a reader would see to be wrong on a page, at the widths of a desk, a telephone and paper: `sight.js` does the looking."""

import functools
from pathlib import Path

DESK, TELEPHONE, PAPER = (1440, 900), (390, 800), (665, 940)  # A4 less its margins
# At the width of a desk, in this order: `dots` and `markers` step the figures to their ends.
AT_THE_DESK = (
    "told",
    "crowded",
    "copying",
    "cut",
    "underlines",
    "spoiled",
    "dead",
    "scaffolding",
    "tall",
    "dots",
    "markers",
)
ON_A_TELEPHONE = ("crowded", "scrolling", "letters", "tall", "dots")
ON_PAPER = ("printed",)


@functools.cache
def script() -> str:
    return Path(__file__).with_name("sight.js").read_text(encoding="utf-8")


def look(page, *names) -> list[str]:
    """What the functions of these names find on the page as it stands."""
    page.evaluate("names => { globalThis.asked = names }", list(names))
    found = page.evaluate(script())
    return [f"{name}: {line}" for name in names for line in dict.fromkeys(found[name])]


def faults(page) -> list[str]:
    """All that is found on an open page, which is as wide as a telephone afterwards."""
    return at_the_desk(page) + on_paper_and_telephone(page)


def at_the_desk(page) -> list[str]:
    resize(page, DESK)
    return [f"{DESK[0]}: {line}" for line in look(page, *AT_THE_DESK)]


def on_paper_and_telephone(page) -> list[str]:
    page.emulate_media(media="print")
    resize(page, PAPER)
    found = [f"paper: {line}" for line in look(page, *ON_PAPER)]
    page.emulate_media(media="screen")
    resize(page, TELEPHONE)
    # The theme takes 300 ms to see what scrolls now, on a busy machine more, and lets Tab reach it.
    for _ in range(100):
        page.wait_for_timeout(400)
        if not look(page, "scrolling"):
            break
    return found + [f"{TELEPHONE[0]}: {line}" for line in look(page, *ON_A_TELEPHONE)]


class NotDrawn(Exception):
    """Once in thousands of visits Chromium draws no frame after a page has got a new size, however long one waits."""


# Whether two frames were drawn: what a page does in answer to its new size comes with the next one.
DRAWN = """() => new Promise(done => {
    requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
    setTimeout(() => done(false), 10_000);
})"""


def resize(page, size):
    """Laying a chapter out again takes most of a visit's time: a size that it has costs nothing. Raises `NotDrawn`."""
    width, height = size
    if page.viewport_size == {"width": width, "height": height}:
        return
    page.set_viewport_size({"width": width, "height": height})
    for _ in range(3):
        if page.evaluate(DRAWN):
            return page.wait_for_timeout(60)
        page.set_viewport_size({"width": width, "height": height + 1})
        page.set_viewport_size({"width": width, "height": height})
    raise NotDrawn(f"Chromium draws no frame for the new size, {width} by {height}")
