"""``viz.attention``: weights and models of all kinds, and the figure in a browser."""

import math
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, viz
from tests.variables import any_variables

X = jax.random.normal(jax.random.key(0), (5, 8))


def given(*shape):
    """Weights of that shape."""
    return jax.nn.softmax(jax.random.normal(jax.random.key(1), shape))


def run(model, x=X, **inputs):
    trainables, non_trainables = any_variables(model, x, **inputs)
    return lambda: model.fwd(x, trainables, non_trainables, inference_mode=True, **inputs)[0]


def block(**options):
    return nn.Residual(nn.Series(nn.LayerNorm(), nn.MultiHeadAttention(2, **options)))


def by_hand(allowed=None, divide_later=False):
    def function(x=X):
        logits = x @ x.T / math.sqrt(8)
        if allowed is not None:
            logits = jnp.where(allowed, logits, -jnp.inf)
        weights = jnp.exp(logits - logits.max(axis=-1, keepdims=True))
        return (weights / weights.sum(axis=-1, keepdims=True)) @ x

    return function


def nothing_seen():
    layer = nn.MultiHeadAttention(2)
    trainables, _ = any_variables(layer, X)
    return lambda: layer.fwd(X, trainables, (), mask=jnp.zeros((5, 5), bool).at[0, 1].set(True))[0]


def two_of_jax(x=None):
    x = X.reshape(5, 2, 4)
    y = jax.nn.dot_product_attention(x, x, x, is_causal=True)
    return jax.nn.dot_product_attention(y, x, x)


def with_a_classifier():
    """A softmax at the end is no attention."""
    return jax.nn.softmax(by_hand()() @ jnp.ones((8, 3)))


def in_a_loop():
    def step(x, _):
        return by_hand()(x), None

    return jax.lax.scan(step, X, length=3)[0]


