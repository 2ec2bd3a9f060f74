"""The pages of reference that hold code: it runs, and what they say of names is so."""

import dataclasses
import doctest
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim, precision, saving, training

BOOK = pathlib.Path(__file__).parents[2] / "book"
ROW = re.compile(r"^\| `(?P<theirs>.+?)`.* \| (?P<ours>.*) \|$", re.MULTILINE)
NAMES = {"jax": jax, "jnp": jnp, "np": np, "optax": optax, "nn": nn, "optim": optim, "precision": precision,
         "saving": saving, "training": training, "dataclasses": dataclasses}  # fmt: skip


@pytest.mark.parametrize("page", ["faq", "design_notes"])
def test_its_code_prints_what_it_says(page):
    text = (BOOK / f"{page}.md").read_text(encoding="utf-8").replace("\n```\n", "\n\n")
    test = doctest.DocTestParser().get_doctest(text, {}, page, f"{page}.md", 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(test, out=said.append)
    assert runner.tries > 3 and not runner.failures, "".join(said)


def rows():
    table = (BOOK / "faq.md").read_text(encoding="utf-8").partition("## From PyTorch")[2]
    return [
        (match["theirs"], code)
        for match in ROW.finditer(table)
        for code in re.findall(r"`([^`]+)`", match["ours"])
    ]


def test_there_are_forty():
    assert len({theirs for theirs, _ in rows()}) >= 40


@pytest.mark.parametrize("theirs, ours", [row for row in rows() if "." in row[1] and "…" not in row[1]])
def test_what_stands_for_a_name_of_pytorch(theirs, ours, tmp_path, monkeypatch):
    """Each is evaluated, on arrays and layers for what it leaves open."""
    monkeypatch.chdir(tmp_path)
    model = nn.Series(nn.Linear(4), nn.Bias())
    trainables, _ = model.init(jax.random.key(0), jnp.ones((2, 3)))
    open_ends = {
        "a": [1.0, 2.0], "x": jnp.ones((2, 4)), "f": jnp.sin, "key": jax.random.key(0), "layer": model, "model": model,
        "trainables": trainables, "logits": jnp.ones((2, 3)), "labels": jnp.zeros(2, int), "size": 8, "batch_size": 4,
        "y": np.zeros(2), "optimizer": optim.Adam(1e-3), "target": trainables,
        "loss": lambda trainables: jnp.sum(trainables[0]["kernel"]),
    }  # fmt: skip
    if ".restore(" in ours:
        with saving.Checkpoints("run") as checkpoints:
            checkpoints.save(1, trainables)
    assert eval(ours, NAMES | open_ends) is not None or ours.startswith("saving")


def test_another_rate_is_another_leaf_of_the_same_optimizer():
    """What the table says of `param_groups` and of a new rate."""
    optimizer = optim.Adam(1e-3)
    other = dataclasses.replace(optimizer, learning_rate=2e-3)
    assert jax.tree.structure(other) == jax.tree.structure(optimizer)
    assert float(other.learning_rate) == pytest.approx(2e-3)


@pytest.mark.parametrize(
    "theirs, shape, wanted",
    [
        ("nn.Linear(784, 10)", (2, 784), (2, 10)),
        ("nn.Conv2d(3, 8, 3)", (2, 9, 9, 3), (2, 7, 7, 8)),
        ("nn.ConvTranspose2d(8, 3, 2, stride=2)", (2, 4, 4, 8), (2, 8, 8, 3)),
        ("nn.MaxPool2d(2)", (2, 8, 8, 3), (2, 4, 4, 3)),
        ("nn.AvgPool2d(2)", (2, 8, 8, 3), (2, 4, 4, 3)),
        ("nn.Flatten()", (2, 4, 4, 3), (2, 48)),
        ("nn.LayerNorm(64)", (2, 64), (2, 64)),
        ("nn.RMSNorm(64)", (2, 64), (2, 64)),
        ("nn.BatchNorm2d(8)", (2, 4, 4, 8), (2, 4, 4, 8)),
        ("nn.GroupNorm(4, 8)", (2, 4, 4, 8), (2, 4, 4, 8)),
        ("nn.LSTM(8, 16, batch_first=True)", (2, 5, 8), (2, 5, 16)),
        ("nn.GRU(8, 16, bidirectional=True)", (2, 5, 8), (2, 5, 32)),
        ("nn.MultiheadAttention(64, 4)", (2, 5, 64), (2, 5, 64)),
    ],
)
def test_the_layers_have_the_shapes_of_their_peers(theirs, shape, wanted):
    layer = eval(dict(reversed(rows()))[theirs], NAMES)
    x = jax.ShapeDtypeStruct(shape, "float32")
    key = jax.random.key(0)
    y = jax.eval_shape(lambda x: layer.fwd(x, *layer.init(key, x), key=key)[0], x)
    assert y.shape == wanted
