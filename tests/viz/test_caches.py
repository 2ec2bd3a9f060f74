"""``viz.jit_cache``: the cache of functions of all kinds, and the page that shows it."""

import functools
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mlax_tutorial import viz
from mlax_tutorial.inspection import retracing

X = jnp.ones(3)
SPEC = jax.ShapeDtypeStruct((3,), jnp.float32)


class Model:
    def step(self, x):
        return x - 0.1 * x


def branches(x):
    return x if x > 0 else -x


# The function, the calls, options of jit, and what happens at each call: t traced, c from the cache, e raised.
ALL_KINDS = {
    "shapes": (jnp.sin, (X, 2 * X, jnp.ones(4), X), {}, "tctc"),
    "dtypes": (lambda x: 2 * x, (X, X.astype(jnp.bfloat16), X.astype(int), X), {}, "tttc"),
    "weak numbers": (lambda x: 2 * x, (1.0, 2.0, 1, True, jnp.float32(1)), {}, "tcttt"),
    "two arguments": (lambda x, y: x @ y, ((X, X), (X, 2 * X)), {}, "tc"),
    "by name": (lambda x, y: x + y, ((X, X), {"x": X, "y": X}), {}, "tt"),
    "statics": (lambda x, n: x**n, ((X, 1), (X, 2), (X, 1)), {"static_argnames": "n"}, "ttc"),
    "a static list": (lambda x, n: x, ((X, [1]), (X, (1,))), {"static_argnames": "n"}, "et"),
    "new lambdas": (lambda x, f: f(x), [(X, lambda x: x) for _ in range(3)], {"static_argnums": 1}, "ttt"),
    "trees": (lambda t: jax.tree.map(jnp.sin, t), ({"a": X}, [{"a": X}], [{"b": X}]), {}, "ett"),
    "no arguments": (lambda: 3.0, ((), ()), {}, "tc"),
    "jitted before": (jax.jit(lambda x: x + 1), (X, X), {}, "tc"),
    "a method": (Model().step, (X, 1.0), {}, "tt"),
    "a partial": (functools.partial(jnp.add, 1.0), (X, X), {}, "tc"),
    "grad": (jax.grad(lambda x: jnp.sum(x**2)), (X, jnp.ones(2)), {}, "tt"),
    "vmap": (jax.vmap(jnp.sin), (X, X), {}, "tc"),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x), (X, jnp.ones(5)), {}, "tt"),
    "keys": (jax.random.normal, (jax.random.key(0), jax.random.key(1)), {}, "tc"),
    "custom rule": (jax.nn.relu, (X, 1.0), {}, "tt"),
    "donated": (lambda x: x + 1, (X * 1, X * 2), {"donate_argnums": 0}, "tc"),
    "an error": (branches, (X, 1.0), {}, "ee"),
    "not an array": (lambda x: x, ("text", X), {}, "et"),
    "placeholders": (
        lambda x: x @ x,
        (SPEC, SPEC, jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)),
        {},
        "tct",
    ),
    "NumPy": (lambda x: x + 1, (np.ones(3), np.ones(3, np.float32), [1.0, 2.0]), {}, "tce"),
    "None": (lambda x: x, ((None,), (None,)), {}, "tc"),
    "a name of HTML": (lambda x, how: x < 2, ((X, "<b>"), (X, "&")), {"static_argnames": "how"}, "tt"),
    "one call": (jnp.cos, (X,), {}, "t"),
    "no calls": (lambda x: x, (), {}, ""),
    "many programs": (lambda x: x + 1, [jnp.ones(n) for n in range(1, 20)], {}, "t" * 19),
}


def shown(name):
    function, calls, options, _ = ALL_KINDS[name]
    jax.clear_caches()  # other tests may have traced the functions of JAX among them
    return viz.jit_cache(function, *calls, **options)


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_function_is_shown(name):
    figure = shown(name)
    watched, expected = figure.watched, ALL_KINDS[name][-1]
    letters = "".join("e" if call.error else "t" if call.traced else "c" for call in watched.calls)
    assert letters == expected, str(figure)
    page = figure._repr_html_()
    assert page.count("<tr") == 1 + len(watched.calls)
    assert page.count('<li data-made="') == len(watched.programs) == letters.count("t")
    assert page.count('class="viz-cache-made"><svg') == letters.count("t") + 1  # one in the legend
    assert page.count('class="viz-cache-found"><svg') == letters.count("c") + 1
    assert figure._repr_html_() == page
    assert repr(figure).splitlines()[0].endswith(f"{len(watched.calls)} calls, {watched.traces} traced")


