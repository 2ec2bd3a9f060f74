"""`examples/cifar_resnet.py`, on small files of the format: it learns in both precisions, and resumes bit for bit."""

import hashlib

import jax
import numpy as np
import pytest

from examples import cifar_resnet
from mlax_tutorial import trees
from mlax_tutorial.data import cifar
from tests.data.test_archives import COUNT, cifar_archive


@pytest.fixture
def folder(tmp_path, monkeypatch):
    content = cifar_archive()
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(content)
    monkeypatch.setattr(cifar, "SHA256", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(cifar_resnet, "BATCH_SIZE", COUNT)
    return tmp_path


def run(folder, *arguments):
    return cifar_resnet.main(["--folder", str(folder), "--epochs", "2", *arguments])


def test_it_has_the_size_that_the_sources_tell():
    x = jax.ShapeDtypeStruct((1, 32, 32, 3), "float32")
    trainables, _ = jax.eval_shape(cifar_resnet.MODEL.init, jax.random.key(0), x)
    assert abs(trees.count(trainables) - 98_500) < 500


def test_it_runs_in_both_precisions(folder, capsys):
    for arguments in ([], ["--precision", "float16"]):
        accuracy = run(folder, *arguments)
        assert 0 <= accuracy <= 1
        text = capsys.readouterr().out
        assert f"accuracy on {COUNT} test images" in text
        losses = [float(line.split("loss ")[1]) for line in text.splitlines() if "loss" in line]
        assert len(losses) == 2 and np.isfinite(losses).all() and losses[1] < losses[0]


def test_it_resumes_bit_for_bit(folder, capsys, monkeypatch):
    pytest.importorskip("orbax.checkpoint")
    whole = run(folder, "--checkpoints", str(folder / "whole"))
    run_epoch, done = cifar_resnet.run_epoch, []

    def killed(*arguments):
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return run_epoch(*arguments)

    monkeypatch.setattr(cifar_resnet, "run_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        run(folder, "--checkpoints", str(folder / "killed"))
    monkeypatch.setattr(cifar_resnet, "run_epoch", run_epoch)
    assert run(folder, "--checkpoints", str(folder / "killed")) == whole
    assert "resumed after epoch 1" in capsys.readouterr().out
    logs = [(folder / name / "log.jsonl").read_text() for name in ("whole", "killed")]
    assert logs[0] == logs[1] and len(logs[0].splitlines()) == 2
    with pytest.raises(SystemExit):
        run(folder, "--checkpoints", str(folder / "killed"), "--seed", "1")


def test_without_the_archive_it_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cifar, "URL", (tmp_path / "nowhere").as_uri())
    with pytest.raises(SystemExit):
        run(tmp_path)
    assert "could not be fetched" in capsys.readouterr().err
