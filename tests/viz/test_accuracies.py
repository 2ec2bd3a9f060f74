"""``viz.accuracies``: lists and arrays, what it claims of them, and the figure in a browser."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import viz

DRAW = np.random.default_rng(0)
# Hard images are hard for both: each image has a probability of its own.
HARD = DRAW.beta(2, 0.4, 2000)
ONE, TWO = DRAW.random((5, 2000)) < HARD - 0.02, DRAW.random((6, 2000)) < HARD
LISTS = {"A": [0.84, 0.86], "B": [0.87, 0.88]}

ALL_KINDS = {
    "lists": (LISTS, {"count": 2000}),
    "arrays of accuracies": ({"A": np.array([0.8, 0.9]), "B": jnp.array([0.85, 0.95])}, {"count": 100}),
    "right answers": ({"A": ONE, "B": TWO}, {}),
    "right answers on the device": ({"A": jnp.asarray(ONE), "B": jnp.asarray(TWO)}, {"count": 2000}),
    "equal ones": ({"A": [0.5, 0.5], "B": [0.5, 0.5]}, {"count": 10}),
    "all right": ({"A": [1.0, 1.0], "B": [1.0, 1.0]}, {"count": 10}),
    "far apart": ({"A": [0.1, 0.1, 0.12], "B": [0.99, 0.98]}, {"count": 60_000}),
    "close": ({"A": [0.9991, 0.9992], "B": [0.9993, 0.9993]}, {"count": 10_000_000}),
    "the worse one last": ({"A": [0.9, 0.91], "B": [0.8, 0.81]}, {"count": 500}),
    "names with tags": ({"<b>A": [0.8, 0.9], "a name that is long & goes on and on": [0.8, 0.9]}, {"count": 500}),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_two_are_shown(name):
    runs, options = ALL_KINDS[name]
    found = viz.accuracies(runs, **options)
    page = found._repr_html_()
    assert page == found._repr_html_() and len(page) < 60_000 and "nan" not in page
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<circle") == 300 and body.count("<tr>") == 4 and "<b>A" not in body
    assert ("viz-accuracies-same" in body) == ("right" in name and "all" not in name)
    assert repr(found).count("\n") == 4


def test_it_predicts_what_comes_out():
    """Two models with probabilities of their own for each image, compared again and again on fresh images with fresh seeds."""
    draw = np.random.default_rng(1)
    hard = draw.beta(2, 0.4, 20_000)
    found = viz.accuracies(
        {"A": draw.random((9, 20_000)) < hard - 0.02, "B": draw.random((9, 20_000)) < hard}
    )
    for seeds in (1, 5):
        for same in (True, False):
            hard = draw.beta(2, 0.4, (2, 1000, 300))
            chosen = hard[0 if same else 1]
            a = draw.binomial(seeds, np.maximum(hard[0] - 0.02, 0)).mean(axis=1)
            b = draw.binomial(seeds, chosen).mean(axis=1)
            ahead = np.mean((a < b) + 0.5 * (a == b))
            assert found.ahead(300, seeds, same) == pytest.approx(ahead, abs=0.05), (seeds, same)
    assert found.spread_of_difference(500, 1) < 0.9 * found.spread_of_difference(500, 1, False)


def test_images_and_seeds_are_different_things():
    found = viz.accuracies(LISTS, count=2000)
    p, s = 0.85, np.std([0.84, 0.86], ddof=1)
    assert found.spread(1000, 4)[0] == pytest.approx(np.sqrt(s**2 / 4 + p * (1 - p) / 1000))
    assert found.spread(10**9, 1)[0] == pytest.approx(s, rel=1e-3)
    assert found.ahead(100, 1) < found.ahead(100, 100) < found.ahead(10**6, 100) <= 1
    assert viz.accuracies({"A": [1.0, 1.0], "B": [1.0, 1.0]}, count=5).ahead(5, 1) == 0.5


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda: viz.accuracies([[0.1, 0.2], [0.1, 0.2]], count=5), "must be a dict of two models"),
        (lambda: viz.accuracies({"A": [0.1, 0.2]}, count=5), "must be a dict of two models"),
        (lambda: viz.accuracies(LISTS), "count must be the number of test images"),
        (lambda: viz.accuracies(LISTS, count=0), "at least 1, got 0"),
        (lambda: viz.accuracies({"A": [0.8], "B": [0.8, 0.9]}, count=5), "at least two seeds"),
        (lambda: viz.accuracies({"A": [80, 81], "B": [0.8, 0.9]}, count=5), "shares, not percent"),
        (lambda: viz.accuracies({"A": ONE, "B": [0.8, 0.9]}), "must be given alike"),
        (lambda: viz.accuracies({"A": ONE, "B": TWO[:, :9]}), "of the same test images, got 2000 and 9"),
        (lambda: viz.accuracies({"A": ONE, "B": 1.0 * TWO}), r"must be booleans.*float64 of shape \(6, 2000\)"),
        (lambda: viz.accuracies({"A": ONE[:1], "B": TWO}), "at least two of each"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        wrong()


def test_in_a_browser(browser):
    found = viz.accuracies({"A": ONE, "B": TWO})
    other = viz.accuracies(LISTS, count=300)
    markup = found._repr_html_() + other._repr_html_()

    def said(images, seeds, same):
        return f"B comes out ahead in {100 * found.ahead(images, seeds, same):.0f} %"

    page = browser.open(markup)
    first, second = (page.locator(".viz-accuracies").nth(index) for index in range(2))
    status, images, seeds = (first.locator(f".viz-{name}") for name in ("status", "accuracies-images", "accuracies-seeds"))  # fmt: skip
    assert status.inner_text().startswith("2,000 images, 1 seed: " + said(2000, 1, True))
    cloud = first.locator(".viz-accuracies-2 circle")
    places = cloud.evaluate_all("dots => dots.map(dot => +dot.getAttribute('cx'))")
    images.fill("0")
    assert status.inner_text().startswith("100 images, 1 seed: " + said(100, 1, True))
    assert images.get_attribute("aria-valuetext") == "100"
    wider = cloud.evaluate_all("dots => dots.map(dot => +dot.getAttribute('cx'))")
    assert np.ptp(wider) > np.ptp(places)
    behind = first.locator(".viz-accuracies-behind").count()
    assert behind == pytest.approx(100 - 100 * found.ahead(100, 1, True), abs=1.5)
    seeds.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert status.inner_text().startswith("100 images, 3 seeds: " + said(100, 3, True))
    first.locator(".viz-accuracies-same").uncheck()
    assert status.inner_text().startswith("100 images, 3 seeds: " + said(100, 3, False))
    assert first.locator(".viz-accuracies-2 circle").count() == 100
    assert second.locator(".viz-status").inner_text().startswith("200 images, 1 seed")
    assert second.locator(".viz-accuracies-same").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
    assert page.locator("tbody td").count() == 18


def test_without_a_trace_of_jax_it_is_numpy():
    """The accuracies of a `vmap` over seeds go in as they are."""
    right = jax.random.bernoulli(jax.random.key(0), 0.8, (3, 50))
    assert viz.accuracies({"A": right, "B": ~right}).count == 50
