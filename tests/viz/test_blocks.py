"""``viz.blocks``: residual networks of all kinds, without their blocks; and the figure in a browser."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, precision, viz

relu = nn.F(jax.nn.relu)


class Own(nn.Composite):
    """A block of the reader's own, which keeps the shape."""

    def children(self):
        return {"dense": nn.Linear(6)}

    def forward(self, call, x):
        return x + jnp.sin(call.dense(x))


def residual(features, shortcut=False):
    return nn.Residual(nn.Series(nn.Linear(features), relu), nn.Linear(features) if shortcut else None)


# Models of vectors of six numbers, and how many blocks they have.
ALL_KINDS = {
    "one block": (nn.Series(residual(6), nn.Linear(3)), 1),
    "with a shortcut": (nn.Series(nn.Linear(5), residual(4, True), residual(4), nn.Linear(3)), 2),
    "nested": (nn.Series(nn.Series(residual(6), relu), nn.Series(nn.Series(residual(6)), relu), nn.Linear(3)), 2),
    "with names": (nn.Series(first=residual(6), norm=nn.BatchNorm(affine=True), second=residual(6), head=nn.Linear(3)), 2),
    "a block of one's own": (nn.Series(Own(), Own(), residual(6), nn.Linear(3)), 3),
    "without weights": (nn.Series(nn.Residual(nn.F(jnp.sin)), nn.Residual(nn.F(jnp.cos))), 2),
    "with dropout": (nn.Series(nn.Dropout(0.5), residual(6), nn.Linear(3)), 1),
    "in half precision": (nn.Series(precision.Policy("bfloat16").apply(nn.Linear(6)), residual(6), nn.Linear(3)), 1),
    "eight blocks": (nn.Series(*[residual(6) for _ in range(8)], nn.Linear(3)), 8),
}  # fmt: skip


def examples(count=40, classes=3):
    x = jax.random.normal(jax.random.key(0), (count, 6))
    return x, np.arange(count) % classes


def shown(name, **options):
    model, _ = ALL_KINDS[name]
    x, labels = examples()
    return viz.blocks(model, *model.init(jax.random.key(1), x), x, labels, **options)


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_residual_network_is_shown(name):
    model, count = ALL_KINDS[name]
    figure = shown(name)
    assert len(figure.names) == count and figure.right.shape == (2**count, 3)
    assert (figure.right >= 0).all() and (figure.right <= figure.sizes).all() and figure.sizes.sum() == 40
    page = figure._repr_html_()
    assert page == figure._repr_html_() and len(page) < 60_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("viz-blocks-switch") == count == body.count('class="viz-blocks-branch"')
    assert body.count("<tr>") == 2 + 1 + count + 3
    assert repr(figure).count("\n") == count


def test_each_combination_is_what_the_model_without_these_blocks_gives():
    model, _ = ALL_KINDS["with a shortcut"]
    x, labels = examples(300)  # more than are computed at once, and not a multiple
    trainables, rest = model.init(jax.random.key(1), x)
    figure = viz.blocks(model, trainables, rest, x, labels)
    assert figure.names == ["[1]", "[2]"] and figure.shapes == [((5,), (4,)), ((4,), (4,))]
    shortcut, kernel = model[1].shortcut, trainables[1]["shortcut"]
    for dropped, layers, weights in [
        ((), model.layers, trainables),
        ((1,), model.layers[:2] + model.layers[3:], trainables[:2] + trainables[3:]),
        ((0,), (model[0], shortcut, *model.layers[2:]), (trainables[0], kernel, *trainables[2:])),
        ((0, 1), (model[0], shortcut, model[3]), (trainables[0], kernel, trainables[3])),
    ]:
        other = nn.Series(*layers)
        logits, _ = other.fwd(x, weights, ())
        assert figure.accuracy(*dropped) == pytest.approx(
            float(np.mean(np.argmax(logits, -1) == labels)), abs=1e-6
        )


def test_batch_norm_uses_its_averages():
    model = nn.Series(nn.BatchNorm(), residual(6), nn.Linear(3))
    x, labels = examples()
    trainables, _ = model.init(jax.random.key(1), x)
    rest = ({"mean": jnp.full(6, 3.0), "variance": jnp.full(6, 2.0)}, (), ())
    wanted, _ = model.fwd(x, trainables, rest, inference_mode=True)
    found = viz.blocks(model, trainables, rest, x, labels)
    assert found.accuracy() == pytest.approx(float(np.mean(np.argmax(wanted, -1) == labels)))


def test_classes_have_their_names():
    page = shown("one block", classes=["<b>", "a & b", "c"])._repr_html_()
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "&lt;b&gt;" in body and "a &amp; b" in body and '<th scope="row"><b>' not in body


@pytest.mark.parametrize(
    "model, labels, said",
    [
        (nn.Linear(3), [0] * 40, "must be an nn.Series"),
        (nn.Series(nn.Linear(3)), [0] * 40, "found none"),
        (nn.Series(*[residual(6)] * 9, nn.Linear(3)), [0] * 40, "found 9"),
        (nn.Series(residual(6), nn.Linear(3)), [0] * 39, "one label for each"),
        (nn.Series(residual(6), nn.Linear(3)), [3] * 40, "for 3 logits"),
        (nn.Series(residual(6), nn.Linear(3)), [-1] * 40, "labels must be from 0"),
    ],
)
def test_what_makes_no_sense_is_refused(model, labels, said):
    x, _ = examples()
    with pytest.raises(ValueError, match=said):
        viz.blocks(model, *model.init(jax.random.key(1), x), x, labels)


def test_in_a_browser(browser):
    figure = shown("a block of one's own")
    says = lambda *dropped: f"{100 * figure.accuracy(*dropped):.1f} %"  # noqa: E731
    markup = figure._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-blocks").nth(index) for index in range(2))
    status, switches = first.locator(".viz-status"), first.locator(".viz-blocks-switch")
    assert status.inner_text() == f"With all blocks {says()} are right."
    first.locator(".viz-next").click()
    assert status.inner_text() == f"Without block 1: {says(0)} right; with all blocks {says()}."
    assert switches.nth(0).get_attribute("aria-pressed") == "false"
    switches.nth(2).click()  # one more
    assert status.inner_text().startswith(f"Without blocks 1 and 3: {says(0, 2)} right")
    assert first.locator(".viz-blocks-branch.viz-blocks-off").count() == 2
    classes = first.locator(".viz-blocks-classes .viz-blocks-share span").all_inner_texts()
    shares = figure.right[0b101] / figure.sizes
    assert classes == [f"{100 * share:.1f} %" for share in shares]
    switches.nth(0).click()  # on again
    assert status.inner_text().startswith(f"Without block 3: {says(2)} right")
    page.keyboard.press("ArrowRight")  # on from the first
    assert status.inner_text().startswith(f"Without block 2: {says(1)} right")
    page.keyboard.press("Home")
    assert status.inner_text() == f"With all blocks {says()} are right."
    assert second.locator(".viz-status").inner_text() == f"With all blocks {says()} are right."
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
    rows = page.locator(".viz-blocks-alone").first.locator("tbody tr")
    assert rows.count() == 4 and says(1) in rows.nth(2).inner_text()
