"""``viz.descent``: functions and optimizers of all kinds, and the figure in a browser."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import optim, viz


def ravine(w):
    return 50 * w[0] ** 2 + 0.5 * w[1] ** 2


def rosenbrock(x, y):
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def python_branch(x, y):
    return x**2 + y**2 if x > 0 else 3 * x**2 + y**2


class Mean:
    """An optimizer that is no pytree, and whose state is Python's."""

    def init(self, weights):
        return 0

    def step(self, gradients, state, weights):
        rate = 0.1 if state < 5 else 0.01
        return -rate * gradients, state + 1

    def __repr__(self):
        return "<Mean & more>"


class Float64State(Mean):
    """The state changes its type from step to step, so no scan can carry it."""

    def init(self, weights):
        return ()

    def step(self, gradients, state, weights):
        return -0.1 * gradients, (*state, gradients)


# The function, the optimizers, the start, and whether each path ends lower (d), as high (s), higher (u) or in what is no number (n).
ALL_KINDS = {
    "a ravine": (ravine, [optim.SGD(0.01), optim.SGD(0.01, momentum=0.9)], (3.0, 3.0), "dd"),
    "two numbers": (rosenbrock, {"Adam": optim.Adam(0.1)}, (-1.0, 1.0), "d"),
    "Optax": (rosenbrock, {"adam": optax.adam(0.1), "lion": optax.lion(0.02)}, (-1.0, 1.0), "dd"),
    "Optax with a schedule": (ravine, [optax.sgd(optax.linear_schedule(0.01, 0.0, 40))], (1.0, 1.0), "d"),
    "Optax that wants weights": (
        ravine,
        {"adamw": optax.adamw(0.1), "lookahead": optax.adagrad(1.0)},
        (1, 2),
        "dd",
    ),
    "one optimizer": (ravine, optim.Lion(0.1), (3.0, 3.0), "d"),
    "one of Optax": (ravine, optax.sgd(0.01), (3.0, 3.0), "d"),
    "wrappers": (
        ravine,
        [optim.Chain(optim.ClipByGlobalNorm(1.0), optim.Adam(0.1)), optim.Accumulate(optim.SGD(0.01), steps=3)],
        (3.0, 3.0),
        "dd",
    ),
    "explodes": (ravine, [optim.SGD(1.0), optim.SGD(0.01)], (1.0, 1.0), "nd"),
    "rises a little": (ravine, [optim.SGD(0.0201)], (1.0, 0.001), "u"),
    "a plateau": (lambda x, y: 0.0 * x + 3.0, [optim.SGD(0.1)], (1.0, 2.0), "s"),
    "negative": (lambda x, y: -jnp.exp(-(x**2) - y**2), [optim.SGD(0.1)], (0.5, 0.5), "d"),
    "without a floor": (lambda x, y: -(x**2) - y, [optim.SGD(0.1)], (0.1, 0.0), "d"),
    "NaN on the way": (lambda x, y: jnp.log(x) + y**2, [optim.SGD(0.3)], (1.0, 1.0), "n"),
    "NaN at the start": (lambda x, y: jnp.log(x) + y**2, [optim.SGD(0.3)], (-1.0, 1.0), "n"),
    "NaN in the window": (lambda x, y: jnp.sqrt(y) + x**2, [optim.SGD(0.01)], (1.0, 0.3), "n"),
    "huge": (lambda x, y: 1e30 * (x**2 + y**2), [optim.Lion(0.1), optim.Adam(0.1)], (1.0, 1.0), "ds"),  # its squares overflow
    "tiny": (lambda x, y: 1e-30 * (x**2 + y**2), [optim.Lion(0.1)], (1.0, 1.0), "d"),
    "far axes": (lambda x, y: (x / 1e6) ** 2 + y**2, [optim.SGD(0.1)], (1e6, 1.0), "d"),
    "large numbers": (lambda x, y: (x - 1e4) ** 2 + y**2, [optim.SGD(0.3)], (0.0, 0.0), "d"),
    "many minima": (lambda x, y: jnp.sin(5 * x) + jnp.sin(5 * y) + x * x, [optim.Adam(0.05)], (1.0, 1.0), "d"),
    "Python decides": (python_branch, [optim.SGD(0.1)], (-1.0, 1.0), "d"),
    "an optimizer in Python": (ravine, [Mean(), Float64State()], (0.01, 1.0), "nn"),
    "no movement": (ravine, [optim.SGD(0.0)], (0.0, 0.0), "s"),
    "at the bottom": (ravine, [optim.SGD(0.01)], (0.0, 0.0), "s"),
    "jitted": (jax.jit(rosenbrock), [optim.SGD(1e-3)], np.array([-1.0, 1.0]), "d"),
    "a kink": (lambda x, y: jnp.abs(x) + jnp.abs(y), [optim.SGD(0.05)], (1.0, 0.52), "d"),
    "many": (rosenbrock, [optim.Adam(rate) for rate in (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3)], (0, 0), "d" * 7),
    "names of HTML": (ravine, {"<b>": optim.SGD(0.01), "a & b": optim.SGD(0.01)}, (1.0, 1.0), "dd"),
    "integers": (lambda x, y: x * x + y * y, [optim.SGD(0.1)], (3, 4), "d"),
}  # fmt: skip


