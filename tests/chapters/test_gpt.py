"""*GPT*: what its reader defines computes what the chapter says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    names = ("counted", "chances", "packed", "gpt", "axes", "rate", "encode", "squared_relu")
    return assembled.definitions("book/gpt.ipynb", *names)


def test_the_counts_of_one_place_are_those_of_the_whole(code):
    text = code["text"][1000:1300]
    whole = code["chances"](text)
    for i in (0, 1, 5, 6, 7, 50, 299):
        one = code["counted"](text[:i])
        assert one[code["alphabet"].index(text[i])] == pytest.approx(whole[i], rel=1e-2)
        assert one.sum() == pytest.approx(1)


def test_own_is_taken_out_of_each_count(code):
    text, grams, kinds = code["text"], code["grams"], code["kinds"]
    i = 12_345
    p = 1 / 95
    for n in range(7):
        before = text[i - n : i]
        weight = 4 + 4 * kinds[before]
        p = (grams[before + text[i]] - 1 + weight * p) / (grams[before] - 1 + weight)
    assert code["chances"](text[: i + 1], own=1)[i] == pytest.approx(p, rel=1e-4)


def test_the_network_begins_with_equal_chances_and_muon_knows_all_kernels(code):
    model = code["gpt"](95)
    ids = jnp.asarray(code["encode"]("A hacker"))[None]
    w, _ = model.init(jax.random.key(0), ids)
    np.testing.assert_array_equal(model.fwd(ids, w, ())[0], 0)
    kinds = code["axes"](w)
    leaves = jax.tree_util.tree_leaves_with_path(w)
    axes = jax.tree.leaves(kinds, is_leaf=lambda leaf: leaf is None or hasattr(leaf, "reduction_axis"))
    for (path, leaf), one in zip(leaves, axes, strict=True):
        assert (one is None) == ("embed" in jax.tree_util.keystr(path)) and (one is None or leaf.ndim > 1)


def test_the_rate_rises_stays_and_falls(code):
    found = [float(code["rate"](share)) for share in (0.0, 0.025, 0.05, 0.3, 0.7, 1.0)]
    np.testing.assert_allclose(found, [0, 0.01, 0.02, 0.02, 0.01, 0], atol=2e-4)
