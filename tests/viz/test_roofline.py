"""``viz.roofline``: its numbers, and the figure in a browser."""

import re

import pytest

from mlax_tutorial import viz

KERNELS = {"product": (2e9, 12e6, 0.01), "add <x>": (1e6, 12e6, 0.001), "half": (1e6, 12e6, 0.002)}


def test_the_numbers():
    roof = viz.roofline(KERNELS)
    assert roof.rate == pytest.approx(2e11) and roof.bandwidth == pytest.approx(12e9)
    assert roof.ridge == pytest.approx(200 / 12)
    assert [roof.bound(name) for name in KERNELS] == ["arithmetic", "memory", "memory"]
    assert [roof.share(name) for name in KERNELS] == pytest.approx([1, 1, 0.5])


def test_a_roof_from_elsewhere():
    roof = viz.roofline({"half": KERNELS["half"]}, rate=1e12, bandwidth=24e9)
    assert roof.share("half") == pytest.approx(0.25)
    assert repr(roof).splitlines()[1].endswith("25 % of the roof, bound by memory")


@pytest.mark.parametrize("kernels", [KERNELS, {"one": (1, 1, 1)}, {"a": (1, 1e9, 10), "b": (1e15, 1, 1e-3)}])
def test_the_page(kernels):
    roof = viz.roofline(kernels)
    page = roof._repr_html_()
    assert page == viz.roofline(kernels)._repr_html_() and len(page) < 50_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<tr>") == 1 + len(kernels) and body.count("<circle") == len(kernels)
    assert "<x>" not in body and "nan" not in body
    label = re.search(r'aria-label="([^"]*)"', page)[1]
    assert label.startswith(f"{len(kernels)} kernel") and "FLOP/s" in label


def test_what_is_refused():
    with pytest.raises(ValueError, match="1 to 24 kernels, got 0"):
        viz.roofline({})
    for wrong in [(1, 2), (0, 1, 1), (1, 1, float("nan"))]:
        with pytest.raises(ValueError, match="needs .flops, bytes, seconds."):
            viz.roofline({"x": wrong})
    with pytest.raises(ValueError, match="rate and bandwidth"):
        viz.roofline(KERNELS, rate=0)


def test_in_a_browser(browser):
    markup = viz.roofline(KERNELS)._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-roofline").nth(index) for index in range(2))
    status = first.locator(".viz-status")
    assert status.inner_text().startswith("3 kernels. Roof: 200 GFLOP/s")
    first.locator(".viz-next").click()
    assert status.inner_text().startswith("1 of 3: product, 167 FLOPs a byte")
    page.keyboard.press("ArrowRight")
    assert status.inner_text().endswith("100 % of the roof, bound by memory")
    assert first.locator("circle.viz-now").count() == 1 and first.locator("tr.viz-now").count() == 1
    page.keyboard.press("End")
    assert first.locator(".viz-next").is_disabled()
    assert second.locator(".viz-status").inner_text().startswith("3 kernels")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