def shown(name, steps=30):
    function, optimizers, start, _ = ALL_KINDS[name]
    return viz.descent(function, optimizers, start, steps=steps)


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_function_and_any_optimizer_is_shown(name):
    figure, ends = shown(name), ALL_KINDS[name][-1]
    found = ""
    for path in figure.paths:
        assert path.points.shape == (31, 2) and path.losses.shape == (31,)
        first, last = path.losses[0], path.losses[-1]
        found += "n" if path.ended is not None else "d" if last < first else "u" if last > first else "s"
    if name != "an optimizer in Python":
        assert found == ends, str(figure)
    (left, right), (low, high) = figure.window
    assert np.isfinite([left, right, low, high]).all() and left < right and low < high
    page = figure._repr_html_()
    assert page == figure._repr_html_()
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<tr>") == 1 + len(figure.paths)
    assert body.count("<polyline") == 2 * len(figure.paths)
    drawn = re.findall(r' (?:points|d|transform)="([^"]*)"', body)
    assert not any(re.search("nan|inf", text) for text in drawn), drawn
    assert len(page) < 100_000
    assert ("viz-descent-level" in body) == (name not in ("a plateau", "NaN at the start"))
    assert repr(figure).count("\n") == len(figure.paths)


def test_a_path_is_that_of_the_optimizer():
    figure = viz.descent(
        ravine, {"a": optim.SGD(0.01, momentum=0.5), "b": optax.sgd(0.01, 0.5)}, (1.0, 2.0), steps=3
    )
    x, v, expected = np.array([1.0, 2.0]), 0.0, []
    for _ in range(4):
        expected.append(x)
        v = 0.5 * v + x * [100.0, 1.0]
        x = x - 0.01 * v
    for path in figure.paths:
        np.testing.assert_allclose(path.points, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(path.losses, [ravine(p) for p in path.points], rtol=1e-4, atol=1e-6)
    assert list(figure.losses) == ["a", "b"]  # fmt: skip


def test_where_an_optimizer_is_lost_is_said():
    figure = shown("explodes")
    lost = figure.paths[0]
    assert lost.ended and np.isfinite(lost.losses[: lost.ended]).all()
    assert f"not finite after {lost.ended} steps" in str(figure)
    page = figure._repr_html_()
    assert "not finite" in page
    (left, right), _ = figure.window
    assert right - left < 10  # what exploded does not set the scale


def test_the_window_holds_the_descent_or_what_is_asked_for():
    (left, right), (low, high) = shown("a ravine").window
    assert left < 0 < 3 < right and low < 0 < 3 < high
    figure = viz.descent(ravine, [optim.SGD(0.01)], (1.0, 1.0), window=((-2, 2), (0, 5)))
    assert figure.window == ((-2.0, 2.0), (0.0, 5.0))


def test_contour_lines_are_where_the_function_says():
    """On a circle around the bottom of x² + y² each line has one radius."""
    figure = viz.descent(lambda x, y: x * x + y * y, [optim.SGD(0.1)], (1.0, 1.0), window=((-2, 2), (-2, 2)))
    page = figure._repr_html_()
    tall = int(re.search(r'class="viz-descent-map"[^>]*height="(\d+)"', page)[1])
    lines = re.findall(r'class="viz-descent-level" d="M([^M"]*)"', page)
    assert len(lines) >= 3
    for line in lines:
        x, y = np.array([point.split() for point in line.split("L")], float).T
        radius = np.hypot((x - 54) / 398 * 4 - 2, 2 - y / tall * 4)
        assert np.ptp(radius) < 0.05


def test_names_come_from_the_optimizers():
    figure = viz.descent(ravine, [optim.SGD(0.01), optim.SGD(0.01), optax.sgd(0.1)], (1.0, 1.0), steps=2)
    names = list(figure.losses)
    assert names[:2] == ["SGD(0.01) 1", "SGD(0.01) 2"] and "0x" not in names[2]
    page = shown("names of HTML")._repr_html_()
    assert "&lt;b&gt;" in page and "<b>" not in re.sub(
        r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL
    )


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        (lambda: viz.descent(lambda w: w, [optim.SGD(0.1)], (1, 2)), TypeError, "must return one number"),
        (lambda: viz.descent(ravine, [], (1, 2)), ValueError, "no optimizer"),
        (lambda: viz.descent(ravine, [0.1], (1, 2)), TypeError, "init and step"),
        (lambda: viz.descent(ravine, [optim.SGD(0.1)], (1, 2, 3)), ValueError, "two finite numbers"),
        (lambda: viz.descent(ravine, [optim.SGD(0.1)], (1, np.nan)), ValueError, "two finite numbers"),
        (lambda: viz.descent(ravine, [optim.SGD(0.1)], (1, 2), steps=0), ValueError, "at least 1"),
        (lambda: viz.descent(ravine, [optim.SGD(0.1)], (1, 2), window=((1, 0), (0, 1))), ValueError, "window"),
        (lambda: viz.descent(ravine, [optim.SGD(0.1)], (1, 2), tune=0.1), ValueError, "a rate above 0 and a momentum"),
        (lambda: viz.descent(ravine, [optim.SGD(0.1)], (1, 2), tune=(0.1, 1.0)), ValueError, "below 1"),
        (lambda: viz.descent(ravine, {"yours": optim.SGD(0.1)}, (1, 2), tune=(0.1, 0.5)), ValueError, "another name"),
        (lambda: viz.descent(rosenbrock, [optim.SGD(0.1)], (1, 2), tune=(0.1, 0.5)), ValueError, "needs a quadratic, whose"),
        (lambda: viz.descent(python_branch, [optim.SGD(0.1)], (1, 2), tune=(0.1, 0.5)), ValueError, "needs a quadratic, whose"),
        (lambda: viz.descent(lambda x, y: -x * x - y * y, [optim.SGD(0.1)], (1, 2), tune=(0.1, 0)), ValueError, "rises somewhere"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def test_in_a_browser(browser):
    optimizers = {"good": optim.SGD(0.01), "bad": optim.SGD(1e30)}
    figure = viz.descent(ravine, optimizers, (1.0, 1.0), steps=4)
    good = [f"{loss:.3g}" for loss in figure.losses["good"]]
    markup = figure._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-descent").nth(index) for index in range(2))
    status, lines = first.locator(".viz-status"), first.locator("polyline")
    assert status.inner_text() == f"Step 4 of 4: good: {good[4]}; bad: not finite"
    assert len(lines.nth(0).get_attribute("points").split()) == 5
    first.locator(".viz-range").fill("0")
    assert status.inner_text() == f"Step 0 of 4: good: {good[0]}; bad: {good[0]}"
    assert len(lines.nth(0).get_attribute("points").split()) == 1
    first.locator(".viz-next").click()
    page.keyboard.press("ArrowRight")
    assert status.inner_text().startswith(f"Step 2 of 4: good: {good[2]}")
    for number in (0, 2):  # in the map and in the curve, the mark stands at the end of the line
        end = lines.nth(number).get_attribute("points").split()[-1]
        mark = first.locator(".viz-descent-panes > div > svg g").nth(number)
        assert mark.get_attribute("transform") == f"translate({end})"
    assert first.locator(".viz-descent-loss").all_inner_texts()[0] == good[2]
    page.keyboard.press("End")
    assert first.locator(".viz-next").is_disabled()
    assert second.locator(".viz-status").inner_text().startswith("Step 4 of 4")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
    assert page.locator("polyline").first.bounding_box()["width"] > 20
    assert page.locator(".viz-descent-loss").first.inner_text() == good[4]


def tilted(x, y):
    """A quadratic whose axes are not those of its weights, with its bottom elsewhere than at 0, and not at 0."""
    return 20 * (x - y) ** 2 + 0.5 * (x + y - 1) ** 2 + 0.25


@pytest.mark.parametrize("function", [ravine, tilted])
def test_sliders_set_the_rate_and_the_momentum(browser, function):
    """What the page computes is what JAX computes, to 1e-5; what it shows, digit by digit."""
    start, steps = (1.0, 2.0), 60

    def jax_says(rate, momentum):
        return viz.descent(function, {"it": optim.SGD(rate, momentum=momentum)}, start, steps=steps).paths[0]

    figure = viz.descent(function, [optim.SGD(0.01)], start, steps=steps, tune=(0.01, 0.5))
    np.testing.assert_array_equal(figure.paths[-1].points, jax_says(0.01, 0.5).points)
    markup = figure._repr_html_()
    assert len(markup) < 60_000
    script = (
        Path(viz.__file__).with_name("figures").joinpath("descent", "script.js").read_text(encoding="utf-8")
    )
    walk = script[script.index("function walk") : script.index("function follow")]
    page = browser.open(markup)
    data = page.evaluate("JSON.parse(document.querySelector('.viz-descent').dataset.figure).tune")
    rate_slider, momentum_slider = (page.get_by_label(name) for name in ("learning rate", "momentum"))
    row, lines = page.locator("tbody tr").last, page.locator(".viz-descent-panes polyline:last-of-type")
    rates = data["rates"]
    assert 0.01 in rates and rates[-1] > 4 / np.linalg.eigvalsh(data["curvature"]).max()
    for rate, momentum in [(rates[5], 0.0), (rates[60], 0.9), (0.01, 0.99), (rates[-1], 0.3)]:
        path = jax_says(rate, momentum)
        found = page.evaluate(
            f"([data, rate, momentum, steps]) => {{ {walk} return walk(data, rate, momentum, steps) }}",
            [data, rate, momentum, steps],
        )
        known = path.ended or steps + 1
        assert len(found) == known
        for step, here in enumerate(found):  # beside what is as large as all so far
            size = np.abs(path.points[: step + 1]).max()
            np.testing.assert_allclose(
                np.array(here["w"], float), path.points[step], rtol=1e-5, atol=1e-5 * size
            )
            most = path.losses[: step + 1].max()
            np.testing.assert_allclose(float(here["loss"]), path.losses[step], rtol=1e-5, atol=1e-5 * most)
        rate_slider.fill(str(rates.index(rate)))
        momentum_slider.fill(str(round(100 * momentum)))
        assert rate_slider.get_attribute("aria-valuetext") == str(rate)
        shown = row.locator(".viz-descent-loss").inner_text()
        expected = f"{path.losses[-1]:.3g}" if path.ended is None else "not finite"
        assert shown == expected or float(shown) == pytest.approx(path.losses[-1], rel=0.02, abs=1e-5)
        assert len(lines.first.get_attribute("points").split()) == known
    momentum_slider.focus()  # its arrows are its own, not the figure's
    before = page.locator(".viz-range").input_value()
    page.keyboard.press("ArrowLeft")
    assert momentum_slider.input_value() == "29" and page.locator(".viz-range").input_value() == before
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
