"""``viz.gates``: cells of all kinds, and the figure in a browser."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, viz
from tests.variables import any_variables

X = jax.random.normal(jax.random.key(0), (7, 3))


class Leaky(nn.Cell):
    """No gate, no weights."""

    def init_carry(self, x):
        return jax.lax.full_like(x, 0)

    def step(self, carry, x, trainables):
        carry = carry + 0.5 * (x - carry)
        return carry, carry


class Minimal(nn.Cell):
    """A gate of its own, and a dict for a state."""

    def init(self, key, x):
        return jax.random.normal(key, (x.shape[-1], 2)), ()

    def init_carry(self, x):
        return {"memory": jax.lax.full_like(x, 0, shape=(*x.shape[:-1], 2))}

    def step(self, carry, x, trainables):
        z = jax.nn.sigmoid(x @ trainables)
        memory = z * carry["memory"] + (1 - z) * x[..., :2]
        return {"memory": memory}, memory


class Plain:
    """No class of the package, and jitted."""

    def init_carry(self, x):
        return jnp.zeros((*x.shape[:-1], 4))

    def step(self, carry, x, trainables):
        @jax.jit
        def gated(carry, x):
            a, b = jnp.split(jax.nn.sigmoid(jnp.concatenate([carry, carry]) + x.sum()), 2)
            return a * carry + b

        new = jax.checkpoint(gated)(carry, x)
        return new, new


class Scalar(nn.Cell):
    """A state without features."""

    def init_carry(self, x):
        return jax.lax.full_like(x, 0, shape=x.shape[:-1])

    def step(self, carry, x, trainables):
        carry = carry + jax.nn.sigmoid(x.sum(axis=-1))
        return carry, carry


class Counting(nn.Cell):
    """An integer in the state, and another output than the state."""

    def init_carry(self, x):
        return jnp.int32(0), jax.lax.full_like(x, 0)

    def step(self, carry, x, trainables):
        count, total = carry
        return (count + 1, total + x), (total + x) / (count + 1)


class Exploding(Leaky):
    def step(self, carry, x, trainables):
        carry = 1e20 * carry + x
        return carry, carry


def clipped(x):
    return jnp.clip(x, -1.0, 1.0)


# The cell, the sequence, the options, and the names of what is found.
ALL_KINDS = {
    "LSTM": (nn.LSTMCell(5), X, {}, "f i o h c"),
    "GRU": (nn.GRUCell(5), X, {}, "r z h"),
    "RNN": (nn.RNNCell(5), X, {}, "h"),
    "RNN with another activation": (nn.RNNCell(5, activation=clipped), X, {}, "h"),
    "a layer": (nn.Recurrent(nn.GRUCell(2)), X, {}, "r z h"),
    "from the end": (nn.Recurrent(nn.LSTMCell(2), reverse=True), X, {"labels": "abcdefg"}, "f i o h c"),
    "text": (nn.LSTMCell(5), X, {"labels": "to be\n\t"}, "f i o h c"),
    "words": (nn.LSTMCell(5), X, {"labels": ["a", "longer", "label", "than", "fits", "<b>", "&"]}, "f i o h c"),
    "named gates": (nn.LSTMCell(5), X, {"gates": ["forget", "write", "show & <tell>"]}, "forget write show & <tell> h c"),
    "many features": (nn.LSTMCell(40), X, {}, "f i o h c"),
    "one feature": (nn.LSTMCell(1), X, {}, "f i o h c"),
    "one step": (nn.GRUCell(3), X[:1], {}, "r z h"),
    "many steps": (nn.RNNCell(3), jnp.tile(X, (10, 1))[:64], {}, "h"),
    "bfloat16": (nn.LSTMCell(5), X.astype(jnp.bfloat16), {}, "f i o h c"),
    "NumPy": (nn.LSTMCell(5), np.asarray(X), {}, "f i o h c"),
    "zeros": (nn.LSTMCell(5), jnp.zeros((7, 3)), {}, "f i o h c"),
    "NaN": (nn.GRUCell(5), X.at[3].set(jnp.nan), {}, "r z h"),
    "no gate": (Leaky(), X, {}, "h"),
    "a dict": (Minimal(), X, {}, "gate 1 state['memory']"),
    "no class of ours": (Plain(), X, {}, "gate 1 gate 2 h"),
    "no features": (Scalar(), X, {}, "gate 1 h"),
    "integers": (Counting(), X, {}, "h c"),
    "explodes": (Exploding(), X, {}, "h"),
}  # fmt: skip


def shown(name):
    cell, x, options, _ = ALL_KINDS[name]
    trainables = ()
    inner = cell.cell if isinstance(cell, nn.Recurrent) else cell
    if hasattr(inner, "init"):
        trainables, _ = any_variables(inner, jnp.asarray(x)[0])
    return viz.gates(cell, trainables, x, **options)


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_cell_is_shown(name):
    figure, steps = shown(name), len(ALL_KINDS[name][1])
    assert " ".join(figure.values) == ALL_KINDS[name][-1]
    assert all(len(values) == steps for values in figure.values.values())
    assert figure.influence.shape == (steps, steps) and len(figure.labels) == steps
    page = figure._repr_html_()
    assert page == figure._repr_html_() and len(page) < 150_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<tr>") == 1 + len(figure.values)
    assert body.count('class="viz-gates-label') == steps
    drawn = re.findall(r' (?:d|x|width)="([^"]*)"', body)
    assert not any(re.search("nan|inf", text) for text in drawn)
    assert ("viz-gates-lost" in body) == (name in ("NaN", "explodes"))
    assert "<b>" not in body and "<tell>" not in body
    assert repr(figure).count("\n") == len(figure.values)


def test_gates_and_states_are_those_of_the_formulas():
    figure = shown("LSTM")
    cell = ALL_KINDS["LSTM"][0]
    w, _ = any_variables(cell, X[0])
    h, c = np.zeros(5), np.zeros(5)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    for t, x in enumerate(np.asarray(X)):
        sums = x @ w["input_kernel"] + h @ w["recurrent_kernel"] + w["bias"]
        i, f, g, o = np.split(np.asarray(sums), 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        for name, value in {"i": sigmoid(i), "f": sigmoid(f), "o": sigmoid(o), "h": h, "c": c}.items():
            np.testing.assert_allclose(figure.values[name][t], value, atol=1e-5)


def test_the_influence_is_a_gradient():
    figure, (cell, _, _, _) = shown("RNN"), ALL_KINDS["RNN"]
    trainables, _ = any_variables(cell, X[0])
    layer = nn.Recurrent(cell)

    def size(x, t):
        return jnp.linalg.norm(layer.fwd(x, trainables, ())[0][t])

    for t in (0, 3, 6):
        expected = jnp.linalg.norm(jax.grad(size)(X, t), axis=-1)
        np.testing.assert_allclose(figure.influence[t], expected, atol=1e-5)


def test_what_is_read_from_the_end_is_shown_in_that_order():
    assert "".join(shown("from the end").labels) == "gfedcba"


def test_it_leaves_no_tracer_behind():
    with jax.checking_leaks():
        shown("LSTM")


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        (lambda: viz.gates(nn.LSTMCell, (), X), TypeError, "the class LSTMCell"),
        (lambda: viz.gates(nn.Linear(3), (), X), TypeError, "init_carry and step"),
        (lambda: viz.gates(Leaky(), (), X[None]), ValueError, "one of a batch"),
        (lambda: viz.gates(Leaky(), (), jnp.arange(5)), ValueError, "embed integers first"),
        (lambda: viz.gates(Leaky(), (), jnp.zeros((65, 3))), ValueError, r"show a part, x\[:64\]"),
        (lambda: viz.gates(Leaky(), (), X, labels="abc"), ValueError, "7 steps and 3 labels"),
        (lambda: viz.gates(Leaky(), (), X, gates="f"), ValueError, "has 0 gates"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def test_in_a_browser(browser):
    figure = shown("text")
    markup = figure._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-gates").nth(index) for index in range(2))
    status, marker = first.locator(".viz-status"), first.locator(".viz-gates-marker")
    assert status.inner_text() == "Step 7 of 7: blank"
    first.locator(".viz-range").fill("0")
    assert status.inner_text() == "Step 1 of 7: t"
    assert float(marker.get_attribute("x")) == 74
    f = figure.values["f"]
    cells = first.locator("tbody tr").nth(0).locator("td").all_inner_texts()
    assert cells == [f"{value:.2f}" for value in (f[0].min(), f[0].mean(), f[0].max())]
    first.locator(".viz-next").click()
    page.keyboard.press("ArrowRight")
    assert status.inner_text() == "Step 3 of 7: blank"
    veil = first.locator(".viz-gates-veil")
    assert float(veil.get_attribute("x")) > 300 and float(veil.get_attribute("width")) > 300
    page.keyboard.press("End")
    assert first.locator(".viz-next").is_disabled()
    assert second.locator(".viz-status").inner_text() == "Step 7 of 7: blank"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
    assert page.locator("tbody td").first.inner_text() == f"{f[-1].min():.2f}"
