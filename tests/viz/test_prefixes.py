"""``viz.prefixes``: classifiers of all kinds, and the figure in a browser."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import viz


def vowels(text):
    share = sum(letter in "aeiou" for letter in text) / len(text)
    return [share, 1 - share]


def lengths(words):
    return np.eye(3)[min(len(words), 3) - 1]


@jax.jit
def uniform(codes):
    return jax.nn.softmax(0.0 * jnp.arange(13.0) + codes.sum())


class Model:
    def __call__(self, text):
        return jnp.array([0.25, 0.75], jnp.bfloat16)


# The classifiers, the text, the options, and the pieces and classes that there are.
ALL_KINDS = {
    "a function": (vowels, "idea", {}, 4, 2),
    "several": ({"one": vowels, "two <b>": Model()}, "idea", {"classes": ["yes", "<i>no"]}, 4, 2),
    "one letter": (vowels, "a", {}, 1, 2),
    "words": (lengths, ["to", "be", "or not", "to <be>"], {}, 4, 3),
    "blanks": (vowels, "to be\n\t", {}, 7, 2),
    "many classes": (lambda text: uniform(jnp.zeros(3)), "Rossi", {}, 5, 13),
    "a long text": (vowels, "e" * 48, {}, 48, 2),
    "one class": (lambda text: [1.0], "abc", {"classes": ["a class with a name that is long"]}, 3, 1),
    "an object": (Model(), "abc", {}, 3, 2),
}


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_classifier_is_shown(name):
    classifiers, text, options, pieces, classes = ALL_KINDS[name]
    figure = viz.prefixes(classifiers, text, **options)
    assert len(figure.pieces) == pieces and len(figure.classes) == classes
    assert all(found.shape == (pieces, classes) for found in figure.probabilities.values())
    page = figure._repr_html_()
    assert page == figure._repr_html_() and len(page) < 100_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<tr>") == 1 + classes
    assert body.count("viz-prefixes-marker") == len(figure.probabilities)
    assert "<b>" not in body and "<i>" not in body and "<be>" not in body
    assert repr(figure).count("\n") >= len(figure.probabilities)


def test_each_row_is_the_answer_to_a_beginning():
    figure = viz.prefixes(vowels, "idea")
    for end, row in enumerate(figure.probabilities["vowels"], start=1):
        np.testing.assert_allclose(row, vowels("idea"[:end]))


def test_beginnings_of_words_are_tuples():
    asked = []

    def noting(words):
        asked.append(words)
        return [1.0]

    viz.prefixes(noting, ["a", "b"])
    assert asked == [("a",), ("a", "b")]


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        (lambda: viz.prefixes(3, "abc"), TypeError, "must be a function from a text"),
        (lambda: viz.prefixes({}, "abc"), ValueError, "no classifier"),
        (lambda: viz.prefixes(vowels, ""), ValueError, "1 to 48 pieces, got 0"),
        (lambda: viz.prefixes(vowels, "a" * 49), ValueError, "show a part"),
        (
            lambda: viz.prefixes(vowels, "abc", classes="xyz"),
            ValueError,
            r"each of 3 classes, got shape \(2,\)",
        ),
        (lambda: viz.prefixes(lambda text: 0.5, "abc"), ValueError, r"1 to 40 numbers, got shape \(\)"),
        (lambda: viz.prefixes(lambda text: [3.0, -1.0], "abc"), ValueError, "are they logits"),
        (lambda: viz.prefixes(lambda text: [np.nan, 1.0], "abc"), ValueError, "must return probabilities"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def test_in_a_browser(browser):
    figure = viz.prefixes({"share": vowels, "fixed": Model()}, "ideas", classes=["vowel", "other"])
    markup = figure._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-prefixes").nth(index) for index in range(2))
    status, markers = first.locator(".viz-status"), first.locator(".viz-prefixes-marker")
    assert status.inner_text() == "5 of 5, ideas: share vowel 60 %, fixed other 75 %"
    first.locator(".viz-range").fill("0")
    assert status.inner_text() == "1 of 5, i: share vowel 100 %, fixed other 75 %"
    assert [float(markers.nth(index).get_attribute("x")) for index in range(2)] == [96, 96]
    cells = first.locator("tbody tr").nth(0).locator("td").all_inner_texts()
    assert [cell.strip() for cell in cells] == ["100 %", "25 %"]
    first.locator(".viz-next").click()
    page.keyboard.press("ArrowRight")
    assert status.inner_text().startswith("3 of 5, ide")
    page.keyboard.press("End")
    assert first.locator(".viz-next").is_disabled()
    assert second.locator(".viz-status").inner_text().startswith("5 of 5")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
    assert page.locator("tbody td").first.inner_text().strip() == "60 %"
