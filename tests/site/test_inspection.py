"""The inspection finds what is wrong: a page with each fault, and one with none."""

import dataclasses
import random
import re

import pytest

from tools.visits import accessibility, browser, inspection, sight

SOUND = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Sound</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"></head>
<body><main><h1>Sound</h1>{}</main></body></html>"""

FAULTS = {
    "outside": '<img alt="far" src="http://example.com/far.png">',
    "errors": "<script>console.error('wrong')</script>",
    "violations": '<p style="color: #bbb; background: #fff">hardly legible</p>',
    "unnamed": '<svg viewBox="0 0 9 9" width="9"><path d="M0 0h9v9z"/></svg>',
    "wide": '<div style="width: 500px">too wide</div>',
    "unseen": '<a rel="next" href="sound.html" style="display: none">Next</a>',
    "shifts": "<p>moved</p><script>requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector('h1').insertAdjacentHTML("
    "'beforebegin', '<div style=\"height: 400px\">late</div>')))</script>",
    "transfers": '<script src="heavy.js"></script>',
}


@pytest.fixture(scope="module")
def broken_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("broken")


@pytest.fixture(scope="module")
def broken(broken_folder):
    (broken_folder / "heavy.js").write_text(
        "//" + random.Random(0).randbytes(400_000).hex()
    )  # half of it when packed
    (broken_folder / "sound.html").write_text(SOUND.format("<p>All is well.</p>"))
    for fault, body in FAULTS.items():
        (broken_folder / f"{fault}.html").write_text(SOUND.format(body))
    with browser.serve(broken_folder) as served:
        yield served


def test_a_sound_page_passes(chromium, broken):
    seen = inspection.inspect(chromium, broken, "sound.html")
    assert not any(getattr(seen, fault) for fault in FAULTS if fault != "transfers")
    assert list(seen.transfers) == [f"{broken}/sound.html"]


def test_a_fault_is_planted_for_each_field():
    fields = {field.name for field in dataclasses.fields(inspection.Visit)}
    # what `sight.py` finds is planted in `gallery/test_sight.py`
    assert fields - {"seen", "mathematics"} == set(FAULTS), "plant a fault in FAULTS for each field of Visit"


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "transfers"])
def test_a_fault_is_found(chromium, broken, fault):
    assert getattr(inspection.inspect(chromium, broken, f"{fault}.html"), fault)


@pytest.mark.parametrize("failures", [2, 3])
def test_a_page_that_was_not_drawn_is_visited_anew(monkeypatch, failures):
    """Once in thousands of visits Chromium draws no frame for a new size. Here no frame is ever drawn, in so many pages."""

    class Page:
        viewport_size = None

        def __init__(self, drawn):
            self.drawn, self.sizes = drawn, []

        def set_viewport_size(self, size):
            self.sizes.append(size["height"])

        def evaluate(self, script):
            return self.drawn

        def wait_for_timeout(self, milliseconds):
            pass

    pages = [Page(False) for _ in range(failures)] + [Page(True)]

    def visited(chromium, address, name, widths):
        sight.resize(page := pages.pop(0), (390, 800))
        return page

    monkeypatch.setattr(inspection, "visited", visited)
    if failures < 3:
        assert inspection.inspect(None, "http://site", "name.html").sizes == [800]
    else:
        with pytest.raises(sight.NotDrawn, match="name.html"):
            inspection.inspect(None, "http://site", "name.html")


def test_a_missing_file_is_found(chromium, broken):
    assert any("404" in error for error in inspection.inspect(chromium, broken, "nowhere.html").errors)


def test_a_heavy_request_is_weighed(chromium, broken):
    assert inspection.inspect(chromium, broken, "transfers.html").transfers[f"{broken}/heavy.js"] > 400_000


DARK = "<style>@media (prefers-color-scheme: dark) {{ body {{ background: #222; color: {color} }} }}</style>"


@pytest.mark.parametrize(("color", "count"), [("#333", 1), ("#eee", 0)])
def test_a_fault_in_the_dark_is_found(chromium, broken_folder, color, count):
    (broken_folder / "dark.html").write_text(SOUND.format(DARK.format(color=color) + "<p>Words.</p>"))
    with browser.serve(broken_folder) as address:
        found = inspection.inspect(chromium, address, "dark.html").violations
    assert len(found) == 2 * count  # the heading and the paragraph
    assert all(line.startswith("dark: color-contrast") for line in found)


FAINT = "color: #bbb; background: #fff"
# Several pieces of text of one look, of which axe judges only some: the others are covered or have a single letter.
CONTRASTS = f"""<p>Black on white.</p><p style="{FAINT}">faint</p><p style="{FAINT}">faint as well</p>
<div style="{FAINT}">faint in a box</div><div style="background: #444"><p>black on a dark ground</p></div>
<div style="opacity: .4"><p>black, but faded</p></div><div style="background: #444"><p>x</p></div>
<button style="{FAINT}; padding: 9px">faint button</button>
<details><summary>Folded</summary><p style="{FAINT}">faint when unfolded</p></details>
<section style="position: relative; height: 60px">
<p style="position: absolute; top: 0; left: 0; color: #bbb">the longest of these two is covered</p>
<div style="position: absolute; top: 0; left: 0; width: 300px; height: 40px; background: #fff"></div>
<p style="position: absolute; top: 0; left: 400px; color: #bbb">faint, not covered</p></section>"""


def test_text_of_one_look_is_judged_once(chromium, page, broken_folder):
    """For each piece of text that axe by itself finds too faint, one of the same look is found, and nothing else."""
    (broken_folder / "contrasts.html").write_text(SOUND.format(CONTRASTS))
    with browser.serve(broken_folder) as address:
        page.goto(f"{address}/contrasts.html")
        found = accessibility.violations(page)
        options = {"runOnly": {"type": "tag", "values": accessibility.TAGS}, "preload": False}
        plain = page.evaluate("options => { axe.reset(); return axe.run(document, options); }", options)
    every = [node["html"] for rule in plain["violations"] for node in rule["nodes"]]
    assert len(every) == 7
    same_look = [
        f'<p style="{FAINT}">{text}</p>' for text in ("faint", "faint as well")
    ]  # as the box, the longest
    assert [re.search("color-contrast: (.*) [(]Fix", line)[1] for line in found] == [
        html for html in every if html not in same_look
    ]
