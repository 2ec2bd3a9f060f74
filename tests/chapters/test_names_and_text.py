"""*Recurrent networks on names and text*: what its reader defines computes what the chapter says."""

import jax
import numpy as np
import pytest

from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/names_and_text.ipynb",
        "grams",
        "count",
        "logits",
        "interval",
        "encode",
        "StateSpace",
        "last_capital",
        "fit_capitals",
        "decomposed",
        "without_accents",
    )


COSTLY = {"gradients", "init sharded", "scan and checkpoint", "shard_map", "vmap equals loop"}


@pytest.mark.parametrize("selective", [False, True])
def test_the_state_space_layer_is_its_recurrence(code, selective):
    layer = code["StateSpace"](3, selective)
    x = jax.random.normal(jax.random.key(0), (2, 6, 4))
    w, _ = layer.init(jax.random.key(1), x)
    y, _ = layer.fwd(x, w, ())
    for row, found in zip(np.asarray(x), np.asarray(y)):
        h = np.zeros((4, 3))
        for x_t, y_t in zip(row, found):
            sums = w["bias"] + (x_t @ w["kernel"] if selective else 0)
            step, b, c = np.split(np.asarray(sums), [4, 7])
            step = np.log1p(np.exp(step))[:, None]
            h = np.exp(-step * np.exp(np.asarray(w["decay"]))) * h + step * b * x_t[:, None]
            np.testing.assert_allclose(y_t, h @ c + np.asarray(w["skip"]) * x_t, atol=1e-4)


def test_a_fixed_decay_sees_only_the_past(code):
    layer = code["StateSpace"](3, True)
    x = jax.random.normal(jax.random.key(0), (1, 6, 4))
    w, _ = layer.init(jax.random.key(1), x)
    y, _ = layer.fwd(x, w, ())
    other, _ = layer.fwd(x.at[:, 4].add(1.0), w, ())
    np.testing.assert_array_equal(y[:, :4], other[:, :4])


def test_the_gate_finds_the_last_capital(code):
    fixed, _ = code["fit_capitals"](code["StateSpace"](8, False))
    gated, distance = code["fit_capitals"](code["StateSpace"](8, True))
    assert gated.mean() > 0.97 > 0.95 > fixed.mean() and gated[distance > 30].mean() > 0.9


def test_labels_are_of_the_last_capital(code):
    x, label, distance = code["last_capital"](jax.random.key(0), 50)
    for row, one, back in zip(np.asarray(x), label, distance):
        (places,) = np.nonzero(row >= 4)
        assert row[places[-1]] - 4 == one and len(row) - 1 - places[-1] == back


def test_counting(code):
    assert code["grams"]("ab", [1, 3]) == ["^", "a", "b", "$", "^ab", "ab$"]
    table = code["count"](["aa", "b"], [0, 3], [1])
    assert set(table) == {"^", "a", "b", "$"} and table["a"].argmax() == 0 and table["b"].argmax() == 3
    assert np.allclose(code["interval"](0.5, 100), 0.098)


def test_encoding_cuts_and_marks_what_is_unknown(code):
    ids, lengths = code["encode"](["ab", "x" * 20, "ж"])
    assert (
        ids.shape == (3, 16)
        and lengths.tolist() == [2, 16, 1]
        and ids[2, 0] == ids.max()
        and not ids[0, 2:].any()
    )
    assert code["without_accents"]("Nováková") == "Novakova"
