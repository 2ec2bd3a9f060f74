"""*The training loop*: the loop that its reader writes trains, stops early, and goes on from its own checkpoint, bit for bit."""

import pathlib
import re

import jax
import numpy as np
import pytest

from mlax_tutorial import saving, training
from tests.chapters import assembled

BOOK = pathlib.Path(__file__).parents[2] / "book" / "_src"


@pytest.fixture(scope="module")
def code():
    found = assembled.definitions(
        "book/training_loop.ipynb",
        "begin",
        "run_epoch",
        "evaluate",
        "fit",
        "save",
        "restore",
        "x_val",
        "y_val",
        "cross_entropy",
    )
    for name in ("x", "y"):  # the functions read them when they are called
        found[name] = found[name][:1280]
    return found


@pytest.fixture
def run(code):
    state, key = code["begin"]()
    return {"state": state, "key": key, "epoch": 0}


def test_it_trains_and_keeps_the_best(code, run, capsys):
    run, best, history = code["fit"](code["optimizer"], run, epochs=3)
    assert run["epoch"] == 3 and best["accuracy"] > 0.6 and best["loss"] == history[:, 1].min()
    again = code["evaluate"](best["weights"], code["x_val"], code["y_val"])  # a copy: not donated
    assert again["loss"] == best["loss"]
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_patience_ends_it(code, run, monkeypatch):
    worse = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    monkeypatch.setitem(code, "evaluate", lambda *_: {"loss": next(worse), "accuracy": 0.5})
    run, best, _ = code["fit"](code["optimizer"], run, epochs=9, patience=2)
    assert run["epoch"] == 3 and best["epoch"] == 1


def test_a_loss_of_nan_ends_it_without_weights(code, run, monkeypatch):
    monkeypatch.setitem(code, "evaluate", lambda *_: {"loss": np.nan, "accuracy": 0.1})
    run, best, _ = code["fit"](code["optimizer"], run, epochs=9, patience=2)
    assert run["epoch"] == 2 and "weights" not in best


def test_its_evaluation_is_exact(code, run):
    """Against the package's own, which takes another way; 999 examples leave a ragged batch of any size."""
    weights, x, y = run["state"][0], code["x_val"][:999], code["y_val"][:999]
    evaluate = training.make_evaluation(code["model"], training.is_right)
    expected = evaluate(weights, (), x / np.float32(255), y)
    for size in (384, 7, 2000):
        np.testing.assert_allclose(code["evaluate"](weights, x, y, size)["accuracy"], expected, atol=1e-6)


def test_it_resumes_bit_for_bit(code, run, tmp_path):
    epoch = code["run_epoch"]
    data = code["x"], code["y"]
    run, _ = epoch(code["optimizer"], run, *data)
    file = tmp_path / "state.npz"
    code["save"](file, run)
    resumed = code["restore"](file, run)
    file.unlink()
    tmp_path.rmdir()  # fails if anything else was left
    (one, loss), (other, other_loss) = (epoch(code["optimizer"], state, *data) for state in (run, resumed))
    assert loss == other_loss and one["epoch"] == other["epoch"] == 2
    assert jax.random.key_data(one["key"]).tolist() == jax.random.key_data(other["key"]).tolist()
    pairs = zip(jax.tree.leaves(one["state"]), jax.tree.leaves(other["state"]), strict=True)
    assert all(np.array_equal(first, second) for first, second in pairs)


def test_the_block_that_needs_orbax_does_as_it_stands(code, run, tmp_path):
    pytest.importorskip("orbax.checkpoint")
    text = (BOOK / "training_loop.md").read_text(encoding="utf-8")
    [block] = [
        each for each in re.findall(r"^```python\n(.+?)^```$", text, re.M | re.S) if "Checkpoints(" in each
    ]
    names = {"run": run | {"epoch": 1}, "folder": tmp_path, "jax": jax, "jnp": jax.numpy, "saving": saving}
    exec(block, names)
    assert names["run"]["epoch"] == 1 and type(names["run"]["epoch"]) is int
    pairs = zip(jax.tree.leaves(names["run"]["state"]), jax.tree.leaves(run["state"]), strict=True)
    assert all(np.array_equal(one, two) for one, two in pairs)
    assert jax.random.key_data(names["run"]["key"]).tolist() == jax.random.key_data(run["key"]).tolist()
