"""``viz.ranges``: the sizes of the numbers of trees of all kinds, what each format makes of them, and the page that shows it."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from mlax_tutorial import nn, optim, viz
from mlax_tutorial.viz.figures import ranges

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
    assert len(lines) == 2 + len(ranges.FORMATS) and max(map(len, lines)) <= 80


@pytest.mark.parametrize("power", [0, 1, 7, 15, 32])
@pytest.mark.parametrize("name", ranges.FORMATS)
def test_counts_are_those_of_a_cast(name, power):
    info = jnp.finfo(name)
    smallest, normal, largest = (float(v) for v in (info.smallest_subnormal, info.smallest_normal, info.max))
    gap = 2.0 ** (np.floor(np.log2(largest)) - info.nmant)
    edges = np.array([smallest / 2, smallest, normal - smallest / 2, normal, largest, largest + gap / 2])
    edges = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)])
    numbers = np.concatenate([edges / 2.0**power, np.abs(SPREAD.astype(np.float64))])
    share = ranges.measure(numbers).shares[name][power]
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
    assert body.count("<tr>") == 1 + len(ranges.FORMATS)


def test_in_a_browser(browser):
    figure = viz.ranges(jnp.array([1e-9, 1e-6, 0.5]))._repr_html_()
    markup = figure * 2
    page = browser.open(markup)
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
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator("tbody tr:visible").count() == 10 and page.locator(".viz-bar:visible").count() == 0


@pytest.mark.parametrize("wrong", [5, (5,), (1, 2), (9, 2), (5, 0), (5, 24), (5.0, 2), ("5", 2), "float16"])
def test_bits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="exponent bits from 2 to 8 and fraction bits from 1 to 23, such as"):
        viz.ranges(X, tune=wrong)


# Exponent and fraction bits, and the format that has them.
BITS = {
    (8, 23): np.float32,
    (8, 7): ml_dtypes.bfloat16,
    (5, 10): np.float16,
    (5, 2): ml_dtypes.float8_e5m2,
    (4, 3): ml_dtypes.float8_e4m3,
    (3, 4): ml_dtypes.float8_e3m4,
}


def edges(bits):
    """Numbers around those at which rounding changes, and some that lie anywhere."""
    form = ranges.Format.of_bits(*bits)
    gap = 2.0 ** (np.floor(np.log2(form.largest)) - form.fraction)
    steps = 1 + np.arange(9) / 2.0 ** (form.fraction + 1)
    places = [
        form.smallest / 2,
        1.5 * form.smallest,
        form.normal - form.smallest / 2,
        form.normal,
        form.largest,
    ]
    places = np.concatenate([places, [form.largest + gap / 2, form.largest - gap / 2], steps, 5 * steps])
    return np.concatenate([places, np.nextafter(places, 0), np.nextafter(places, np.inf), np.abs(SPREAD)])


def test_the_page_rounds_as_the_formats_do(browser):
    page = browser.open(viz.ranges(X, tune=(5, 2))._repr_html_())
    script = Path(ranges.__file__).with_name("script.js").read_text(encoding="utf-8")
    functions = script[script.index("function rounded") : script.index("function percent")]

    def on_the_page(name, *arguments):
        return page.evaluate(f"arguments => {{ {functions} return {name}(...arguments) }}", list(arguments))

    def in_a_row(values, exponent, fraction):
        call = "arguments[0].map(x => rounded(x, arguments[1], arguments[2]))"
        found = page.evaluate(
            f"arguments => {{ {functions} return {call} }}", [values.tolist(), exponent, fraction]
        )
        return np.array(found, float)

    for bits, dtype in BITS.items():
        values = edges(bits)
        with np.errstate(over="ignore"):
            cast = _rounded(values, dtype)
        np.testing.assert_array_equal(in_a_row(values, *bits), cast, err_msg=str(bits))
        share = ranges._tuned(values, bits).share
        found = on_the_page("counts", values.tolist(), 1, *bits)
        assert (found["zero"], found["subnormal"], found["large"]) == (
            share.zero, share.subnormal, share.too_large
        )  # fmt: skip
        assert found["exact"] == np.sum(cast == values)
    for bits in [
        (8, 10),
        (6, 9),
        (5, 1),
        (7, 16),
    ]:  # no format of JAX's, but an operation: it flushes subnormals
        form, values = ranges.Format.of_bits(*bits), edges(bits).astype(np.float32)
        values = values[(values >= form.normal) & (values > 0)]
        expected = jax.lax.reduce_precision(values, *bits)
        np.testing.assert_array_equal(in_a_row(values.astype(np.float64), *bits), expected, err_msg=str(bits))


def test_a_format_is_chosen_on_the_page(browser):
    numbers = jnp.array([1e-9, 1e-6, 0.5, 3000.0])
    figure = viz.ranges(numbers, tune=(5, 2))
    assert repr(figure).splitlines()[-1].split() == ["yours,", "5", "+", "2", "50.0%", "none", "none"]
    markup = figure._repr_html_()
    page = browser.open(markup * 2)
    first, second = (page.locator(".viz-ranges").nth(index) for index in range(2))
    row, said, formats = (first.locator(s) for s in (".viz-ranges-own", ".viz-ranges-said", "select"))
    exponent, fraction = (first.get_by_label(name) for name in ("exponent bits", "fraction bits"))
    assert row.inner_text().split() == ["yours", "50.0%", "none", "none"]
    assert formats.input_value() == "float8_e5m2" and "8 in all, as float8_e5m2 has" in said.inner_text()
    bands = first.locator(".viz-ranges-band")
    for name in ("float32", "bfloat16", "float16"):  # as the rows of the same formats
        formats.select_option(name)
        for power in ("0", "9"):
            first.locator(".viz-range").fill(power)
            twin = first.locator("tbody tr").filter(has=page.get_by_text(name, exact=True)).first
            assert row.inner_text().split()[1:] == twin.inner_text().split()[1:]
        at = ["float32", "bfloat16", "float16"].index(name)
        ours, theirs = bands.last.bounding_box(), bands.nth(at).bounding_box()
        assert [ours[k] for k in ("x", "width")] == pytest.approx(
            [theirs[k] for k in ("x", "width")], abs=0.2
        )
    first.locator(".viz-range").fill("0")
    exponent.fill("4")
    assert (
        formats.input_value() == "bits of your own"
        and "4 exponent bits and 10 fraction bits" in said.inner_text()
    )
    assert row.inner_text().split() == ["yours", "50.0%", "none", "25.0%"]
    assert "kept exactly: 25.0%" in said.inner_text() and "1 part in 2,048" in said.inner_text()
    fraction.focus()  # its arrows are its own
    page.keyboard.press("ArrowLeft")
    assert fraction.input_value() == "9" and first.locator(".viz-range").input_value() == "0"
    formats.focus()
    page.keyboard.press("End")
    assert formats.input_value() == "float8_e3m4" and exponent.input_value() == "3"
    assert second.locator("select").input_value() == "float8_e5m2"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-tune:visible").count() == page.locator(".viz-ranges-said:visible").count() == 0
    assert page.locator(".viz-ranges-own").inner_text().split() == ["yours", "50.0%", "none", "none"]


def test_of_very_many_numbers_the_page_keeps_some(browser):
    many = np.exp2(DRAW.uniform(-40, 20, size=300_000))
    for numbers, kept in ((many, 2000), (many.astype(np.float32), 4000)):
        figure = viz.ranges(numbers, tune=(5, 10))
        assert len(figure.tuned.kept) == kept and figure.tuned.kept.itemsize * kept == ranges.KEPT
        markup = figure._repr_html_()
        assert len(markup) < 60_000 and f"rounds {kept:,} of the numbers" in markup
        shares = [figure.tuned.share.zero / len(numbers), figure.tuned.kept_share.zero / kept]
        assert shares[0] == pytest.approx(shares[1], abs=1 / kept)
        row = browser.open(markup).locator(".viz-ranges-own").inner_text()
        assert float(row.split()[1].strip("%")) == pytest.approx(100 * shares[0], abs=0.1)


@pytest.mark.parametrize("tree", [(), jnp.zeros(3), np.array([1e-300, 1e300])])
def test_few_numbers_and_odd_ones_are_rounded_too(browser, tree):
    page = browser.open(viz.ranges(tree, tune=(8, 23))._repr_html_())
    found, at = page.locator(".viz-ranges-own").inner_text(), page.locator("tbody tr").first.inner_text()
    assert found.split()[1:] == at.split()[1:] and browser.errors == []


def test_letters_can_be_read_on_a_telephone(browser):
    page = browser.open(viz.ranges(X, tune=(5, 2))._repr_html_())
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('.viz-ranges-drawing :is(text,tspan)')].map(letters => "
        "parseFloat(getComputedStyle(letters).fontSize) * letters.ownerSVGElement.getScreenCTM().a))"
    )
    assert smallest >= 9
