"""``viz.next_token``: models of all kinds, and the figure in a browser."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import viz


def alternate(text):
    return [0.9, 0.1] if text[-1] == "b" else [0.2, 0.8]


def four(text):
    return jnp.array([0.4, 0.3, 0.2, 0.1], jnp.bfloat16)


@jax.jit
def uniform(_):
    return jnp.full(95, 1 / 95)


# The models, the text, the tokens, and how many rows the table has (10 tokens at most, and the others).
ALL_KINDS = {
    "a function": (alternate, "abab", "ab", 3),
    "several": ({"one": four, "two <b>": four}, "a", ["a", " <i>", "\n", "d"], 5),
    "pieces of words": (lambda words: [1.0] if words == ("to ",) else [1.0], ["to ", "be"], ["<b>"], 2),
    "95 characters": (lambda text: uniform(0), "a long text " * 4, [chr(i) for i in range(32, 127)], 11),
}


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_model_is_shown(name):
    models, text, tokens, rows = ALL_KINDS[name]
    figure = viz.next_token(models, text, tokens=tokens)
    assert all(each.shape == (len(text), len(tokens)) for each in figure.probabilities.values())
    page = figure._repr_html_()
    assert page == figure._repr_html_() and len(page) < 100_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<tr>") == 1 + rows and "<b>" not in body and "<i>" not in body
    assert repr(figure).count("\n") == len(text) - 1


def test_each_row_is_the_answer_to_a_beginning():
    figure = viz.next_token(alternate, "ab", tokens="ab")
    np.testing.assert_allclose(figure.probabilities["alternate"], [alternate("a"), alternate("ab")])


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        (lambda: viz.next_token(3, "a", tokens="ab"), TypeError, "must be a function from a text"),
        (lambda: viz.next_token({}, "a", tokens="ab"), ValueError, "no model"),
        (lambda: viz.next_token(alternate, "", tokens="ab"), ValueError, "1 to 48 pieces, got 0"),
        (lambda: viz.next_token(alternate, "a" * 49, tokens="ab"), ValueError, "show a part"),
        (lambda: viz.next_token(alternate, "a", tokens=""), ValueError, "1 to 512, got 0"),
        (lambda: viz.next_token(alternate, "a", tokens="abc"), ValueError, "each of 3 tokens"),
        (lambda: viz.next_token(lambda text: [3.0, -1.0], "a", tokens="ab"), ValueError, "are they logits"),
        (
            lambda: viz.next_token(lambda text: [np.nan, 1.0], "a", tokens="ab"),
            ValueError,
            "must return prob",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def test_in_a_browser(browser):
    figure = viz.next_token({"fixed": four, "other": four}, "ab", tokens=["a", " ", "\n", "d"])
    markup = figure._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-next-token").nth(index) for index in range(2))
    status = first.locator(".viz-status")

    def column():
        return [row.locator("td").first.inner_text().strip() for row in first.locator("tbody tr").all()]

    assert status.inner_text() == "2 of 2, after ab: fixed draws from 4 tokens, other draws from 4 tokens"
    assert column() == ["40 %", "30 %", "20 %", "10 %", "0 %"]
    first.locator(".viz-next-token-k").fill("1")  # the two most probable
    assert column() == ["57 %", "43 %", "0 %", "0 %", "0 %"]
    first.locator(".viz-next-token-k").fill("3")
    first.locator(".viz-next-token-p").fill("5")  # 0.6: 0.4 is too few
    assert column() == ["57 %", "43 %", "0 %", "0 %", "0 %"]
    assert "draws from 2 tokens" in status.inner_text()
    first.locator(".viz-next-token-p").fill("10")
    first.locator(".viz-next-token-temperature").fill("4")  # 0.5: squares
    assert column() == ["53 %", "30 %", "13 %", "3 %", "0 %"]
    first.locator(".viz-next-token-temperature").focus()
    page.keyboard.press("ArrowRight")  # moves that slider, and no step
    assert status.inner_text().startswith("2 of 2")
    first.locator(".viz-previous").click()
    assert status.inner_text().startswith("1 of 2, after a:")
    assert second.locator(".viz-status").inner_text().startswith("2 of 2")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible, .viz-next-token-sliders:visible").count() == 0
    assert page.locator("tbody td").first.inner_text().strip() == "40 %"
