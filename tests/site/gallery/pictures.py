"""Pictures of the gallery's sections, and how two of them are compared.

A picture is kept at half its size. Two are compared by the mean colors of blocks of 8 x 8 pixels of the page, each at its best
among shifts of up to two pixels sideways and four up and down. So a difference is seen where it covers a good part of a block: a dot, the bar of a
row, a word, an icon, a fill. Not seen are: an edge that is softer or a few pixels off, a hairline, a letter, a shade that changes by less than
a tenth. That is what fonts' smoothing differs by between two versions of Chromium; the book's own fonts do not differ.
"""

import io

import numpy as np
from PIL import Image

from tests.site.gallery import SCHEMES, STATES, STORED, WIDTHS
from tools.visits import browser

BLOCK = 4  # of the halved picture
TOLERANCE = 33  # of 255, in any channel of a block's mean
DRAWN = "chromium.txt"  # beside the stored pictures: the major version of Chromium that drew them
SHIFTS = [(y, x) for y in (0, -1, 1, -2, 2) for x in (0, -1, 1)]  # of the halved picture
TALLER = 6  # pixels of the page by which a section may be taller or lower
QUIET = "*, ::before, ::after { animation: none !important; transition: none !important; caret-color: transparent !important }"


def halved(png: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    return picture.reduce(2)


def small(picture: Image.Image) -> Image.Image:
    """As it is stored: 128 colors, rare ones among them."""
    return picture.quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)


def differences(stored: Image.Image, seen: Image.Image) -> list[str]:
    """Where two halved pictures differ, in pixels of the page."""
    old, new = (np.asarray(picture.convert("RGB"), float) for picture in (stored, seen))
    if old.shape[1] != new.shape[1] or abs(old.shape[0] - new.shape[0]) * 2 > TALLER:
        return [
            "its size was {1} x {0}, and is {3} x {2}".format(
                *(2 * size for size in old.shape[:2] + new.shape[:2])
            )
        ]
    height, width = min(len(old), len(new)), old.shape[1]
    old, new = old[:height], new[:height]
    best = np.full((height // BLOCK, width // BLOCK), np.inf)
    wanted = _means(old)
    for y, x in SHIFTS:
        shifted = np.pad(new, ((2, 2), (2, 2), (0, 0)), mode="edge")[
            2 + y : 2 + y + height, 2 + x : 2 + x + width
        ]
        best = np.minimum(best, np.abs(_means(shifted) - wanted).max(axis=-1))
    scale = 2 * BLOCK
    return [
        f"at {column * scale}, {row * scale}: off by {best[row, column]:.0f}"
        for row, column in np.argwhere(best > TOLERANCE)
    ]


def _means(pixels):
    height, width = (size // BLOCK * BLOCK for size in pixels.shape[:2])
    blocks = pixels[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK, 3)
    return blocks.mean(axis=(1, 3))


def version(chromium) -> str:
    return chromium.version.partition(".")[0]


def path(name: str, width: str, scheme: str, folder=STORED):
    return folder / f"{width}-{scheme}" / f"{name}.png"


def open_gallery(chromium, address, width, scheme):
    """The gallery in a context of its own, quiet, at its end once, so that all of it is painted."""
    context = chromium.new_context(
        base_url=address,
        viewport={"width": WIDTHS[width], "height": 900},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto("/book/gallery.html")
    browser.settle(page)
    page.add_style_tag(
        content=QUIET
        + " .viz-bar { position: static !important }"  # or it stands where the page was scrolled to
        + " .bd-header-article, .bd-sidebar { visibility: hidden !important } .skip-link, #pst-back-to-top { display: none !important }"
    )
    return page


def take(chromium, address, width, scheme):
    """All pictures of one width and scheme, by name; what is done for one section is not undone for the next."""
    page = open_gallery(chromium, address, width, scheme)
    try:
        for name, (section, act) in STATES.items():
            found = page.locator(f"section#{section}, section:has(> span#{section})")
            if act:
                act(page, found)
            page.mouse.move(0, 0)
            # the first section is the page itself: only what stands above the second
            yield name, halved(found.screenshot() if name != "top" else _top(page))
            page.keyboard.press("Escape")
    finally:
        page.context.close()


def _top(page):
    box = page.evaluate("""() => {
        scrollTo(0, 0);
        const book = document.querySelector("#book").getBoundingClientRect();
        const end = document.querySelector("#book section section").getBoundingClientRect().top;
        return {x: book.x, y: book.y, width: book.width, height: end - book.y};
    }""")
    return page.screenshot(clip=box)


def take_all(chromium, address):
    for width in WIDTHS:
        for scheme in SCHEMES:
            for name, picture in take(chromium, address, width, scheme):
                yield name, width, scheme, picture