@pytest.mark.parametrize("name", ["shapes", "statics", "new lambdas", "an error", "weak numbers"])
def test_the_page_is_the_same_in_each_run(name):
    pages = []
    for _ in range(2):
        jax.clear_caches()
        pages.append(shown(name)._repr_html_())
    assert pages[0] == pages[1] and " at 0x" not in pages[0]


def test_a_watched_function_goes_on():
    watched = retracing.watch(lambda x: x + 1)
    watched(X)
    figure = viz.jit_cache(watched, jnp.ones(4))
    assert figure.watched is watched and len(watched.calls) == 2
    assert "x: f32[3] → f32[4], another shape" in figure._repr_html_()


def test_columns_live_from_their_trace_on():
    page = viz.jit_cache(lambda x: x + 1, X, jnp.ones(4), X)._repr_html_()
    rows = re.findall(r"<tr data-program.*?</tr>", page)
    kinds = [re.findall(r'<td class="viz-cache-cell ?(\S*?)">', row) for row in rows]
    assert kinds == [["viz-cache-born", ""], ["viz-cache-there", "viz-cache-born"], ["viz-cache-there"] * 2]


def test_another_device_is_a_full_dot_without_a_trace():
    figure = viz.jit_cache(lambda x: x + 1, X, jax.device_put(X, jax.devices()[0]))
    assert figure.watched.traces == 1 and len(figure.watched.programs) == 1
    page = figure._repr_html_()
    assert "Not traced, but compiled anew: x is bound to cpu:0" in page


def test_the_page_is_readable_without_scripts_and_escaped():
    page = shown("a name of HTML")._repr_html_()
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "viz-batching-later" not in body and "http" not in page and "NAME" not in page
    assert "how=&lt;b&gt;" in body and "<b>," not in body
    assert 'role="group" aria-label="The cache of &lt;lambda&gt;, call by call"' in body
    assert "traced: program 1" in body and "found: program" in shown("shapes")._repr_html_()
    assert "Traced and compiled: the first call." in body


def test_in_a_browser(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    if not Path("/usr/bin/chromium").is_file():
        pytest.skip("no browser at /usr/bin/chromium")
    figure = viz.jit_cache(lambda x: x + 1, X, jnp.ones(4), X, "text")._repr_html_()
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset=utf-8><title>t</title>{figure * 2}")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((tmp_path / "page.html").as_uri())
        first, second = (page.locator(".viz-cache").nth(index) for index in range(2))
        status = first.locator(".viz-status")
        rows, programs = first.locator("tbody tr:visible"), first.locator(".viz-cache-entries li")
        uses = programs.nth(0).locator(".viz-cache-uses")
        assert (
            status.inner_text()
            == "Call 1 of 4. Traced and compiled: the first call. Press ▶, and watch for the next filled dot."
        )
        assert first.locator("tbody tr.viz-later").count() == 3 and uses.inner_text() == "1 call"
        first.locator(".viz-next").click()
        assert "f32[3] → f32[4], another shape" in status.inner_text()
        page.keyboard.press("ArrowRight")
        assert "from the cache" in status.inner_text() and uses.inner_text() == "2 calls"
        assert "viz-cache-at" in programs.nth(0).get_attribute("class")
        page.keyboard.press("End")
        assert "It raised TypeError" in status.inner_text() and rows.count() == 4
        assert first.locator(".viz-next").is_disabled()
        first.locator("input").fill("0")
        assert status.inner_text() == "Before the first call the cache is empty."
        assert first.locator("li.viz-later").count() == 2
        assert second.locator(".viz-status").inner_text().startswith("Call 1 of 4")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and errors == []
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto((tmp_path / "page.html").as_uri())
        assert page.locator("tbody tr:visible").count() == 8
        assert page.locator(".viz-bar:visible").count() == 0
        browser.close()


def test_unknown_options_are_refused():
    with pytest.raises(TypeError):
        viz.jit_cache(lambda x: x, X, no_such_option=1)
