"""``viz.denoising``: denoisers of all kinds, and the figure in a browser."""

import base64
import re
import struct
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import viz
from mlax_tutorial.viz.figures.denoising import page

CLEAN = jnp.sign(jnp.sin(jnp.arange(3 * 48.0))).reshape(3, 48)
KEY = jax.random.key(0)


def linear(x, sigma):
    return x / (1 + sigma**2)


@jax.jit
def jitted(x, sigma):
    return jnp.tanh(x / sigma**2)


class Zeros:
    def __call__(self, x, sigma):
        return 0 * x


# The denoisers, the images, the options.
ALL_KINDS = {
    "a function": (linear, CLEAN, {}),
    "several": ({"linear": linear, "tanh <b>": jitted, "an object": Zeros()}, CLEAN, {}),
    "one image, one level": (linear, CLEAN[:1], {"sigmas": [0.5]}),
    "pixels that are decoded": (linear, CLEAN[:, :3], {"decode": lambda x: x @ jnp.ones((3, 48)) / 3}),
    "pixels in their places": (linear, CLEAN[:, :3], {"decode": lambda x: x[:, :, None, None] * jnp.ones((16, 1)), "shape": (6, 8)}),
    "other limits": (linear, CLEAN * 100 + 100, {"limits": (0, 255), "sigmas": [10, 1000]}),
    "an odd width": (linear, CLEAN[:, :35], {"shape": (5, 7)}),
    "half precision": (linear, CLEAN.astype(jnp.bfloat16), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_denoiser_is_shown(name):
    denoisers, clean, options = ALL_KINDS[name]
    options = {"shape": (6, 8), "key": KEY} | options
    figure = viz.denoising(denoisers, clean, **options)
    levels = len(options.get("sigmas", range(9)))
    assert figure.errors.shape == (len(figure.names), levels)
    assert figure.pictures.shape == (len(figure.names), levels, len(clean), *options["shape"])
    assert 0 <= figure.pictures.min() and figure.pictures.max() <= 1
    page = figure._repr_html_()
    assert page == figure._repr_html_() and len(page) < 100_000
    assert "<b>" not in page and repr(figure).count("\n") == len(figure.names)


def test_errors_are_those_of_the_denoisers():
    figure = viz.denoising(
        {"linear": linear, "zeros": Zeros()}, CLEAN, key=KEY, shape=(6, 8), sigmas=[0.5, 3]
    )
    noise = jax.random.normal(KEY, CLEAN.shape)
    for column, sigma in enumerate((0.5, 3)):
        noisy = CLEAN + sigma * noise
        for row, answer in enumerate((noisy, linear(noisy, sigma), 0 * noisy)):
            error = float(jnp.sqrt(jnp.mean((answer - CLEAN) ** 2)))
            np.testing.assert_allclose(figure.errors[row, column], error, rtol=1e-5)
    np.testing.assert_allclose(figure.clean, (np.asarray(CLEAN).reshape(3, 6, 8) + 1) / 2)


def test_pictures_are_png_of_what_they_show():
    grays = np.arange(35).reshape(5, 7).astype(np.uint8) % 16
    file = page.png(grays)
    assert struct.unpack(">II", file[16:24]) == (7, 5) and file.endswith(b"IEND\xaeB`\x82")
    start = file.index(b"IDAT") + 4
    lines = np.frombuffer(zlib.decompress(file[start:-16]), np.uint8).reshape(5, 5)
    nibbles = np.stack([lines[:, 1:] >> 4, lines[:, 1:] & 15], axis=-1).reshape(5, 8)
    assert (lines[:, 0] == 0).all() and np.array_equal(nibbles[:, :7], grays)
    figure = viz.denoising(linear, CLEAN, key=KEY, shape=(6, 8))
    found = re.search(r'src="data:image/png;base64,([^"]+)"', figure._repr_html_())
    width, height = struct.unpack(">II", base64.b64decode(found[1])[16:24])
    assert (width, height) == (3 * (8 + 2), 3 * (6 + 2))


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        ({"denoisers": 3}, TypeError, "must be a function of noisy images"),
        ({"denoisers": {}}, ValueError, "1 to 5 denoisers, got 0"),
        ({"clean": CLEAN[0]}, ValueError, r"got shape \(48,\)"),
        ({"clean": jnp.ones((9, 48))}, ValueError, "take a few"),
        ({"key": jnp.zeros(2, jnp.uint32)}, TypeError, "must be a typed key"),
        ({"shape": (28, 28)}, ValueError, r"pass shape=\(height, width\)"),
        ({"shape": (200, 4)}, ValueError, "at most 64"),
        ({"decode": lambda x: x[:, :4]}, ValueError, "what does decode return"),
        ({"sigmas": [1.0, 0.5]}, ValueError, "rise from above 0"),
        ({"sigmas": [0.0, 0.5]}, ValueError, "rise from above 0"),
        ({"denoisers": lambda x, sigma: x[0]}, ValueError, "must return images of shape"),
        ({"denoisers": lambda x, sigma: x / 0}, ValueError, "not finite, at sigma = 0.1"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, error, said):
    options = {"denoisers": linear, "clean": CLEAN, "key": KEY, "shape": (6, 8)} | wrong
    with pytest.raises(error, match=said):
        viz.denoising(**options)


def test_in_a_browser(browser):
    figure = viz.denoising(
        {"linear": linear, "zeros": Zeros()}, CLEAN, key=KEY, shape=(6, 8), sigmas=[0.5, 1, 2, 4]
    )
    markup = figure._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-denoising").nth(index) for index in range(2))
    status, image = first.locator(".viz-status"), first.locator("img")
    assert status.inner_text().startswith("sigma = 2; errors: noisy ")
    before = image.get_attribute("src")
    first.locator(".viz-range").fill("0")
    assert status.inner_text().startswith("sigma = 0.5;") and image.get_attribute("src") != before
    shown = first.locator(".viz-denoising-error").all_inner_texts()
    assert shown[:3] == [f"{error:.2f}" for error in figure.errors[:, 0]] and shown[3] == ""
    assert image.get_attribute("alt").startswith("At sigma = 0.5")
    first.locator(".viz-next").click()
    page.keyboard.press("End")
    assert first.locator(".viz-next").is_disabled() and status.inner_text().startswith("sigma = 4;")
    assert second.locator(".viz-status").inner_text().startswith("sigma = 2;")
    assert page.evaluate("document.querySelector('.viz-denoising img').naturalWidth") == 4 * 10
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0 and page.locator("img").first.is_visible()
