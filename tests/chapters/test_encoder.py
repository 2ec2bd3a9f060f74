"""*A Transformer encoder*: what its reader defines computes what the chapter says."""

import jax
import numpy as np
import pytest

from mlax_tutorial import data, nn
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/encoder.ipynb", "brackets", "Finder", "nearest", "Masked", "padded", "Unordered"
    )


def test_rows_are_balanced_and_partners_mutual(code):
    x, partners = code["brackets"](np.random.default_rng(0), 50, 12)
    for row, partner in zip(x, partners):
        assert (partner[partner] == np.arange(12)).all() and (partner != np.arange(12)).all()
        opening = np.flatnonzero(row < 2)
        assert (partner[opening] > opening).all() and (row[partner[opening]] == row[opening] + 2).all()
        for t in opening:  # nothing between two partners has its own outside of them
            inside = partner[t + 1 : partner[t]]
            assert ((inside > t) & (inside < partner[t])).all()


def test_the_rules_find_what_they_say(code):
    row = np.array([0, 0, 2, 1, 3, 2])  # (()[])
    assert code["nearest"](row, 1).tolist() == [2, 2, 1, 4, 3, 1]
    assert code["nearest"](row, 2).tolist() == [5, 2, 1, 4, 3, 0]


def test_without_places_a_row_is_a_set(code):
    model = code["Unordered"](nn.Stack(nn.TransformerBlock(64, heads=4), depth=1))
    x, _ = code["brackets"](np.random.default_rng(0), 2)
    weights, _ = model.init(jax.random.key(0), x)
    order = np.random.default_rng(1).permutation(24)
    one, other = (np.asarray(model.fwd(each, weights, ())[0]) for each in (x, x[:, order]))
    np.testing.assert_allclose(one[:, order][:, :, order], other, atol=1e-4)


def test_each_switch_opens_one_mask(code):
    x, _, real = code["padded"](np.random.default_rng(0), 4)
    mask, changed = real[:, None, :], np.where(real, x, 1)

    def apart(**switches):
        model = code["Masked"](
            nn.Stack(nn.TransformerBlock(64, heads=4), depth=1), nn.Embed(5, 64), **switches
        )
        weights, _ = model.init(jax.random.key(0), x)
        one, other = (model.fwd(each, weights, (), mask=mask)[0] for each in (x, changed))
        pairs = real[:, :, None] & mask
        gone = np.abs(np.asarray(jax.nn.softmax(one)))[~np.broadcast_to(mask, one.shape)].max()
        return float(np.abs(np.asarray(one - other))[pairs].max()), float(gone)

    moved, gone = apart()
    assert moved < 1e-4 and gone == 0
    moved, gone = apart(outside=False)
    assert moved < 1e-4 and gone > 1e-4
    moved, gone = apart(inside=False)
    assert moved > 1e-2 and gone == 0


def test_the_third_seed_is_slower_on_both_sides():
    twin = data.recorded("twin_encoder")
    for side in ("jax", "torch"):
        *others, third = twin[side]["accuracies"]
        assert third < min(others) - 0.01
