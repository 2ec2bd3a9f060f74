"""The example at full size, in small: it runs, it checks its options, and what it recorded is what the book says."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import fashion, fashion_conv
from mlax_tutorial import data, nn
from mlax_tutorial.data import records

README = Path(fashion_conv.__file__).with_name("README.md")
QUICK_TO_COMPILE = False  # it trains with convolutions, which take five times as long without optimizations


@pytest.fixture(autouse=True)
def guards():
    with jax.debug_key_reuse(True):
        yield


@pytest.fixture
def few(monkeypatch, request):
    """The embedded images, but only two batches, or as many as are asked for."""
    count = getattr(request, "param", 256)
    train, test = data.fashion_mnist()
    part = (
        data.Images(train.images[:count], train.labels[:count]),
        data.Images(test.images[:500], test.labels[:500]),
    )
    monkeypatch.setattr(data, "fashion_mnist", lambda **options: part)
    return part


@pytest.mark.parametrize("few", [640], indirect=True)
def test_it_trains(few, capsys):
    accuracy = fashion_conv.main(["--embedded", "--epochs", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert accuracy > 0.5  # a guess would be right once in ten
    assert (
        lines[0].startswith("epoch  1 of 2: loss ")
        and lines[-1] == f"accuracy on 500 test images: {accuracy:.2%}"
    )


def test_its_size_is_told():
    trainables, _ = jax.eval_shape(fashion_conv.MODEL.init, jax.random.key(0), jnp.ones((1, 28, 28, 1)))
    count = sum(leaf.size for leaf in jax.tree.leaves(trainables))
    assert f"{count:,} weights" in fashion_conv.__doc__
    assert f"{count:,} weights" in README.read_text()


def test_pooling_is_that_of_the_library():
    x = jax.random.normal(jax.random.key(0), (2, 8, 6, 3))
    np.testing.assert_array_equal(fashion.halve(x), nn.MaxPool((2, 2)).fwd(x, (), ())[0])


def test_images_are_turned_and_shifted():
    image = np.zeros((28, 28, 1), np.float32)
    image[10, 5] = 1
    made = np.asarray(
        fashion_conv.augment(jax.random.key(0), jnp.asarray(np.repeat(image[None], 64, axis=0)))
    )
    assert made.shape == (64, 28, 28, 1) and (made.sum(axis=(1, 2, 3)) == 1).all()
    rows, columns = np.argwhere(made)[:, 1:3].T
    assert set(rows) == {9, 10, 11} and set(columns) == {4, 5, 6, 21, 22, 23}


def test_an_image_and_its_mirror_image_are_told_alike():
    x = jax.random.uniform(jax.random.key(0), (3, 28, 28, 1))
    model = fashion.BothWays(fashion_conv.MODEL)
    variables = fashion_conv.MODEL.init(jax.random.key(1), x)
    logits, _ = model.fwd(x, *variables, inference_mode=True)
    mirrored, _ = model.fwd(x[:, :, ::-1], *variables, inference_mode=True)
    np.testing.assert_allclose(logits, mirrored, rtol=1e-4, atol=1e-4)


def test_a_training_that_was_broken_off_ends_as_one_that_was_not(few, tmp_path, monkeypatch, capsys):
    whole = fashion_conv.train(*few, epochs=2, seed=0)
    run_epoch = fashion_conv.run_epoch

    def breaks_off(step, optimizer, run, images, labels):
        if run["epoch"] == 1:
            raise KeyboardInterrupt
        return run_epoch(step, optimizer, run, images, labels)

    monkeypatch.setattr(fashion_conv, "run_epoch", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        fashion_conv.train(*few, epochs=2, seed=0, directory=tmp_path / "run")
    monkeypatch.setattr(fashion_conv, "run_epoch", run_epoch)
    capsys.readouterr()
    resumed = fashion_conv.train(*few, epochs=2, seed=0, directory=tmp_path / "run")
    assert resumed == whole
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "resumed after epoch 1" and lines[1].startswith("epoch  2 of 2") and len(lines) == 2
    with pytest.raises(SystemExit):  # the rates would be those of another schedule
        fashion_conv.main(["--embedded", "--epochs", "5", "--checkpoints", str(tmp_path / "run")])
    assert "other epochs or another seed" in capsys.readouterr().err


def test_the_record_is_written_whole_and_holds_no_more_digits_than_it_can(few, monkeypatch, tmp_path):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    accuracy = fashion_conv.main(["--record", "--epochs", "1"])
    assert [path.name for path in tmp_path.iterdir()] == ["fashion_conv.json"]
    result = json.loads((tmp_path / "fashion_conv.json").read_text())
    assert result["accuracy"] == round(accuracy, 4) and result["images"] == {"train": 256, "test": 500}
    assert len(result["losses"]) == 1
    assert result["command"] == "python -m examples.fashion_conv --record --epochs 1"


@pytest.mark.parametrize(
    "options",
    [
        ["--epochs", "0"],
        ["--record", "--embedded"],
        ["--record", "--validate"],
        ["--epochs", "many"],
        ["--validate", "--checkpoints", "run"],
    ],
)
def test_options_that_do_not_fit(options, capsys):
    with pytest.raises(SystemExit) as caught:
        fashion_conv.main(options)
    assert caught.value.code == 2 and "error: " in capsys.readouterr().err


def test_data_that_cannot_be_had_are_told_in_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(data.fashion, "URL", "http://127.0.0.1:9/")
    monkeypatch.setattr(data.download.time, "sleep", lambda seconds: None)
    with pytest.raises(SystemExit) as caught:
        fashion_conv.main(["--folder", str(tmp_path)])
    message = capsys.readouterr().err
    assert caught.value.code == 1 and message.count("\n") == 1 and str(tmp_path) in message


def test_the_recorded_accuracy_is_what_the_readme_says():
    result = data.recorded("fashion_conv")
    assert result["accuracy"] >= 0.934 and result["images"] == {"train": 60_000, "test": 10_000}
    assert f"{result['accuracy']:.2%}".replace("%", " %") in README.read_text()
