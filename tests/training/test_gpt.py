"""`examples/gpt.py`: counts, each kind of model learns, and a training that was broken off goes on bit for bit."""

import json

import jax
import numpy as np
import pytest

from examples import gpt
from mlax_tutorial import data

TINY = {
    "mixed": gpt.RECIPES["mixed"]._replace(depth=1, heads=2, width=16, context=16, batch=4),
    "alone": gpt.RECIPES["alone"]._replace(depth=1, heads=2, width=16, context=16, batch=4),
    "nano": gpt.RECIPES["nano"]._replace(depth=1, heads=2, width=16, context=16, batch=4),
}


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(gpt, "RECIPES", TINY)
    monkeypatch.setattr(gpt, "ROUND", 20)
    train, test = data.jargon()
    return train[:20_000], test[:2_000]


def test_counts_without_the_character_itself_are_those_of_the_rest():
    text = "abracadabra abracadabra cadabra"

    def often(run):
        return sum(text.startswith(run, i) for i in range(len(text)))

    found = gpt.Counts(text).chances(text, own=1)
    for i in range(gpt.ORDER, len(text)):
        p = 1 / len(set(text))
        for n in range(gpt.ORDER):
            before = text[i - n : i]
            kinds = {text[j + n] for j in range(len(text) - n) if text.startswith(before, j)}
            weight = 4 + 4 * len(kinds)
            p = (often(before + text[i]) - 1 + weight * p) / (often(before) - 1 + weight)
        assert found[i] == pytest.approx(p, rel=1e-5)


@pytest.mark.parametrize("name", TINY)
def test_each_model_learns(tiny, name):
    model, w, result = gpt.train(name, *tiny, steps=60)
    assert result["losses"][-1] < result["losses"][0] and result["bits"] < np.log2(95)
    alphabet = sorted(set("".join(tiny)))
    text = gpt.write(model, w, alphabet, "The ", length=12)
    assert text.startswith("The ") and len(text) == 16
    with pytest.raises(ValueError, match="the prompt has characters"):
        gpt.write(model, w, alphabet, "é")


def test_the_gate_is_the_logarithm_of_a_mixture(tiny):
    recipe = TINY["mixed"]
    model = gpt.make_model(recipe, 7)
    ids = np.arange(10, dtype=np.int32)[None] % 7
    w, _ = model.init(jax.random.key(0), ids[:, :-1])
    w = (*w[:-1], {"kernel": jax.random.normal(jax.random.key(1), w[-1]["kernel"].shape)})
    counted = np.linspace(0.1, 0.9, 10, dtype=np.float32)[None]
    outputs = np.asarray(model.fwd(ids[:, :-1], w, ())[0], np.float64)
    p = np.exp(outputs[..., :-1]) / np.exp(outputs[..., :-1]).sum(-1, keepdims=True)
    p = np.take_along_axis(p, ids[:, 1:, None], axis=-1)[..., 0]
    g = 1 / (1 + np.exp(-outputs[..., -1]))
    wanted = -np.log(g * p + (1 - g) * counted[:, 1:])
    np.testing.assert_allclose(gpt.losses(recipe, model, w, ids, counted), wanted, atol=1e-4)


@pytest.mark.parametrize("name", TINY)
def test_what_is_farther_back_than_one_context_does_not_count(name):
    """So a text may be longer than those of the training: no place looks farther back than it learned to."""
    model = gpt.make_model(TINY[name], 7)
    ids = np.arange(40, dtype=np.int32)[None] * 3 % 7
    w, _ = model.init(jax.random.key(0), ids)
    w = (*w[:-1], {"kernel": jax.random.normal(jax.random.key(1), w[-1]["kernel"].shape)})
    run = jax.jit(lambda ids: model.fwd(ids, w, (), inference_mode=True)[0][0, -1])
    here, near, far = ids, ids.copy(), ids.copy()
    near[0, 24], far[0, 23] = 6 - ids[0, 24], 6 - ids[0, 23]
    np.testing.assert_array_equal(run(here), run(far))
    assert np.abs(run(here) - run(near)).max() > 0


def test_the_network_behind_the_gate_learns_too(tiny):
    """Without its own loss, the counts leave it hardly any gradient."""
    train_text, test_text = tiny
    model, w, _ = gpt.train("mixed", *tiny, steps=60)
    ids = gpt.encode(sorted(set(train_text) | set(test_text)), test_text)[None, :1000]
    counted = np.full(ids.shape, 0.1, np.float32)
    _, alone = gpt.both_losses(TINY["mixed"], model, w, ids, counted)
    assert alone.mean() / np.log(2) < 5.5  # of 6.6; by the mixture alone it would be 6.2


def test_it_resumes_bit_for_bit(tiny, tmp_path, capsys, monkeypatch):
    pytest.importorskip("orbax.checkpoint")
    whole = gpt.train("mixed", *tiny, seed=1, steps=60)
    run_round, done = gpt.run_round, []

    def killed(*arguments):
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return run_round(*arguments)

    monkeypatch.setattr(gpt, "run_round", killed)
    with pytest.raises(KeyboardInterrupt):
        gpt.train("mixed", *tiny, seed=1, steps=60, directory=tmp_path)
    monkeypatch.setattr(gpt, "run_round", run_round)
    again = gpt.train("mixed", *tiny, seed=1, steps=60, directory=tmp_path)
    jax.tree.map(np.testing.assert_array_equal, again[1], whole[1])
    assert again[2]["bits"] == whole[2]["bits"] and "resumed after epoch 1" in capsys.readouterr().out
    lines = (tmp_path / "mixed-1" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]


def test_any_text_is_taken(tiny, tmp_path):
    (tmp_path / "text.txt").write_text("größer und größer 🙂\n" * 200, encoding="utf-8")
    bits = gpt.main(["--text", str(tmp_path / "text.txt"), "--model", "mixed", "--steps", "20"])
    assert 0 < bits < 1
