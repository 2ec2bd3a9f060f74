"""*ResNet*: what its reader defines is the network of the twin, and changes images in training alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.twins import resnet
from mlax_tutorial import trees
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions("book/resnet.ipynb", "resnet", "Augment", "ridge", "with_one")


def test_the_chapter_and_the_twin_have_one_network(code):
    ours, theirs = code["resnet"](), resnet.make_model(skip=True)
    x = jax.random.normal(jax.random.key(0), (3, 28, 28, 1))
    variables = ours.init(jax.random.key(1), x)
    assert trees.count(variables[0]) == 100_986
    y, averages = ours.fwd(x, *variables)
    other, others = theirs.fwd(x, *variables)
    np.testing.assert_array_equal(y, other)
    assert trees.differences(averages, others) == []


def test_augmentation_is_for_training(code):
    layer, x = code["Augment"](), jax.random.normal(jax.random.key(0), (16, 28, 28, 1))
    y, _ = layer.fwd(x, (), (), key=jax.random.key(1))
    again, _ = jax.jit(layer.fwd)(x, (), (), key=jax.random.key(1))
    np.testing.assert_array_equal(y, again)
    assert y.shape == x.shape and not jnp.array_equal(y, x)
    assert jnp.array_equal(layer.fwd(x, (), (), inference_mode=True)[0], x)


def test_ridge_regression_minimizes_its_penalized_squares(code):
    x, labels = jax.random.normal(jax.random.key(0), (50, 28, 28, 1)), jnp.arange(50) % 10
    a, targets = code["with_one"](x), jax.nn.one_hot(labels, 10)

    def penalized(w):
        return jnp.sum((a @ w - targets) ** 2) + 1000.0 * jnp.sum(w**2)

    gradient = jax.grad(penalized)(code["ridge"](x, labels))
    assert float(jnp.abs(gradient).max()) < 1e-2
