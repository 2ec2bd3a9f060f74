"""The sections of the gallery look as they did when they were last looked at.

After a change of looks: `make gallery` pictures all into `_build/gallery`; look at them, then `python -m tests.site.gallery
_build/gallery --store`. What the comparison sees and what it does not stands in `pictures.py`, and is shown below.
"""

import pytest
from PIL import Image, ImageDraw, ImageFilter

from tests.site import gallery as page_of_all
from tests.site.gallery import pictures
from tools.visits import accessibility


@pytest.mark.parametrize("scheme", page_of_all.SCHEMES)
@pytest.mark.parametrize("width", page_of_all.WIDTHS)
def test_sections_look_as_they_did(chromium, gallery, tmp_path_factory, width, scheme):
    drawn, here = (pictures.STORED / pictures.DRAWN).read_text().strip(), pictures.version(chromium)
    if (
        here != drawn
    ):  # fonts, lines and focus rings of another one may differ by more than is told apart here
        pytest.skip(
            f"Chromium {drawn} drew the pictures, and this is {here}: `make gallery`, look, and store"
        )
    found = {}
    folder = tmp_path_factory.getbasetemp() / f"gallery-{width}-{scheme}"
    for name, picture in pictures.take(chromium, gallery, width, scheme):
        stored = pictures.path(name, width, scheme)
        assert stored.is_file(), f"{stored} is missing: `make gallery`, look, and store"
        if lines := pictures.differences(Image.open(stored), picture):
            found[name] = lines[:5]
            folder.mkdir(exist_ok=True)
            picture.save(folder / f"{name}.png")
    assert not found, (
        f"{found}\nThese pictures lie in {folder}; the stored ones in {pictures.STORED / f'{width}-{scheme}'}"
    )


@pytest.mark.parametrize("scheme", page_of_all.SCHEMES)
def test_all_states_are_accessible(chromium, gallery, scheme):
    """With everything open and answered."""
    page = pictures.open_gallery(chromium, gallery, "wide", scheme)
    try:
        for section, act in page_of_all.STATES.values():
            if act:
                act(page, page.locator(f"section#{section}, section:has(> span#{section})"))
        page.evaluate("document.querySelectorAll('#book details').forEach(each => { each.open = true })")
        assert accessibility.violations(page) == []
    finally:
        page.context.close()


def test_each_state_has_its_pictures():
    """And none is left of a state that is gone; all together they are light."""
    files = sorted(pictures.STORED.rglob("*.png"))
    wanted = [pictures.path(name, width, scheme) for name in page_of_all.STATES for width in page_of_all.WIDTHS for scheme in page_of_all.SCHEMES]  # fmt: skip
    assert files == sorted(wanted)
    assert sum(file.stat().st_size for file in files) < 8_000 * len(files)


# --- the comparison itself, on doctored pictures ---


def stored(name, width="wide", scheme="light"):
    return Image.open(pictures.path(name, width, scheme)).convert("RGB")


def painted(picture, box, color=None):
    """With a rectangle painted over, in the color of the corner if none is given; `box` is in pixels of the page."""
    picture = picture.copy()
    halves = [value // 2 for value in box]
    ImageDraw.Draw(picture).rectangle(halves, fill=color or picture.getpixel((picture.width - 3, 3)))
    return picture


def where(picture, color, least=12):
    """A box of pixels of the page round the pixels of about one color, the topmost of them."""
    points = [
        (x, y)
        for y in range(picture.height)
        for x in range(picture.width)
        if max(abs(a - b) for a, b in zip(picture.getpixel((x, y)), color)) < 50
    ]
    top = min(y for _, y in points)
    near = [(x, y) for x, y in points if y < top + least]
    return [
        2 * min(x for x, _ in near) - 2,
        2 * top - 2,
        2 * max(x for x, _ in near) + 2,
        2 * max(y for _, y in near) + 2,
    ]


ORANGE = (213, 94, 0)


@pytest.mark.parametrize("scheme", page_of_all.SCHEMES)
@pytest.mark.parametrize("width", page_of_all.WIDTHS)
def test_a_missing_dot_is_seen(width, scheme):
    whole = stored("jit-cache", width, scheme)
    left, above = whole.width // 2, whole.height // 3  # code stands above, the marker of the row at the left
    x0, y0, x1, y1 = where(whole.crop((left, above, whole.width, whole.height)), ORANGE)
    assert 6 < x1 - x0 < 30 and 6 < y1 - y0 < 30, "this is the dot"
    ground = whole.getpixel((left + x1 // 2 + 4, above + (y0 + y1) // 4))
    gone = painted(whole, (x0 + 2 * left, y0 + 2 * above, x1 + 2 * left, y1 + 2 * above), ground)
    assert pictures.differences(whole, gone)


@pytest.mark.parametrize("scheme", page_of_all.SCHEMES)
def test_a_missing_marker_a_missing_word_and_another_fill_are_seen(scheme):
    whole = stored("batch-stepped", "wide", scheme)
    assert pictures.differences(whole, painted(whole, where(whole.crop((0, 0, 12, whole.height)), ORANGE)))
    prose = stored("prose", "wide", scheme)
    assert pictures.differences(prose, painted(prose, (0, 60, 80, 80)))
    box = stored("boxes", "wide", scheme)
    fill = box.getpixel((box.width // 3, 40))
    other = tuple(value - 40 if value > 100 else value + 40 for value in fill)
    assert pictures.differences(box, painted(box, (100, 70, 400, 100), other))


def test_another_size_is_seen():
    whole = stored("table")
    assert pictures.differences(whole, whole.crop((0, 0, whole.width, whole.height - 8)))
    assert pictures.differences(whole, whole.crop((0, 0, whole.width - 1, whole.height)))


@pytest.mark.parametrize("state", ["prose", "jit-cache-stepped", "code", "tree", "key-tree"])
def test_softer_and_shifted_letters_are_not_seen(state):
    """As another version of Chromium, or other settings of its fonts, would draw them."""
    whole = stored(state)
    assert not pictures.differences(whole, whole.filter(ImageFilter.GaussianBlur(0.35)))
    shifted = Image.new("RGB", whole.size, whole.getpixel((whole.width - 1, whole.height - 1)))
    shifted.paste(whole, (1, 1))
    shifted.paste(whole.crop((0, 0, whole.width, 1)), (0, 0))
    shifted.paste(whole.crop((0, 0, 1, whole.height)), (0, 0))
    assert not pictures.differences(whole, shifted)
    assert not pictures.differences(whole, Image.eval(whole, lambda value: min(255, int(value * 0.97 + 4))))


def test_a_hairline_is_not_seen():
    """What the comparison cannot tell is known, too: a line of a pixel, hardly darker than the paper, is within its tolerance."""
    whole = stored("table")
    assert not pictures.differences(whole, painted(whole, (0, 40, 600, 40), (243, 240, 232)))
