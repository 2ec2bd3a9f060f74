"""`examples/snli_lstm.py` and `examples/snli_encoder.py`, on a small archive of SNLI's format."""

import hashlib
import json

import jax
import numpy as np
import pytest

from examples import snli, snli_encoder, snli_lstm
from mlax_tutorial import data
from mlax_tutorial.data import records, sentences
from tests.data.test_archives import snli_archive

WORDS = ["dog", "cat", "bird", "man", "girl", "horse"]


def made(count, seed):
    """A hypothesis that repeats the subject, names another one, or says something else."""
    generator, pairs = np.random.default_rng(seed), []
    for _ in range(count):
        one, other = generator.choice(WORDS, 2, replace=False)
        long = " in the park near the old house by the river" * int(generator.integers(0, 3))
        label = ["entailment", "contradiction", "neutral", "-"][
            generator.choice(4, p=[0.32, 0.32, 0.32, 0.04])
        ]
        hypothesis = {"entailment": f"It is a {one}.", "contradiction": f"It is no {one}!"}.get(
            label, f"Is it 's {other}?"
        )
        pairs.append((f"A {one} runs{long}.", hypothesis, label))
    return pairs


@pytest.fixture
def folder(tmp_path, monkeypatch):
    file = snli_archive({"train": made(400, 0), "dev": made(60, 1), "test": made(60, 2)})
    (tmp_path / "snli_1.0.zip").write_bytes(file)
    monkeypatch.setattr(sentences, "SHA256", hashlib.sha256(file).hexdigest())
    return tmp_path


SMALL = ["--epochs", "3", "--features", "12", "--batch-size", "16"]


@pytest.mark.parametrize("example", [snli_lstm, snli_encoder], ids=["lstm", "encoder"])
def test_it_learns_and_resumes_bit_for_bit(example, folder, capsys, monkeypatch, request):
    if example is snli_encoder:  # of its first step, XLA makes a NaN on JAX 0.7.2 without its optimizations
        request.getfixturevalue("optimized")
    monkeypatch.setattr(example, "RATE", 1e-2)
    monkeypatch.setattr(records, "FOLDER", folder)
    accuracy = example.main([*SMALL, "--folder", str(folder), "--record"])
    assert accuracy > 0.9
    result = json.loads((folder / f"{example.__name__.rpartition('.')[2]}.json").read_text())
    assert result["accuracy"] == round(accuracy, 4) and len(result["losses"]) == 3
    capsys.readouterr()

    pytest.importorskip("orbax.checkpoint")
    kept = ["--folder", str(folder), "--checkpoints", str(folder / "run")]
    run_epoch, done = snli.run_epoch, []

    def killed(*arguments):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return run_epoch(*arguments)

    monkeypatch.setattr(snli, "run_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        example.main([*SMALL, *kept])
    monkeypatch.setattr(snli, "run_epoch", run_epoch)
    assert example.main([*SMALL, *kept]) == accuracy
    assert "resumed after epoch 2" in capsys.readouterr().out
    lines = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert [round(line["loss"], 4) for line in lines] == result["losses"]


def test_without_the_archive_it_says_what_to_do(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sentences, "URL", "http://127.0.0.1:9/snli_1.0.zip")
    monkeypatch.setattr("mlax_tutorial.data.download.time.sleep", lambda _: None)
    with pytest.raises(SystemExit):
        snli_lstm.main(["--folder", str(tmp_path)])
    assert "put the file into" in capsys.readouterr().err


def test_words_and_batches():
    assert snli.words_of("A man's dog; it isn't.") == [
        "a",
        "man",
        "'s",
        "dog",
        ";",
        "it",
        "isn",
        "'t",
        ".",
    ]
    pairs = data.Pairs(("a a dog.", ""), ("A cat.", "dog " * 50), np.array([0, 1], np.int32))
    known = snli.vocabulary(pairs)
    assert known == {".": 2, "a": 3, "dog": 4}
    x, lengths, _ = snli.arrays(pairs, known)
    assert (
        x.shape == (2, 2, 40)
        and lengths.tolist() == [[4, 3], [1, 40]]
        and x[0, 1, :4].tolist() == [3, 1, 2, 0]
    )
    hidden, _, _ = snli.arrays(pairs, known, hypothesis_only=True)
    assert not hidden[:, 0, 1:].any() and (hidden[:, 1] == x[:, 1]).all()
    lengths = np.random.default_rng(0).integers(1, 41, (300, 2))
    batches = snli.bucketed(jax.random.key(0), lengths, 16)
    rows = np.concatenate([rows for rows, _ in batches])
    assert len(set(rows)) == len(rows) > 240
    assert all(lengths[rows].max() <= time for rows, time in batches)


def test_padding_has_no_say(folder):
    model, lengths = snli_encoder.make_model(50, 16), np.array([[5, 3], [2, 7]], np.int32)
    x = np.random.default_rng(0).integers(2, 50, (2, 2, 8)).astype(np.int32)
    variables = model.init(jax.random.key(0), x, lengths=lengths)
    changed = np.where(np.arange(8) < lengths[..., None], x, 0)
    one, other = (
        model.fwd(each, *variables, lengths=lengths, inference_mode=True)[0] for each in (x, changed)
    )
    np.testing.assert_allclose(one, other, atol=1e-5)
