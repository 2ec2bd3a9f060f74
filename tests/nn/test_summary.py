"""The model summary, in a terminal and in a notebook."""

import html.parser

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial import nn

MODEL = nn.Series(nn.Flatten(2), nn.Linear(512), nn.Bias(), nn.F(jax.nn.relu), nn.Linear(10), nn.Bias())
X = jax.ShapeDtypeStruct((1, 28, 28), jnp.float32)


class Counter(nn.Layer):
    def init(self, key, x):
        return (), {"<steps>": jnp.zeros((), jnp.int32)}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x, non_trainables


def test_rows_and_totals():
    summary = nn.summary(MODEL, X)
    assert [row.path for row in summary.rows] == [
        "[1]['kernel']",
        "[2]['bias']",
        "[4]['kernel']",
        "[5]['bias']",
    ]
    assert summary.rows[0] == ("[1]['kernel']", "trainable", (784, 512), "float32", 401408, 1605632)
    assert summary.parameters == 784 * 512 + 512 + 5120 + 10
    assert summary.bytes == 4 * summary.parameters


def test_terminal_columns_line_up():
    lines = repr(nn.summary(MODEL, X)).splitlines()
    assert len(lines) == 8 and lines[0].split() == ["path", "role", "shape", "dtype", "parameters", "bytes"]
    assert len({len(line) for line in lines}) == 1
    assert lines[-1].split() == ["total", "407,050", "1,628,200"]


def test_non_trainables_and_half_precision_count():
    summary = nn.summary(nn.Series(nn.Linear(2), Counter()), jax.ShapeDtypeStruct((4,), jnp.bfloat16))
    assert [(row.role, row.bytes) for row in summary.rows] == [("trainable", 16), ("non-trainable", 4)]
    assert summary.parameters == 8 and summary.bytes == 20


def test_html_is_a_sound_table():
    tags = []

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append(tag)

    markup = nn.summary(
        nn.Series(nn.Linear(2), Counter()), jax.ShapeDtypeStruct((4,), jnp.float32)
    )._repr_html_()
    Parser().feed(markup)
    assert tags.count("tr") == 4 and tags.count("th") == 6 and tags.count("td") == 18 and "caption" in tags
    assert "&lt;steps&gt;" in markup and "<steps>" not in markup


def test_an_empty_model():
    assert nn.summary(nn.Flatten(1), X).rows == ()
    assert "total" in repr(nn.summary(nn.Flatten(1), X))


def test_nothing_is_computed(monkeypatch):
    huge = nn.Series(nn.Linear(10**6), nn.Linear(10**6))
    assert nn.summary(huge, jax.ShapeDtypeStruct((10**6,), jnp.float32)).bytes == 8 * 10**12


def test_errors_name_the_layer():
    with pytest.raises(
        nn.LayerError, match=r"^Series: x\[0\] expects an array, got int 28: .*jax\.ShapeDtypeStruct\("
    ):
        nn.summary(MODEL, (28, 28))
    with pytest.raises(nn.LayerError, match=r"^model\[0\]\.Flatten: x expects at least 2 axes"):
        nn.summary(MODEL, jax.ShapeDtypeStruct((4,), jnp.float32))
