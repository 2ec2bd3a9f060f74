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
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def test_in_a_browser(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    if not Path("/usr/bin/chromium").is_file():
        pytest.skip("no browser at /usr/bin/chromium")
    weights = np.zeros((2, 3, 3), np.float32)
    weights[0] = [[1, 0, 0], [0.25, 0.75, 0], [0.2, 0.3, 0.5]]
    weights[1] = [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    figure = viz.attention(weights, tokens=["one", "two", "three"])
    page_text = f"<!doctype html><meta charset=utf-8><title>t</title>{figure._repr_html_() * 2}"
    (tmp_path / "page.html").write_text(page_text)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((tmp_path / "page.html").as_uri())
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
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and errors == []
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto((tmp_path / "page.html").as_uri())
        assert page.locator(".viz-bar:visible").count() == 0
        assert page.locator(".viz-attention-map path").first.bounding_box()["width"] > 10
        assert page.locator(".viz-attention-keys i").all_inner_texts()[:3] == ["25", "75", ""]
        browser.close()
