"""`examples/names_lstm.py`: each of its models learns, and a training that was broken off goes on bit for bit."""

import json

import numpy as np
import pytest

from examples import names_lstm
from mlax_tutorial import data


@pytest.fixture(scope="module")
def few():
    """Three languages that are easy to tell apart."""
    parts = []
    for part in data.names():
        chosen = np.isin(part.labels, [7, 8, 12])
        rows = np.flatnonzero(chosen)[:1024]
        parts.append(data.Names(tuple(part.names[i] for i in rows), part.labels[rows]))
    return parts


@pytest.mark.parametrize("name", names_lstm.RECIPES)
def test_each_model_learns(few, name):
    (accuracy,), losses = names_lstm.train(name, *few, seed=0, epochs=2)
    assert accuracy > 0.75 and losses[1] < losses[0] and losses[1] < 1


def test_counting_needs_no_training(few):
    assert names_lstm.count(*few) > 0.95


def test_what_is_padded_has_no_influence(few):
    encode, size = names_lstm.encoder(names_lstm.RECIPES["bilstm"], few[0].names)
    ids, lengths = encode(["Rossi", "Ò"])
    assert ids.shape == (2, 16) and lengths.tolist() == [5, 1] and ids.max() < size
    model = names_lstm.RECIPES["bilstm"].make(size)
    variables = model.init(names_lstm.jax.random.key(0), ids, lengths=lengths)
    one, _ = model.fwd(ids, *variables, lengths=lengths, inference_mode=True)
    other, _ = model.fwd(np.where(ids == 0, 3, ids), *variables, lengths=lengths, inference_mode=True)
    np.testing.assert_array_equal(one, other)


def test_it_resumes_bit_for_bit(few, tmp_path, capsys, monkeypatch):
    pytest.importorskip("orbax.checkpoint")
    whole, losses = names_lstm.train("bilstm", *few, seed=1, epochs=3)
    run_epoch, done = names_lstm.run_epoch, []

    def killed(*arguments):
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return run_epoch(*arguments)

    monkeypatch.setattr(names_lstm, "run_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        names_lstm.train("bilstm", *few, seed=1, epochs=3, directory=tmp_path)
    monkeypatch.setattr(names_lstm, "run_epoch", run_epoch)
    again, resumed = names_lstm.train("bilstm", *few, seed=1, epochs=3, directory=tmp_path)
    assert again == whole and np.allclose(resumed, losses, atol=1e-6)
    assert "resumed after epoch 1" in capsys.readouterr().out
    lines = (tmp_path / "bilstm-1" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]


def test_the_record_is_of_these_settings():
    record = data.recorded("names_lstm")
    assert list(record["results"]) == ["counted", *names_lstm.RECIPES]
    for name, recipe in names_lstm.RECIPES.items():
        result = record["results"][name]
        assert result["about"] == recipe.about and len(result["accuracies"]) == names_lstm.SEEDS
        assert all(len(curve) == recipe.epochs for curve in result["losses"])
    assert record["names"] == {"train": 10866, "test": 2714}
