"""What the fences of a source become in the notebook: nothing that Colab or GitHub would show raw."""

import re

import pytest

from tools.notebooks import fences

BOX = """Before.

:::{tip} Takeaway
Two lines
of text.

- and a list
:::

After."""


def test_a_box_is_a_quotation_with_a_bold_title():
    assert fences.to_notebook(BOX, "arrays") == (
        "Before.\n\n> **Takeaway**\n>\n> Two lines\n> of text.\n>\n> - and a list\n\nAfter."
    )


@pytest.mark.parametrize("kind, title", [("note", "Note"), ("tip", "Tip"), ("warning", "Watch out")])
def test_a_box_without_a_title_has_that_of_its_kind(kind, title):
    assert fences.to_notebook(f":::{{{kind}}}\ntext\n:::", "a") == f"> **{title}**\n>\n> text"


def test_the_right_choice_is_marked_in_the_source_alone():
    text = ":::{predict} Arrays\nHow many?\n\n- [ ] one\n- [x] two\n- `[x]`\n:::"
    assert fences.to_notebook(text, "a") == "> **Arrays**\n>\n> How many?\n>\n> - one\n> - two\n> - `[x]`"


def test_a_prediction_asks_and_its_answer_is_folded():
    text = ":::{predict}\nHow many?\n\n- one\n- two\n:::\n\n:::{reveal}\nTwo, since *it is*.\n:::"
    question, answer = fences.to_notebook(text, "a").split("\n\n<details>")
    assert question == "> **Predict**\n>\n> How many?\n>\n> - one\n> - two"
    summary, body = answer.split("</summary>")
    assert "Reveal" in summary and body.strip() == "Two, since *it is*.\n\n</details>"


def test_a_reveal_may_have_a_title():
    assert "<b>The fix</b>" in fences.to_notebook(":::{reveal} The fix\nx\n:::", "a")


def test_a_box_inside_of_a_fence():
    text = "::::{reveal}\nSo:\n\n:::{tip} Takeaway\ninner\n:::\n::::"
    assert "So:\n\n> **Takeaway**\n>\n> inner\n\n</details>" in fences.to_notebook(text, "a")


def test_facts_are_lines_of_a_quotation():
    text = ":::{facts}\nTime: 5 minutes\nNeeds: [Tracing](tracing.ipynb)\n:::"
    assert fences.to_notebook(text, "a") == "> - **Time:** 5 minutes\n> - **Needs:** [Tracing](tracing.ipynb)"


def test_names_leave_nothing():
    assert fences.to_notebook("## Heading\n\n:::{names} jax.jit\n:::\n\nText.", "a") == "## Heading\n\nText."


@pytest.mark.parametrize(
    "written, leads_to",
    [
        ("[trace](glossary.md#trace)", "/book/glossary.html#trace"),
        ("[status](status.md)", "/book/status.html"),
        ("[`at`](reference/layers.md#at)", "/book/reference/layers.html#at"),
        ("[below](#a-heading)", "/book/jit.html#a-heading"),
    ],
)
def test_links_to_what_is_no_notebook_lead_to_the_published_book(written, leads_to):
    text = fences.to_notebook(f"See {written}.", "jit")
    assert re.search(r"\]\(https://[^)]+\)", text)[0].endswith(f"{leads_to})")


@pytest.mark.parametrize(
    "text",
    [
        "[Tracing](tracing.ipynb#here)",
        "[JAX](https://docs.jax.dev/a.md#x)",
        "![a picture](picture.md)",
        "```\n[x](glossary.md#y)\n:::{tip}\n```",
        "x[0](1), `f(x)`",
    ],
)
def test_other_text_is_left_alone(text):
    assert fences.to_notebook(text, "jit") == text


def test_code_inside_of_a_fence_does_not_close_it():
    text = ":::{note}\n```\n:::\n```\nmore\n:::\nafter"
    (box,) = fences.of_kind(text, "note")
    assert "more" in box.text and fences.parts(text)[-1] == "after"


def test_a_fence_that_is_never_closed():
    with pytest.raises(fences.FenceError, match="never closed"):
        fences.to_notebook(":::{tip}\ntext", "a")


def test_a_fence_that_nobody_knows():
    with pytest.raises(fences.FenceError, match="no fence is called 'tipp'.*predict"):
        fences.to_notebook(":::{tipp}\ntext\n:::", "a")


def test_the_title_of_an_aside_ends_as_it_should():
    assert "> *Why?* So." in fences.to_notebook(":::{aside} Why?\nSo.\n:::", "book/jit")
    assert "> *A word.* So." in fences.to_notebook(":::{aside} A word\nSo.\n:::", "book/jit")
