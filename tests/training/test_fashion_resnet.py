"""`examples/fashion_resnet.py`: it learns in both precisions, and a training that is killed in the middle of an epoch goes on bit for bit."""

import argparse
import json

import jax
import numpy as np
import pytest

from examples import fashion_resnet
from mlax_tutorial import data, saving, trees


@pytest.fixture(scope="module")
def few():
    train, test = data.fashion_mnist()
    return data.Images(train.images[:768], train.labels[:768]), data.Images(
        test.images[:256], test.labels[:256]
    )


def options(**changed):
    settings = {"width": 4, "epochs": 2, "seed": 0, "precision": "float32"} | changed
    return argparse.Namespace(**settings)


def test_the_network_has_as_many_weights_as_its_text_says():
    x = jax.ShapeDtypeStruct((1, 28, 28, 1), "float32")
    trainables, _ = jax.eval_shape(fashion_resnet.make_model(48).init, jax.random.key(0), x)
    assert f"{trees.count(trainables):,}" in fashion_resnet.__doc__.split("\n")[0]


def test_it_learns_and_mixed_precision_begins_alike(few):
    (accuracy,), means = fashion_resnet.train(*few, options(width=8, epochs=3))
    assert accuracy > 0.4 and means[-1] < means[0]
    short = [data.Images(part.images[:256], part.labels[:256]) for part in few]
    one, other = (
        fashion_resnet.train(*short, options(epochs=1, precision=name))[1] for name in ("float32", "mixed")
    )
    np.testing.assert_allclose(one, other, rtol=0.02)


def test_the_rate_rises_and_falls():
    rates = [
        float(fashion_resnet.optimizer(share).parts[1].learning_rate) for share in (0.0, 0.1, 0.2, 0.6, 1.0)
    ]
    np.testing.assert_allclose(rates, [0, 0.05, 0.1, 0.05, 0], atol=1e-7)


def test_every_image_comes_once_an_epoch_and_changed(few):
    images = np.arange(300, dtype=np.float32).reshape(300, 1, 1, 1) * np.ones((1, 4, 4, 1), np.float32)
    batches = fashion_resnet.Batches(jax.random.key(0), jax.numpy.asarray(images), jax.numpy.arange(300))
    seen = [np.asarray(batches(number)[1]) for number in range(4)]
    assert len(set(np.concatenate(seen[:2]).tolist())) == 256 and not np.array_equal(seen[0], seen[2])
    again = batches(0)
    assert np.array_equal(again[1], seen[0])


def test_it_resumes_in_the_middle_of_an_epoch_bit_for_bit(few, tmp_path, capsys, monkeypatch):
    pytest.importorskip("orbax.checkpoint")
    monkeypatch.setattr(fashion_resnet, "SAVE_EVERY", 4)
    whole, means = fashion_resnet.train(*few, options(), tmp_path / "whole")
    take, calls = fashion_resnet.take, []

    def killed(*arguments):
        calls.append(1)
        if len(calls) == 10:  # six steps an epoch, a checkpoint after steps 4 and 8
            raise KeyboardInterrupt
        return take(*arguments)

    monkeypatch.setattr(fashion_resnet, "take", killed)
    with pytest.raises(KeyboardInterrupt):
        fashion_resnet.train(*few, options(), tmp_path / "killed")
    monkeypatch.setattr(fashion_resnet, "take", take)
    again, resumed = fashion_resnet.train(*few, options(), tmp_path / "killed")
    assert "resumed after step 8 of 12" in capsys.readouterr().out
    assert again == whole and resumed == means
    logs = [(tmp_path / name / "log.jsonl").read_text() for name in ("whole", "killed")]
    assert logs[0] == logs[1] and len(logs[0].splitlines()) == 12
    assert json.loads(logs[0].splitlines()[-1])["step"] == 12
    with pytest.raises(saving.CheckpointError, match="other options"):
        fashion_resnet.train(*few, options(seed=1), tmp_path / "killed")


def test_what_makes_no_sense_is_refused(capsys):
    for arguments in (["--width", "3"], ["--epochs", "0"], ["--record", "--embedded"]):
        with pytest.raises(SystemExit):
            fashion_resnet.main(arguments)
