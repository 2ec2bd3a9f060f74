"""*Convolution and pooling*: the layers that its reader writes make a network that learns, and obey the laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import data, nn, viz
from mlax_tutorial.checking import laws
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/convolution.ipynb", "slide", "patches", "by_patches", "convolve", "Conv", "halve", "max_pool", "depthwise", "loss",
        "prepared", "learn",
    )  # fmt: skip


def test_the_readers_network_learns(code):
    train, test = data.fashion_mnist()
    x, labels = code["prepared"](data.Images(train.images[:2560], train.labels[:2560]))
    test_x, test_labels = code["prepared"](data.Images(test.images[:500], test.labels[:500]))
    relu = nn.F(jax.nn.relu)
    network = nn.Series(
        code["Conv"](8, 5, stride=2), nn.Bias(), relu, code["Conv"](16, 3), nn.F(code["halve"]), nn.Bias(), relu,
        nn.Flatten(3), nn.Linear(10), nn.Bias(),
    )  # fmt: skip
    learned = code["learn"](network, x, labels, 3e-3, 3)
    logits, _ = network.fwd(test_x, *learned, inference_mode=True)
    assert jnp.mean(jnp.argmax(logits, axis=-1) == test_labels) > 0.7


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"groups": 2, "padding": "VALID"}])
def test_the_readers_conv_obeys_the_laws(code, options):
    assert not laws.report(code["Conv"](4, 3, **options), jnp.ones((2, 5, 6, 2))).broken


def test_loops_patches_and_the_call_agree(code):
    x = jax.random.normal(jax.random.key(0), (2, 7, 6, 3))
    kernel = jax.random.normal(jax.random.key(1), (3, 3, 3, 4))
    np.testing.assert_allclose(
        code["by_patches"](x, kernel), code["convolve"](x, kernel), rtol=1e-4, atol=1e-4
    )
    one = code["slide"](np.asarray(x[0, :, :, 0]), np.asarray(kernel[:, :, 0, 0]))
    found = code["convolve"](x[:1, :, :, :1], kernel[:, :, :1, :1])[0, :, :, 0]
    np.testing.assert_allclose(one, found, rtol=1e-4, atol=1e-4)


def test_the_readers_pooling_and_depthwise_are_those_of_the_package(code):
    x = jax.random.normal(jax.random.key(2), (2, 8, 6, 3))
    pooled, _ = nn.MaxPool((2, 2)).fwd(x, (), ())
    np.testing.assert_array_equal(code["halve"](x), pooled)
    np.testing.assert_array_equal(code["max_pool"](x), pooled)
    layer = nn.Conv(3, (3, 3), padding="SAME", groups=3, kernel_spec="HWIO")
    kernel = jax.random.normal(jax.random.key(3), (3, 3, 1, 3))
    np.testing.assert_allclose(
        code["depthwise"](x, kernel), layer.fwd(x, {"kernel": kernel}, ())[0], rtol=1e-4, atol=1e-4
    )


def test_the_readers_conv_can_be_looked_at(code):
    seen = viz.convolution(nn.Series(code["Conv"](4, 3), code["Conv"](4, 3, stride=2)), jnp.ones((8, 8, 1)))
    assert seen.fields == [(3, 3), (5, 5)]
