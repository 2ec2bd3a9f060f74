"""`examples/fashion_diffusion.py`: it learns, its samples are measured, and a training that was killed goes on bit for bit."""

import argparse
import json

import jax
import numpy as np
import pytest

from examples import fashion_diffusion
from mlax_tutorial import data, saving


@pytest.fixture(scope="module")
def few():
    train, test = data.fashion_mnist()
    return data.Images(train.images[:500], train.labels[:500]), data.Images(
        test.images[:200], test.labels[:200]
    )


OPTIONS = argparse.Namespace(width=4, steps=30, batch_size=16, seed=0)


@pytest.fixture(scope="module")
def trained(few, tmp_path_factory):
    pytest.importorskip("orbax.checkpoint")
    folder = tmp_path_factory.mktemp("whole")
    return (*fashion_diffusion.train(few[0], OPTIONS, folder), folder)


def test_it_learns_and_is_measured(few, trained, monkeypatch):
    model, weights, losses, _ = trained
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:5])
    monkeypatch.setattr(fashion_diffusion, "GUIDANCE", (1.5,))
    monkeypatch.setattr(fashion_diffusion, "LEVELS", 4)
    found = fashion_diffusion.measured(model, weights, *few, seed=0, samples=100)
    assert found["real"] > 0 and found["gaussian"] > 0
    network = found["network, guidance 1.5"]
    assert network["distance"] > found["real"] and 0 <= network["recognized"] <= 1
    images, label = fashion_diffusion.sampled(model, weights, jax.random.key(0), 100, 1.5)
    page = fashion_diffusion.sheet(images)
    assert page.startswith(b"P5 280 280 255\n") and len(page) == 15 + 280 * 280
    assert abs(images).max() <= 1 and sorted(set(label.tolist())) == list(range(10))


def test_it_resumes_bit_for_bit_and_refuses_other_options(few, trained, tmp_path, capsys, monkeypatch):
    _, whole, means, folder = trained
    monkeypatch.setattr(fashion_diffusion, "SAVE_EVERY", 4)
    update, calls = fashion_diffusion.update, []

    def killed(*arguments):
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return update(*arguments)

    monkeypatch.setattr(fashion_diffusion, "update", killed)
    with pytest.raises(KeyboardInterrupt):
        fashion_diffusion.train(few[0], OPTIONS, tmp_path)
    monkeypatch.setattr(fashion_diffusion, "update", update)
    _, again, resumed = fashion_diffusion.train(few[0], OPTIONS, tmp_path)
    assert "resumed after step 4 of 30" in capsys.readouterr().out
    for one, other in zip(*map(jax.tree.leaves, (whole, again)), strict=True):
        assert np.array_equal(one, other)
    assert resumed == means
    logs = [(path / "log.jsonl").read_text() for path in (folder, tmp_path)]
    assert logs[0] == logs[1] and json.loads(logs[0].splitlines()[-1])["step"] == 30
    longer = argparse.Namespace(**{**vars(OPTIONS), "steps": 31})
    with pytest.raises(saving.CheckpointError, match="other options"):
        fashion_diffusion.train(few[0], longer, folder)


def test_wrong_options_are_refused(capsys):
    for words, what in [
        (["--width", "6"], "multiple of 4"),
        (["--steps", "0"], "at least 1"),
        (["--record", "--embedded"], "whole set"),
    ]:
        with pytest.raises(SystemExit):
            fashion_diffusion.main(words)
        assert what in capsys.readouterr().err
