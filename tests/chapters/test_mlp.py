"""*An MLP, and what its accuracy means*: what its reader defines computes what the chapter says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial.exercises import mlp as exercises
from tests.chapters import assembled

QUICK_TO_COMPILE = True


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/mlp.ipynb", "train", "train_all", "predict", "over_seeds", "ridge", "by_neighbor", "by_random_features", "STEPS"
    )  # fmt: skip


@pytest.fixture(scope="module")
def few(code):
    return code["x"][:256], code["y"][:256]


def test_seeds_in_one_program_are_those_of_a_loop(code, few):
    keys, rates = jax.random.split(jax.random.key(0), 2), jnp.linspace(0.1, 0, 4)  # two epochs of two batches
    together = code["train_all"](keys, rates, *few)
    for i, key in enumerate(keys):
        alone = jax.jit(code["train"])(key, rates, *few)
        for one, two in zip(jax.tree.leaves(alone), jax.tree.leaves(together)):
            np.testing.assert_allclose(one, two[i], atol=1e-4)
    kernels = together[1]["kernel"]
    assert kernels.shape == (2, 784, 256) and not np.allclose(kernels[0], kernels[1])


def test_a_rate_of_zero_leaves_the_weights_as_they_were(code, few):
    key = jax.random.key(3)
    still = code["train"](key, jnp.zeros(2), *few)
    started, _ = code["model"].init(jax.random.split(key, 2)[0], few[0][:1])
    for one, two in zip(jax.tree.leaves(still), jax.tree.leaves(started)):
        np.testing.assert_array_equal(one, two)


def test_ridge_is_what_the_exercise_grades(code):
    assert exercises.ridge.grade(code["ridge"]).passed


def test_the_neighbor_is_the_nearest_one(code):
    x, y = np.asarray(code["x"][:300]).reshape(-1, 784), code["y"]
    near = [int(np.argmin(((x - one) ** 2).sum(axis=1))) for one in x[100:110] + 0.01]
    np.testing.assert_array_equal(code["by_neighbor"](x, y, x[100:110] + 0.01), np.asarray(y)[near])


def test_the_interval_over_seeds_is_students(code):
    right = np.zeros((10, 100), bool)
    for i in range(10):
        right[i, : 80 + i] = True
    mean, half = code["over_seeds"](right)
    assert mean == pytest.approx(0.845) and half == pytest.approx(2.262 * 0.03028 / 10**0.5, rel=1e-2)
