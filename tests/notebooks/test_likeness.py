"""Pictures that look the same are the same; a difference that can be seen is one."""

import base64
import io

import PIL.Image
import PIL.ImageDraw
import pytest

from tools.notebooks import likeness

SVG = (
    '<figure role="img" aria-label="a line"><svg viewBox="0 0 700 350"><g transform="scale(0.01 -0.01)">'
    '<path d="M 100.1234 200.5 L 600.25 100.75" style="stroke: #123456; stroke-width: 1.5"/></g>'
    '<use href="#glyph-30"/><text x="5" y="9">0.25</text></svg></figure>'
)


def png(change=None, size=(700, 350)) -> str:
    image = PIL.Image.linear_gradient("L").resize(size).convert("RGB")
    if change:
        change(image)
    handle = io.BytesIO()
    image.save(handle, "PNG")
    return base64.b64encode(handle.getvalue()).decode()


def few_levels(image):
    image.paste(image.point(lambda value: min(255, value + 3)))


def one_digit(image):
    PIL.ImageDraw.Draw(image).text((100, 100), "8", fill="red")


def test_a_few_levels_do_not_matter():
    assert png() != png(few_levels)
    assert likeness.difference("image/png", png(), png(few_levels)) is None


def test_one_digit_does():
    assert "of the picture's pixels changed" in likeness.difference("image/png", png(), png(one_digit))


def test_another_size_does():
    assert "was 700 x 350 pixels and is 700 x 351" in likeness.difference(
        "image/png", png(), png(size=(700, 351))
    )


def test_embedded_pictures_are_compared_by_pixels():
    markup = '<img alt="a" src="data:image/png;base64,{}">'
    assert likeness.is_picture("text/html", markup)
    assert likeness.difference("text/html", markup.format(png()), markup.format(png(few_levels))) is None
    assert "pixels changed" in likeness.difference(
        "text/html", markup.format(png()), markup.format(png(one_digit))
    )


@pytest.mark.parametrize(
    "old, new",
    [
        ("100.1234", "100.1239"),
        ("600.25", "600.26"),
        ('x="5"', 'x="5.01"'),
        ("0.01 -0.01", "0.0100001 -0.01"),
        ("200.5", "200.5000001"),
    ],
)
def test_the_last_bits_of_a_drawing_do_not_matter(old, new):
    assert likeness.difference("text/html", SVG, SVG.replace(old, new)) is None


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("100.1234", "101.1234", "the drawing moved: 100.1234 became 101.1234"),
        ("600.25", "600.35", "the drawing moved"),
        ("0.01 -0.01", "0.02 -0.01", "the drawing moved"),
        (">0.25<", ">0.26<", "the markup changed"),
        ("#123456", "#123457", "the markup changed"),
        ("stroke-width: 1.5", "stroke-width: 1.6", "the markup changed"),
        ("#glyph-30", "#glyph-31", "the markup changed"),
        ("a line", "a curve", "the markup changed"),
        (" L 600.25 100.75", "", "the markup changed"),
    ],
)
def test_what_can_be_seen_does(old, new, said):
    assert said in likeness.difference("text/html", SVG, SVG.replace(old, new, 1))


def test_the_prefix_of_ids_does_not_matter():
    stored = '<svg><path id="v01234567-0" d="M 0 0" /><use href="#v01234567-0" /><g clip-path="url(#v01234567-1)" /></svg>'
    assert likeness.difference("text/html", stored, stored.replace("v01234567", "v89abcdef")) is None
    for other in [
        stored.replace('href="#v01234567-0', 'href="#v01234567-1'),
        stored.replace("v01234567", "w01234567"),
    ]:
        assert "the markup changed" in likeness.difference("text/html", stored, other)


def test_text_without_pictures_is_left_to_nbval():
    assert not likeness.is_picture("text/html", "<td>7</td>")
    assert not likeness.is_picture("text/plain", "7")
