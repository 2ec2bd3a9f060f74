"""Chapter 16: the loop that its reader writes trains, stops early, and goes on from its own checkpoint, bit for bit."""

import jax
import numpy as np
import pytest

from mlax_tutorial import training
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    found = assembled.definitions(
        "training_loop",
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


def test_its_evaluation_is_exact(code, run):
    """Against the package's own, which takes another way; 999 examples leave a ragged batch of any size."""
    weights, x, y = run["state"][0], code["x_val"][:999], code["y_val"][:999]
    evaluate = training.make_evaluation(code["model"], training.is_right)
    expected = evaluate(weights, (), x / np.float32(255), y)
    for size in (384, 7, 2000):
        np.testing.assert_allclose(code["evaluate"](weights, x, y, size)["accuracy"], expected, atol=1e-6)


def test_it_resumes_bit_for_bit(code, run, tmp_path):
    epoch = code["run_epoch"]
    run, _ = epoch(code["optimizer"], run)
    code["save"](tmp_path / "state.npz", run)
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]
    resumed = code["restore"](tmp_path / "state.npz", run)
    (one, loss), (other, other_loss) = epoch(code["optimizer"], run), epoch(code["optimizer"], resumed)
    assert loss == other_loss and one["epoch"] == other["epoch"] == 2
    assert jax.random.key_data(one["key"]).tolist() == jax.random.key_data(other["key"]).tolist()
    pairs = zip(jax.tree.leaves(one["state"]), jax.tree.leaves(other["state"]), strict=True)
    assert all(np.array_equal(first, second) for first, second in pairs)
