"""``viz.exchange``: programs of all kinds, and the figure in a browser."""

import re

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import viz
from mlax_tutorial.inspection.collectives import Collective
from mlax_tutorial.viz.figures.exchange import Exchange

MESH = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
X = jnp.arange(8.0)
ALL = (tuple(range(8)),)


def both(x):
    return jax.lax.psum(jax.lax.ppermute(x, "data", [(0, 1)]), "data")


MAPPED = jax.shard_map(both, mesh=MESH, in_specs=P("data"), out_specs=P())


def pipeline():
    """Of eight devices: an all-reduce in two groups, a permutation that runs 11 times, an all-to-all."""
    pairs = tuple((i, i + 1) for i in range(7))
    return Exchange(
        8,
        [
            Collective("all-reduce", ("f32[256]",), 1024, 1, ((0, 1, 2, 3), (4, 5, 6, 7))),
            Collective("collective-permute", ("f32[100]",), 400, 11, pairs),
            Collective("all-to-all", ("f32[8]", "f32[8]", "f32[8]"), 96, 1, ALL),
        ],
    )


def test_a_program_of_the_reader():
    for function in (MAPPED, jax.jit(MAPPED), jax.jit(MAPPED).lower(X).compile()):
        figure = viz.exchange(*((function,) if hasattr(function, "as_text") else (function, X)))
        assert [step.kind for step in figure.steps] == ["collective-permute", "all-reduce"]
        assert figure.links == [{(0, 1): 16}, {(0, 1): 16, (1, 0): 16}]
        assert figure.total == {(0, 1): 32, (1, 0): 16}


def test_what_xla_divides():
    x = jax.device_put(X, NamedSharding(MESH, P("data")))
    assert repr(viz.exchange(jnp.sum, x)).startswith("2 devices, 1 exchange\n  1 all-reduce")


def test_bytes_on_each_link():
    reduced, passed, traded = pipeline().links
    assert reduced[0, 1] == reduced[3, 0] == 2 * 3 / 4 * 1024 and (3, 4) not in reduced and len(reduced) == 8
    assert passed == dict.fromkeys([(i, i + 1) for i in range(7)], 4400)
    assert len(traded) == 56 and set(traded.values()) == {12}


@pytest.mark.parametrize("figure", [pipeline(), viz.exchange(MAPPED, X), viz.exchange(jnp.sin, X)])
def test_the_page(figure):
    page = figure._repr_html_()
    assert page == figure._repr_html_() and len(page) < 100_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<tr>") == 1 + max(1, len(figure.steps))
    assert body.count("<circle") == figure.devices and body.count("viz-exchange-link") == len(figure.total)


def test_what_is_too_large_is_refused(monkeypatch):
    many = [Collective("all-reduce", ("f32[]",), 4, 1, ((0, 1),))] * 61
    monkeypatch.setattr("mlax_tutorial.inspection.collectives.find", lambda *_: many)
    with pytest.raises(ValueError, match="up to 60 exchanges, got 61"):
        viz.exchange(jnp.sum, X)
    wide = [Collective("all-reduce", ("f32[]",), 4, 1, (tuple(range(32)),))]
    monkeypatch.setattr("mlax_tutorial.inspection.collectives.find", lambda *_: wide)
    with pytest.raises(ValueError, match="up to 16 devices, got 32"):
        viz.exchange(jnp.sum, X)


def test_in_a_browser(browser):
    figure = pipeline()
    markup = figure._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-exchange").nth(index) for index in range(2))
    status, shown = (
        first.locator(".viz-status"),
        first.locator(".viz-exchange-link:not(.viz-exchange-off)"),
    )
    assert status.inner_text().startswith("All together: 13 exchanges among 8 devices")
    assert shown.count() == 56
    first.locator(".viz-next").click()
    assert status.inner_text() == "1 of 3: all-reduce among 2 groups of 4, 1.54 kB on each link"
    assert shown.count() == 8
    page.keyboard.press("ArrowRight")
    assert status.inner_text() == "2 of 3: collective-permute, 11 × among 7 pairs, 4.4 kB on each link"
    assert shown.count() == 7 and first.locator("tr.viz-now").count() == 1
    page.keyboard.press("End")
    assert first.locator(".viz-next").is_disabled()
    assert second.locator(".viz-status").inner_text().startswith("All together")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
