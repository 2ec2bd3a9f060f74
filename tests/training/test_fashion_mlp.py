"""The example at full size, in small: it runs, it checks its options, and what it recorded is what the book says."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from examples import fashion, fashion_mlp
from mlax_tutorial import data, training
from mlax_tutorial.data import records

README = Path(fashion_mlp.__file__).with_name("README.md")


@pytest.fixture(autouse=True)
def guards():
    with jax.debug_key_reuse(True):
        yield


@pytest.fixture
def few(monkeypatch):
    """The embedded images, but only so many, since two epochs are enough here."""
    train, test = data.fashion_mnist()
    part = (
        data.Images(train.images[:1280], train.labels[:1280]),
        data.Images(test.images[:500], test.labels[:500]),
    )
    monkeypatch.setattr(data, "fashion_mnist", lambda **options: part)
    return part


def test_it_trains(few, capsys):
    accuracy = fashion_mlp.main(["--embedded", "--epochs", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert accuracy > 0.5  # a guess would be right once in ten
    assert (
        lines[0].startswith("epoch  1 of 2: loss ")
        and lines[-1] == f"seed 0: accuracy on 500 test images: {accuracy:.2%}"
    )


def test_its_loop_is_that_of_the_library(few):
    """The recorded accuracy is from a run through training.fit: the same losses, whose mean fit takes in float64."""
    _, losses = fashion_mlp.train(*few, epochs=2, seed=0)
    init_key, fit_key = jax.random.split(jax.random.key(0))
    images, labels = fashion_mlp.on_device(few[0])
    trainables, non_trainables = fashion_mlp.MODEL.init(init_key, images[:1])
    optimizer, expected = fashion_mlp.schedule(2), []
    training.fit(
        fit_key, training.make_step(fashion_mlp.MODEL, fashion_mlp.loss), optimizer,
        (trainables, non_trainables, optimizer(0).init(trainables)), images, labels, epochs=2,
        batch_size=fashion_mlp.BATCH_SIZE, each_epoch=lambda *found: expected.append(found[-1]),
    )  # fmt: skip
    np.testing.assert_array_max_ulp(np.float32(losses), np.float32(expected), maxulp=1)


def test_a_training_that_was_broken_off_ends_as_one_that_was_not(few, tmp_path, monkeypatch, capsys):
    whole = fashion_mlp.train(*few, epochs=3, seed=0)
    run_epoch = fashion_mlp.run_epoch

    def breaks_off(step, optimizer, run, images, labels):
        if run["epoch"] == 2:
            raise KeyboardInterrupt
        return run_epoch(step, optimizer, run, images, labels)

    monkeypatch.setattr(fashion_mlp, "run_epoch", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        fashion_mlp.train(*few, epochs=3, seed=0, directory=tmp_path / "run")
    monkeypatch.setattr(fashion_mlp, "run_epoch", run_epoch)
    capsys.readouterr()
    resumed = fashion_mlp.train(*few, epochs=3, seed=0, directory=tmp_path / "run")
    assert resumed == whole
    log = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == [1, 2, 3] and [line["loss"] for line in log] == whole[1]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "resumed after epoch 2" and lines[1].startswith("epoch  3 of 3") and len(lines) == 2
    (tmp_path / "run").rename(tmp_path / "seed-0")
    with pytest.raises(SystemExit):  # the rates would be those of another schedule
        fashion_mlp.main(["--embedded", "--epochs", "5", "--checkpoints", str(tmp_path)])
    assert "other epochs or another seed" in capsys.readouterr().err


@pytest.mark.parametrize(("count", "held"), [(80, 80), (5_000, 128)])
def test_held_out_images_are_not_trained_on(few, count, held):
    train, held_out = fashion.hold_out(few[0], count)
    assert train.images.shape == (1280 - held, 28, 28) and held_out.labels.shape == (held,)
    np.testing.assert_array_equal(np.concatenate([train.labels, held_out.labels]), few[0].labels)


def test_the_record_is_written_whole_and_holds_no_more_digits_than_it_can(few, monkeypatch, tmp_path):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    accuracy = fashion_mlp.main(["--record", "--epochs", "2", "--seeds", "2"])
    assert [path.name for path in tmp_path.iterdir()] == ["fashion_mlp.json"]
    result = json.loads((tmp_path / "fashion_mlp.json").read_text())
    assert result["accuracy"] == round(accuracy, 4) and result["images"] == {"train": 1280, "test": 500}
    one, two = result["accuracies"]
    # Student's t for two figures is 12.7, and their standard error half of their distance.
    assert one != two and result["interval"] == pytest.approx(12.706 * abs(one - two) / 2, abs=1e-3)
    assert len(result["losses"]) == len(result["losses"][0]) == len(result["held_out"]["accuracies"]) == 2
    assert result["command"] == "python -m examples.fashion_mlp --record --epochs 2 --seeds 2"


@pytest.mark.parametrize(
    "options",
    [
        ["--epochs", "0"],
        ["--record", "--embedded"],
        ["--record", "--validate"],
        ["--epochs", "many"],
        ["--seeds", "0"],
        ["--validate", "--checkpoints", "run"],
    ],
)
def test_options_that_do_not_fit(options, capsys):
    with pytest.raises(SystemExit) as caught:
        fashion_mlp.main(options)
    assert caught.value.code == 2 and "error: " in capsys.readouterr().err


def test_data_that_cannot_be_had_are_told_in_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(data.fashion, "URL", "http://127.0.0.1:9/")
    monkeypatch.setattr(data.download.time, "sleep", lambda seconds: None)
    with pytest.raises(SystemExit) as caught:
        fashion_mlp.main(["--folder", str(tmp_path)])
    message = capsys.readouterr().err
    assert caught.value.code == 1 and message.count("\n") == 1 and str(tmp_path) in message


def test_a_folder_for_the_part_is_a_mistake(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        fashion_mlp.main(["--embedded", "--folder", str(tmp_path)])
    assert caught.value.code == 2 and "--embedded" in capsys.readouterr().err


def test_the_recorded_accuracy_is_at_least_90_percent():
    result = data.recorded("fashion_mlp")
    assert result["accuracy"] >= 0.9 and result["images"] == {"train": 60_000, "test": 10_000}
    assert f"{result['accuracy']:.2%}".replace("%", " %") in README.read_text()
