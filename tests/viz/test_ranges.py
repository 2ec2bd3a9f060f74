"""``viz.ranges``: the sizes of the numbers of trees of all kinds, what each format makes of them, and the page that shows it."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from mlax_tutorial import nn, optim, viz
from mlax_tutorial.viz import sizes

DRAW = np.random.default_rng(0)
SPREAD = np.exp2(DRAW.uniform(-40, 20, size=2000)).astype(np.float32) * DRAW.choice([-1, 1], size=2000)
MODEL = nn.Series(nn.Linear(8), nn.Bias(), nn.F(jnp.tanh), nn.Linear(1))
X = jnp.asarray(DRAW.normal(size=(16, 4)), jnp.float32)
WEIGHTS, _ = MODEL.init(jax.random.key(0), X)
GRADIENTS = jax.grad(lambda t: jnp.mean(MODEL.fwd(X, t, ())[0] ** 2))(WEIGHTS)

# The tree, and how many of its numbers are finite and not zero, zero, infinite, NaN.
ALL_KINDS = {
    "an array": (jnp.array([1.0, -2.0, 0.0]), (2, 1, 0, 0)),
    "weights": (WEIGHTS, (48 - 8, 8, 0, 0)),
    "gradients": (GRADIENTS, (48, 0, 0, 0)),
    "spread": (SPREAD, (2000, 0, 0, 0)),
    "state of an optimizer": (optim.Adam(0.1).init(WEIGHTS), (0, 96, 0, 0)),
    "bfloat16": (jnp.arange(5, dtype=jnp.bfloat16), (4, 1, 0, 0)),
    "float16": (jnp.array([6e-8, 65504, 1], jnp.float16), (3, 0, 0, 0)),
    "float8": (jnp.ones(3, jnp.float8_e4m3fn), (3, 0, 0, 0)),
    "float64 of NumPy": (np.array([1e-300, 1e300]), (2, 0, 0, 0)),
    "complex": (jnp.array([1 + 2j, 3j]), (3, 1, 0, 0)),
    "integers beside": ({"ids": jnp.arange(9), "x": jnp.ones(2)}, (2, 0, 0, 0)),
    "keys beside": ([jax.random.key(0), jnp.ones(2)], (2, 0, 0, 0)),
    "bools": (jnp.array([True, False]), (0, 0, 0, 0)),
    "infinite and NaN": (jnp.array([jnp.inf, -jnp.inf, jnp.nan, 1.0]), (1, 0, 2, 1)),
    "all zero": (jnp.zeros(7), (0, 7, 0, 0)),
    "all NaN": (jnp.full(3, jnp.nan), (0, 0, 0, 3)),
    "an empty tree": ((), (0, 0, 0, 0)),
    "an empty array": (jnp.zeros((0, 3)), (0, 0, 0, 0)),
    "Python numbers": ([1.5, 2, None, True], (1, 0, 0, 0)),
    "a scalar": (jnp.float32(3), (1, 0, 0, 0)),
    "subnormal": (np.array([1e-45, 1e-40], np.float32), (2, 0, 0, 0)),
    "nested": ({"a": [X, (X,)], "b": {"c": X}}, (192, 0, 0, 0)),
    "a million": (np.full(1_000_000, 0.5, np.float32), (1_000_000, 0, 0, 0)),
    "many axes": (jnp.ones((2, 3, 4, 5)), (120, 0, 0, 0)),
}


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_tree_is_shown(name):
    tree, counts = ALL_KINDS[name]
    figure = viz.ranges(tree, name)
    measured = figure.measured
    assert (measured.numbers, measured.zeros, measured.infinite, measured.nan) == counts
    assert sum(measured.bins.values()) == measured.numbers
    page = figure._repr_html_()
    assert page == viz.ranges(tree, name)._repr_html_() and "NAME" not in page
    bars = re.search(r'viz-ranges-bars">(.*?)</g>', page)[1]
    assert bars.count("<rect") == len(measured.bins)
    assert all(float(x) >= 0 for x in re.findall(r' (?:width|height|x|y)="([-\d.]+)"', page))
    lines = repr(figure).splitlines()
    assert len(lines) == 2 + len(sizes.FORMATS) and max(map(len, lines)) <= 80


@pytest.mark.parametrize("power", [0, 1, 7, 15, 32])
@pytest.mark.parametrize("name", sizes.FORMATS)
def test_counts_are_those_of_a_cast(name, power):
    info = jnp.finfo(name)
    smallest, normal, largest = (float(v) for v in (info.smallest_subnormal, info.smallest_normal, info.max))
    gap = 2.0 ** (np.floor(np.log2(largest)) - info.nmant)
    edges = np.array([smallest / 2, smallest, normal - smallest / 2, normal, largest, largest + gap / 2])
    edges = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)])
    numbers = np.concatenate([edges / 2.0**power, np.abs(SPREAD.astype(np.float64))])
    share = sizes.measure(numbers).shares[name][power]
    dtype = np.float32 if name == "float32" else getattr(ml_dtypes, name, np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        cast = _rounded(numbers * 2.0**power, dtype)
    assert share.zero == np.sum(cast == 0)
    assert share.subnormal == np.sum((cast > 0) & (cast < normal))
    assert share.too_large == np.sum(~np.isfinite(cast))


def _rounded(values, dtype):
    """Rounded once: ml_dtypes goes from float64 by way of float32, so ties are nudged off it by hand."""
    narrow = values.astype(dtype).astype(np.float64)
    if dtype in (np.float32, np.float16):
        return narrow
    single = values.astype(np.float32)
    away = np.where(single > values, -np.inf, np.inf).astype(np.float32)
    nudged = np.nextafter(single, away).astype(dtype).astype(np.float64)
    exact = single.astype(np.float64) == values
    return np.where(exact, narrow, np.where(single.astype(dtype) == nudged.astype(dtype), narrow, nudged))


def test_placeholders_and_tracers_are_refused():
    with pytest.raises(TypeError, match=r"\['w'\] is a jax.ShapeDtypeStruct, which has no values"):
        viz.ranges({"w": jax.ShapeDtypeStruct((2,), jnp.float32)})
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(viz.ranges)(X)


def test_the_page_is_readable_without_scripts_and_escaped():
    page = viz.ranges(SPREAD, "a <b> & c")._repr_html_()
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "a &lt;b&gt; &amp; c: 2,000 from 2<sup>−40</sup> to 2<sup>19</sup>" in body and "<b>" not in body
    assert 'role="group" aria-label="Sizes of a &lt;b&gt; &amp; c: 2,000' in body and "http" not in body
    assert body.count("<tr>") == 1 + len(sizes.FORMATS)


def test_in_a_browser(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    if not Path("/usr/bin/chromium").is_file():
        pytest.skip("no browser at /usr/bin/chromium")
    figure = viz.ranges(jnp.array([1e-9, 1e-6, 0.5]))._repr_html_()
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset=utf-8><title>t</title>{figure * 2}")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((tmp_path / "page.html").as_uri())
        first, second = (page.locator(".viz-ranges").nth(index) for index in range(2))
        row = first.locator("tbody tr").nth(2)  # float16
        bar = first.locator(".viz-ranges-bars rect").first
        assert row.inner_text().split() == ["float16", "33.3%", "33.3%", "none"]
        before = bar.bounding_box()["x"]
        first.locator("input").fill("15")
        assert row.inner_text().split() == ["float16", "none", "33.3%", "none"]
        assert "2 to the power of 15: 32,768." in first.locator(".viz-status").inner_text()
        assert bar.bounding_box()["x"] > before + 50
        first.locator("input").focus()
        page.keyboard.press("End")
        assert row.inner_text().split() == ["float16", "none", "none", "33.3%"]
        assert first.locator(".viz-next").is_disabled()
        assert second.locator(".viz-status").inner_text() == "The numbers as they are."
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and errors == []
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto((tmp_path / "page.html").as_uri())
        assert (
            page.locator("tbody tr:visible").count() == 10 and page.locator(".viz-bar:visible").count() == 0
        )
        browser.close()