# What is shown, and the number of layers, heads in each, queries and keys.
ALL_KINDS = {
    "a matrix": lambda: (given(4, 6), (1, 1, 4, 6)),
    "heads": lambda: (given(3, 4, 6), (1, 3, 4, 6)),
    "heads in groups": lambda: (given(2, 3, 4, 6), (1, 6, 4, 6)),
    "NumPy's": lambda: (np.array(given(3, 4, 4)), (1, 3, 4, 4)),
    "lists of numbers": lambda: ([[0.5, 0.5], [1.0, 0.0]], (1, 1, 2, 2)),
    "layers in a list": lambda: ([given(2, 4, 4), given(2, 4, 4)], (2, 2, 4, 4)),
    "layers in a dict": lambda: ({"first": given(2, 4, 4), "last": given(2, 4, 4)}, (2, 2, 4, 4)),
    "half precision": lambda: (given(2, 4, 4).astype(jnp.bfloat16), (1, 2, 4, 4)),
    "one key": lambda: (jnp.ones((3, 1)), (1, 1, 3, 1)),
    "one query": lambda: (given(1, 7), (1, 1, 1, 7)),
    "as many as there may be": lambda: (given(64, 64), (1, 1, 64, 64)),
    "zeros": lambda: (jnp.zeros((3, 3)), (1, 1, 3, 3)),
    "NaN": lambda: (jnp.full((3, 3), jnp.nan), (1, 1, 3, 3)),
    "logits, which sum to anything": lambda: (5 * jax.random.normal(jax.random.key(4), (4, 4)), (1, 1, 4, 4)),
    "by hand": lambda: (by_hand(), (1, 1, 5, 5)),
    "by hand, causal": lambda: (by_hand(jnp.tri(5, dtype=bool)), (1, 1, 5, 5)),
    "jitted": lambda: (jax.jit(by_hand()), (1, 1, 5, 5)),
    "recomputed": lambda: (jax.checkpoint(by_hand()), (1, 1, 5, 5)),
    "in a scan": lambda: (in_a_loop, (3, 1, 5, 5)),
    "of JAX, twice": lambda: (two_of_jax, (2, 2, 5, 5)),
    "beside a classifier": lambda: (with_a_classifier, (1, 1, 5, 5)),
    "a layer": lambda: (run(nn.MultiHeadAttention(4)), (1, 4, 5, 5)),
    "a causal layer with rotary positions": lambda: (run(nn.MultiHeadAttention(2, causal=True, rotary_base=100.0)), (1, 2, 5, 5)),
    "shared keys": lambda: (run(nn.MultiHeadAttention(4, kv_heads=2)), (1, 4, 5, 5)),
    "with dropout": lambda: (run(nn.MultiHeadAttention(4, dropout=0.5)), (1, 4, 5, 5)),
    "a batch of one": lambda: (run(nn.MultiHeadAttention(2), X[None]), (1, 2, 5, 5)),
    "in bfloat16": lambda: (run(nn.MultiHeadAttention(2), X.astype(jnp.bfloat16)), (1, 2, 5, 5)),
    "cross attention": lambda: (run(nn.MultiHeadAttention(2), context=jnp.ones((7, 8))), (1, 2, 5, 7)),
    "rows that see nothing": lambda: (nothing_seen(), (1, 2, 5, 5)),
    "two blocks": lambda: (run(nn.Series(block(), block(causal=True))), (2, 2, 5, 5)),
    "a stack": lambda: (run(nn.Stack(block(), depth=3)), (3, 2, 5, 5)),
    "a stack that is recomputed": lambda: (run(nn.Stack(nn.Remat(block()), depth=2)), (2, 2, 5, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_weights_and_any_model_are_shown(name):
    what, (layers, heads, queries, keys) = ALL_KINDS[name]()
    figure = viz.attention(what)
    assert [layer.shape for layer in figure.layers] == [(heads, queries, keys)] * layers
    assert repr(figure).count("\n") == layers * heads
    page = figure._repr_html_()
    assert page == figure._repr_html_() and len(page) < 150_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<button") == 2 + layers * heads and body.count("<li") == keys
    assert not any(
        re.search("nan|inf", text) for text in re.findall(r' (?:d|style|transform)="([^"]*)"', body)
    )
    if callable(what) and name != "rows that see nothing":
        for layer in figure.layers:
            np.testing.assert_allclose(layer.sum(axis=-1), 1, atol=2e-2)


def test_the_weights_are_those_of_the_model():
    expected = by_hand(jnp.tri(5, dtype=bool))
    logits = jnp.where(jnp.tri(5, dtype=bool), X @ X.T / math.sqrt(8), -jnp.inf)
    (weights,) = viz.attention(expected).layers
    np.testing.assert_allclose(weights[0], jax.nn.softmax(logits), atol=1e-5)


def test_the_depths_of_a_stack_are_its_own():
    stack, one = (
        nn.Stack(nn.MultiHeadAttention(2, causal=True), depth=3),
        nn.MultiHeadAttention(2, causal=True),
    )
    trainables, non_trainables = stack.init(jax.random.key(5), X)
    together = viz.attention(lambda x: stack.fwd(x, trainables, non_trainables)[0], X)
    x, apart = X, []
    for depth in range(3):
        own = jax.tree.map(lambda leaf, depth=depth: leaf[depth], trainables)
        apart += viz.attention(lambda x, own=own: one.fwd(x, own, ())[0], x).layers
        x, _ = one.fwd(x, own, ())
    for got, expected in zip(together.layers, apart, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-4)


def test_a_row_that_sees_nothing_is_empty():
    figure = viz.attention(nothing_seen())
    assert figure.layers[0][0, 0].tolist() == [0, 1, 0, 0, 0] and not figure.layers[0][:, 1:].any()
    assert "1 -> nothing" in repr(figure)


def test_arguments_and_names():
    figure = viz.attention(by_hand(), X, tokens="a \n<é")
    assert figure.queries == figure.keys == list("a \n<é")
    page = figure._repr_html_()
    assert "&lt;" in page and "␣" in page and "\\n" in page
    figure = viz.attention(given(2, 3), tokens=jnp.array([7, 8]), keys=["one", "two", "three"])
    assert figure.queries == ["7", "8"] and "three" in figure._repr_html_()


def test_the_doctest_of_the_page():
    assert repr(viz.attention(jnp.array([[1.0, 0.0], [0.25, 0.75]]), tokens="ab")) == (
        "1 layer, 1 head, 2 queries, 2 keys\n  layer 0 head 0: a -> a 1.00, b -> b 0.75"
    )


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        (lambda: viz.attention(jnp.ones(3)), TypeError, "wants a function, or weights"),
        (lambda: viz.attention("text"), TypeError, "wants a function, or weights"),
        (lambda: viz.attention(jnp.ones((3, 3)), X), TypeError, "weights come alone"),
        (lambda: viz.attention(jnp.tanh, X), ValueError, "no attention was found"),
        (lambda: viz.attention(lambda: jax.nn.softmax(X)), ValueError, "no attention was found"),
        (lambda: viz.attention(run(nn.MultiHeadAttention(2, chunk_size=2))), ValueError, "In chunks"),
        (lambda: viz.attention(given(65, 65)), ValueError, "from 1 to 64"),
        (lambda: viz.attention(run(nn.MultiHeadAttention(2), jnp.ones((40, 5, 8)))), ValueError, "without a batch axis"),
        (lambda: viz.attention([given(3, 3), given(3, 4)]), ValueError, "one part of the model at a time"),
        (lambda: viz.attention(given(3, 3), tokens="ab"), ValueError, "tokens must name 3, got 2"),
        (lambda: viz.attention(given(3, 4), tokens="abc", keys="ab"), ValueError, "keys must name 4"),
        (lambda: viz.attention(jnp.ones((0, 3))), ValueError, "from 1 to 64"),
        (lambda: viz.attention(given(3, 3), tune=2.0), TypeError, "masks by name"),
        (lambda: viz.attention(given(3, 3), tune={"causal": jnp.ones(3, bool)}), ValueError, "another name"),
        (lambda: viz.attention(given(3, 3), tune={"padding": jnp.ones(3)}), ValueError, "must be Boolean"),
        (lambda: viz.attention(given(3, 3), tune={"padding": jnp.ones(4, bool)}), ValueError, r"\(3, 3\) or \(3,\), got bool\[4\]"),
        (lambda: viz.attention(2 * given(3, 3), tune={}), ValueError, "sum to 1"),
        (lambda: viz.attention(jnp.full((3, 3), jnp.nan), tune={}), ValueError, "sum to 1"),
        (lambda: viz.attention(given(40, 40), tune={}), ValueError, "fewer tokens"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def test_in_a_browser(browser):
    weights = np.zeros((2, 3, 3), np.float32)
    weights[0] = [[1, 0, 0], [0.25, 0.75, 0], [0.2, 0.3, 0.5]]
    weights[1] = [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    figure = viz.attention(weights, tokens=["one", "two", "three"])
    markup = figure._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-attention").nth(index) for index in range(2))
    status, chips = first.locator(".viz-status"), first.locator(".viz-attention-keys i")
    assert status.inner_text() == "Layer 0, head 0. Query 1 of 2, two: two 75 %, one 25 %"
    first.locator(".viz-next").click()
    assert status.inner_text() == "Layer 0, head 0. Query 2 of 2, three: three 50 %, two 30 %, one 20 %"
    assert chips.all_inner_texts() == ["20", "30", "50"]
    first.locator(".viz-previous").click()
    assert status.inner_text() == "Layer 0, head 0. Query 1 of 2, two: two 75 %, one 25 %"
    heads = first.locator(".viz-attention-heads button")
    before = first.locator(".viz-attention-map").inner_html()
    heads.nth(1).click()
    assert status.inner_text() == "Layer 0, head 1. Query 1 of 2, two: two 100 %"
    assert heads.nth(1).get_attribute("aria-pressed") == "true"
    assert heads.nth(0).get_attribute("aria-pressed") == "false"
    assert first.locator(".viz-attention-map").inner_html() != before
    page.keyboard.press("Home")
    assert status.inner_text() == "Layer 0, head 1. Query 0 of 2, one: looks at nothing"
    row = first.locator(".viz-attention-row")
    assert float(row.get_attribute("y")) == pytest.approx(float(row.get_attribute("data-top")))
    page.keyboard.press("End")
    assert chips.all_inner_texts() == ["100", "", ""] and first.locator(".viz-next").is_disabled()
    assert second.locator(".viz-status").inner_text().startswith("Layer 0, head 0. Query 1")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
    assert page.locator(".viz-attention-map path").first.bounding_box()["width"] > 10
    assert page.locator(".viz-attention-keys i").all_inner_texts()[:3] == ["25", "75", ""]


def test_the_reader_sets_temperature_and_mask(browser):
    """What the page computes is what JAX computes, to 1e-5, and what it shows follows from it."""
    scores = 3 * jax.random.normal(jax.random.key(2), (2, 6, 6))
    own = jnp.arange(6) != 4  # a mask of the model's own
    padding = (jnp.arange(6) >= 2) & (jnp.arange(6) > 0)[:, None]  # and query 0 sees nothing
    figure = viz.attention(jax.nn.softmax(scores, where=own), tokens="abcdef", tune={"padding": padding})
    page = browser.open(figure._repr_html_())
    script = (
        Path(viz.__file__).with_name("figures").joinpath("attention", "script.js").read_text(encoding="utf-8")
    )
    weigh = script[script.index("function weigh") : script.index("// the map")]
    masks = {
        "none": jnp.ones((6, 6), bool),
        "causal": jnp.tri(6, dtype=bool),
        "padding": padding,
    }
    slider, choice = page.get_by_label("temperature"), page.get_by_label("mask")
    status, chips = page.locator(".viz-status"), page.locator(".viz-attention-keys i")
    maps = page.locator(".viz-attention-heads g")
    data = page.evaluate("JSON.parse(document.querySelector('.viz-attention').dataset.figure)")
    assert status.inner_text().startswith("Layer 0, head 0, temperature 1, no mask. Query 3 of 5, d: ")
    for at in (0, 14, 20, 40):
        temperature = data["temperatures"][at]
        for name, mask in masks.items():
            expected = jax.nn.softmax(scores / temperature, where=mask & own)
            expected = np.array(jnp.where((mask & own).any(-1)[:, None], expected, 0))
            found = page.evaluate(
                f"([all, temperature, mask]) => {{ {weigh} return all.map(m => m.map((w, i) => weigh(w, temperature, mask[i]))) }}",
                [figure.layers[0].tolist(), temperature, mask.tolist()],
            )
            np.testing.assert_allclose(np.array(found, float), expected, atol=1e-5)
            slider.fill(str(at))
            choice.select_option(name)
            said = "no mask" if name == "none" else f"mask: {name}"
            for query in (0, 5):
                page.locator(".viz-range").fill(str(query))
                shown = [int(text or 0) for text in chips.all_inner_texts()]
                np.testing.assert_allclose(shown, 100 * expected[0, query], atol=0.51)
                assert status.inner_text().startswith(
                    f"Layer 0, head 0, temperature {temperature:g}, {said}. Query {query}"
                )
            best = "abcdef"[expected[0, 5].argmax()]
            assert f"Query 5 of 5, f: {best} {max(shown)} %" in status.inner_text()
            for head in (0, 1):  # each cell that has a color
                drawn = "".join(path.get_attribute("d") for path in maps.nth(head).locator("path").all())
                assert drawn.count("M") == np.sum(8 * expected[head] > 0.16)
            assert page.locator(".viz-attention-map").inner_html() == maps.nth(0).inner_html()
    page.locator(".viz-range").fill("0")
    assert status.inner_text().endswith("looks at nothing") and slider.get_attribute("aria-valuetext") == "10"
    slider.focus()  # its arrows are its own, not the figure's
    page.keyboard.press("ArrowLeft")
    assert slider.input_value() == "39" and page.locator(".viz-range").input_value() == "0"
    choice.focus()
    page.keyboard.press("ArrowUp")
    assert "mask: causal. Query 0" in status.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(figure._repr_html_(), scripts=False)
    assert page.locator(".viz-tune:visible").count() == 0
    assert page.locator(".viz-attention-map path").first.bounding_box()["width"] > 10


def test_a_tuned_figure_begins_with_the_weights_as_they_are(browser):
    """The script draws at first what the page shows without it, and the largest figure is no larger than 60 kB."""
    figure = viz.attention(given(2, 2, 19, 11), tune={"padding": jnp.ones(11, bool)})
    bare, ready = (browser.open(figure._repr_html_(), scripts=scripts) for scripts in (False, True))
    for part in (".viz-attention-map", ".viz-attention-heads", ".viz-attention-keys"):
        assert bare.locator(part).inner_html() == ready.locator(part).inner_html()
    assert page_of(jnp.full((33, 33), 1 / 33)) < 60_000
    assert page_of(jnp.full((64, 4, 4), 1 / 4)) < 60_000


def page_of(weights):
    return len(viz.attention(weights, tune={})._repr_html_())
